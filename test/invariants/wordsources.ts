/**
 * Texts that people read, with their lines, for the test of words: prose of Markdown files, and strings and docstrings of TypeScript
 * files. A small tokenizer finds the strings, since the compiler has no programming interface. It knows comments, strings, templates and
 * regular expressions, and for each string the calls that surround it.
 */

export interface Passage {
  readonly line: number;
  readonly text: string;
}

/** Replaces everything but line ends by blanks, so that lines keep their numbers. */
const blank = (text: string): string => text.replace(/[^\n]/g, " ");

/** The section of a Markdown file below a heading of level 2, to be left out. */
const sectionOf = (heading: string): RegExp => new RegExp(`^## ${heading}\\n[^]*?(?=^## |(?![^]))`, "m");

/** Prose of a Markdown file: no code, no link targets. Paragraphs are joined, so that a phrase may cross a line end. */
export function readMarkdown(text: string, skip?: string): Passage[] {
  const prose = (skip === undefined ? text : text.replace(sectionOf(skip), blank))
    .replace(/^```[^]*?^```/gm, blank)
    .replace(/^ {4}\S.*$/gm, blank)
    .replace(/`[^`\n]*`/g, blank)
    .replace(/\]\([^)\s]*\)/g, blank);
  const passages: Passage[] = [];
  let line = 1;
  for (const paragraph of prose.split(/(?<=\n)(?=\n|[|#]|\s*(?:[-*]|\d+\.) )/)) {
    if (paragraph.trim() !== "") passages.push({ line, text: paragraph });
    line += paragraph.split("\n").length - 1;
  }
  return passages;
}

interface Token {
  readonly kind: "string" | "docstring" | "comment";
  readonly line: number;
  readonly text: string;
  /** Names of the functions or classes in whose arguments the string is, the innermost last. */
  readonly calls: readonly string[];
  /** It is an argument of the innermost call, not a part of an object or function in the argument. */
  readonly isArgument: boolean;
}

/** What precedes a slash that begins a regular expression; behind a value a slash divides. */
const beforePattern = /(?:^|[(,=:[!&|?{};+>\n]|\b(?:return|typeof|case|of|in|await|throw))\s*$/;

/** Returns all strings and comments of a TypeScript file. The parts of a template are joined by `…`. */
export function tokenize(code: string): Token[] {
  const tokens: Token[] = [];
  /** Names before open parentheses; "" for other brackets. A template's `${` is in it as "$". */
  const open: string[] = [];
  const templates: { start: number; text: string }[] = [];
  const lineStarts = [0, ...[...code.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lineAt = (index: number): number => {
    const line = lineStarts.findIndex((start) => start > index);
    return line < 0 ? lineStarts.length : line;
  };
  const add = (kind: Token["kind"], start: number, text: string) =>
    tokens.push({
      kind,
      line: lineAt(start),
      text,
      calls: open.filter((name) => name !== "" && name !== "$"),
      isArgument: (open.at(-1) ?? "") !== "",
    });
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(code)?.[0];
  };
  /** Reads a template up to its end or to the next `${`. */
  const readTemplate = () => {
    const template = templates.at(-1);
    const part = match(/(?:\\[^]|\$(?!\{)|[^`\\$])*/y) ?? "";
    if (template === undefined) return;
    template.text += part;
    at += part.length;
    if (code[at] === "$") {
      template.text += "…";
      open.push("$");
      at += 2;
      return;
    }
    templates.pop();
    at++;
    add("string", template.start, template.text);
  };
  while (at < code.length) {
    const char = code[at] ?? "";
    const comment = char === "/" ? match(/\/\/[^\n]*|\/\*[^]*?\*\//y) : undefined;
    const string = /["']/.test(char) ? match(/"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'/y) : undefined;
    if (comment !== undefined) {
      const kind = comment.startsWith("/**") ? "docstring" : "comment";
      add(kind, at, comment.replace(/^\/\*\*?|\*\/$|^\s*\* ?|^\/\/ ?/gm, ""));
      at += comment.length;
    } else if (string !== undefined) {
      add("string", at, string.slice(1, -1));
      at += string.length;
    } else if (char === "`") {
      templates.push({ start: at, text: "" });
      at++;
      readTemplate();
    } else if (char === "/" && beforePattern.test(code.slice(Math.max(0, at - 20), at))) {
      at += match(/\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/y)?.length ?? 1;
    } else {
      if (char === "(") open.push(/([\w$]+)(?:<[^()]*>)?$/.exec(code.slice(Math.max(0, at - 80), at))?.[1] ?? "");
      if (char === "{" || char === "[") open.push("");
      at++;
      if (/[)}\]]/.test(char) && open.pop() === "$") readTemplate();
    }
  }
  return tokens;
}

/** Several words: names, codes and paths are no prose. */
const isProse = (text: string): boolean => /[a-z]{2}[^]*\s[^]*[a-z]{2}/i.test(text);

/** Prose in strings and docstrings, as in summaries and descriptions of operations. */
export const readTexts = (code: string): Passage[] =>
  tokenize(code).filter(({ kind, text }) => kind !== "comment" && isProse(text));

/** Calls whose first strings are titles of tests. */
const titleCalls = /^(?:test|describe)\w*$|invariant$/i;

/** Comments, without code in backticks, and titles of tests. */
export const readComments = (code: string): Passage[] =>
  tokenize(code)
    .filter(
      ({ kind, text, calls, isArgument }) =>
        isProse(text) && (kind !== "string" || (isArgument && titleCalls.test(calls.at(-1) ?? ""))),
    )
    .map(({ line, text }) => ({ line, text: text.replaceAll(/`[^`]*`/g, blank) }));

/** Calls whose strings people read: log lines, and errors that are made or thrown. */
const messageCalls = /^log$|error/i;

/** A whole sentence, which is a message also where it is first kept in a variable. */
const isSentence = (text: string): boolean => /^[A-Z…][^]*[.!?]$/.test(text);

/** Prose in log lines, messages of errors, and other whole sentences. */
export const readMessages = (code: string): Passage[] =>
  tokenize(code).filter(
    ({ kind, text, calls }) =>
      kind === "string" && isProse(text) && (isSentence(text) || calls.some((name) => messageCalls.test(name))),
  );
