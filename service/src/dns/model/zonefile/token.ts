/**
 * Lexer of zone files (RFC 1035 section 5.1): splits the text into entries and tokens, and handles parentheses, quotes and comments.
 * `parse.ts` interprets the tokens. It works in one pass without backtracking, so hostile input takes linear time.
 */

/** One entry: one line, or several lines in parentheses. The object is reused for the next entry. */
export interface Entry {
  /** The line on which it begins, from 1. */
  line: number;
  /** It begins with a blank: the owner is that of the previous entry. */
  isContinued: boolean;
  /** Without quotes; escapes are not resolved. */
  tokens: string[];
  /** Which tokens were quoted. */
  isQuoted: boolean[];
  /** The text of its last comment, "" for none. */
  comment: string;
  /** Syntax error and its line; the rest of that line is skipped. Null: none. */
  error: { readonly line: number; readonly reason: string } | null;
}

const newline = 10;
const backslash = 92;
const quoteMark = 34;

/** Returns a function that reads the next entry into `entry`, and returns false at the end of the text. */
export function createLexer(text: string, entry: Entry): () => boolean {
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  let line = 1;

  const endOfLine = (): number => {
    const end = text.indexOf("\n", at);
    return end < 0 ? text.length : end;
  };

  const fail = (where: number, reason: string): void => {
    entry.error ??= { line: where, reason };
    at = endOfLine();
  };

  const readQuoted = (): boolean => {
    const start = ++at;
    while (at < text.length) {
      const c = text.charCodeAt(at);
      if (c === quoteMark) {
        entry.tokens.push(text.slice(start, at++));
        entry.isQuoted.push(true);
        return true;
      }
      if (c === newline) break;
      at += c === backslash && text.charCodeAt(at + 1) !== newline ? 2 : 1;
    }
    at = Math.min(at, text.length);
    return false;
  };

  const readWord = (): void => {
    const start = at;
    while (at < text.length && !endsWord(text.charCodeAt(at)))
      at += text.charCodeAt(at) === backslash && text.charCodeAt(at + 1) !== newline ? 2 : 1;
    at = Math.min(at, text.length);
    entry.tokens.push(text.slice(start, at));
    entry.isQuoted.push(false);
  };

  const begin = (): void => {
    const c = text.charCodeAt(at);
    entry.line = line;
    entry.isContinued = c === 32 || c === 9;
    entry.tokens.length = entry.isQuoted.length = 0;
    entry.comment = "";
    entry.error = null;
  };

  return () => {
    let depth = 0;
    let opened = 0;
    begin();
    while (at < text.length) {
      const c = text.charCodeAt(at);
      if (c === newline) {
        at++;
        line++;
        if (depth > 0 && entry.error === null) continue;
        if (entry.tokens.length > 0 || entry.error !== null) return true;
        begin();
      } else if (isBlank(c)) at++;
      else if (c === 59) {
        const end = endOfLine();
        entry.comment = text.slice(at + 1, end);
        at = end;
      } else if (c === 40) {
        at++;
        if (depth++ === 0) opened = line;
      } else if (c === 41) {
        at++;
        if (--depth < 0) fail(line, 'there is a ")" without a "(" before it');
      } else if (c === quoteMark) {
        if (!readQuoted()) fail(line, "a quoted text does not end on its line");
      } else readWord();
    }
    if (depth > 0) fail(opened, 'there is a "(" without a ")" after it');
    return entry.tokens.length > 0 || entry.error !== null;
  };
}

const isBlank = (c: number): boolean => c === 32 || c === 9 || c === 13;

const endsWord = (c: number): boolean =>
  c === 32 || c === newline || c === 9 || c === 13 || c === 59 || c === 40 || c === 41 || c === quoteMark;
