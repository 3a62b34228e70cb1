/**
 * The outermost grammar of a master file (RFC 1035 section 5.1): text into entries, entries into tokens. Parentheses, quotes,
 * comments and escapes end here; what the tokens mean is for `parse.ts`. One pass, no backtracking, whatever comes.
 */

/** One entry, on one line or in parentheses on several. The object is used again for the next. */
export interface Entry {
  /** The line on which it begins, from 1. */
  line: number;
  /** It begins with a blank: the owner is that of the entry before. */
  isContinued: boolean;
  /** Without quotes, escapes as they came. */
  tokens: string[];
  /** Which tokens stood in quotes. */
  isQuoted: boolean[];
  /** The text of its last comment, "" for none. */
  comment: string;
  /** What is wrong with it, and where; the rest of that line is skipped. */
  trouble: { readonly line: number; readonly reason: string } | null;
}

const newline = 10;
const backslash = 92;
const quoteMark = 34;

/** Reads entry after entry into `entry`; false at the end. */
export function createLexer(text: string, entry: Entry): () => boolean {
  let at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  let line = 1;

  const endOfLine = (): number => {
    const end = text.indexOf("\n", at);
    return end < 0 ? text.length : end;
  };

  const fail = (where: number, reason: string): void => {
    entry.trouble ??= { line: where, reason };
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
    entry.trouble = null;
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
        if (depth > 0 && entry.trouble === null) continue;
        if (entry.tokens.length > 0 || entry.trouble !== null) return true;
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
    if (depth > 0) fail(opened, 'there is a "(" without a ")" behind it');
    return entry.tokens.length > 0 || entry.trouble !== null;
  };
}

const isBlank = (c: number): boolean => c === 32 || c === 9 || c === 13;

const endsWord = (c: number): boolean =>
  c === 32 || c === newline || c === 9 || c === 13 || c === 59 || c === 40 || c === 41 || c === quoteMark;
