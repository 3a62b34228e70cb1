/**
 * Parses the lists of a long JSON object in parts. `JSON.parse` of megabytes would block the event loop for tens of milliseconds. The scan
 * here only finds the ends of parts; `JSON.parse` checks them.
 */
import { maxFields } from "./json.ts";

/** Characters of a part: parsing them takes less than a millisecond. */
const partLength = 16_384;
/** Characters of the longest list or object that is parsed as one item. */
const longestItem = 65_536;

const blank = /[ \t\n\r]*/y;

/**
 * Returns what `JSON.parse` returns for the text of an object, with a yield after each part of a list in it. Undefined: the text is no
 * JSON object, has the key `__proto__`, too many fields, or a list or object in it that is too long for one part.
 */
export function* parseParts(text: string): Generator<void, Record<string, unknown> | undefined> {
  try {
    return yield* readObject(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function* readObject(text: string): Generator<void, Record<string, unknown>> {
  const value: Record<string, unknown> = {};
  let at = skipBlanks(text, take(text, skipBlanks(text, 0), "{"));
  if (text[at] === "}") at += 1;
  else
    for (let isEnd = false, fields = 1; !isEnd; at += 1, fields += 1) {
      if (fields > maxFields) throw new SyntaxError("too many fields");
      at = skipBlanks(text, at);
      const end = endOfString(text, take(text, at, '"'));
      const key = JSON.parse(text.slice(at, end)) as string;
      // Assigning it would set the prototype.
      if (key === "__proto__") throw new SyntaxError("a key that is no field");
      at = skipBlanks(text, take(text, skipBlanks(text, end), ":"));
      if (text[at] === "[") {
        const list: unknown[] = [];
        at = yield* readList(text, at + 1, list);
        value[key] = list;
      } else {
        const start = at;
        at = endOfItem(text, at);
        value[key] = JSON.parse(text.slice(start, at));
        yield;
      }
      at = skipBlanks(text, at);
      isEnd = text[at] === "}";
      if (!isEnd) take(text, at, ",");
    }
  if (skipBlanks(text, at) < text.length) throw new SyntaxError("something after the end");
  return value;
}

/** Reads a list from its first item. Returns the position after the list. */
function* readList(text: string, from: number, list: unknown[]): Generator<void, number> {
  for (let start = from, at = from; ; ) {
    at = endOfItem(text, at);
    const isEnd = text[at] === "]";
    if (!isEnd) take(text, at, ",");
    if (isEnd || at - start > partLength) {
      const items = JSON.parse(`[${text.slice(start, at)}]`) as unknown[];
      // Only a list without any item has a part without one.
      if (items.length === 0 && !(isEnd && start === from)) throw new SyntaxError("no item");
      for (const item of items) list.push(item);
      start = at + 1;
      yield;
    }
    at += 1;
    if (isEnd) return at;
  }
}

function take(text: string, at: number, mark: string): number {
  if (text[at] !== mark) throw new SyntaxError(`no ${mark}`);
  return at + 1;
}

function skipBlanks(text: string, at: number): number {
  blank.lastIndex = at;
  blank.test(text);
  return blank.lastIndex;
}

/** Returns the position after the string whose first character, after the quotation mark, is at `at`. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at); end >= 0; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === 0x5c && end - 1 - escapes >= at) escapes++;
    if (escapes % 2 === 0) return end + 1;
  }
  throw new SyntaxError("a string without end");
}

/** Returns the position of the comma or closing bracket after the value at `at`. */
function endOfItem(text: string, at: number): number {
  let depth = 0;
  for (let end = at; end < text.length; end++) {
    const code = text.charCodeAt(end);
    if (code === 0x22) end = endOfString(text, end + 1) - 1;
    else if (code === 0x5b || code === 0x7b) depth++;
    else if (code === 0x5d || code === 0x7d) {
      if (depth === 0) return end;
      depth--;
      if (end - at > longestItem) throw new SyntaxError("a long list or object");
    } else if (code === 0x2c && depth === 0) return end;
  }
  throw new SyntaxError("a value without end");
}
