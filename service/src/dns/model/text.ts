/**
 * The text of a TXT record: kept joined, as people mean it, and written as quoted strings of at most 255 bytes, as the wire wants it
 * (RFC 1035 section 3.3.14). Strings that were given otherwise (RFC 6763 section 6: `"a=1" "b=2"`) are kept with a unit separator
 * between them, which no text has. Clients in the field compare the answer form letter by letter, the last blank included.
 */
import { isUtf8 } from "node:buffer";
import { limits } from "@brume/api/dns.ts";
import { type NameError, refuseName } from "./name.ts";

const stringBytes = 255;
const separator = "\x1f";
/** Strings of one record: more than any use, and less than a message holds. */
const mostStrings = 1000;

/**
 * Reads the `Text` of a request. Nothing but strings in `"`, blanks between and after them, is read as strings, with
 * `\"`, `\\` and `\DDD` (a byte) undone, any other backslash left alone. Every other text means itself.
 */
export function readText(text: string): string | NameError {
  const strings = splitStrings(text);
  if (strings !== null) return readStrings(strings, false);
  return text === "" ? refuseName("too_short", "must be 1 to 4096 bytes long, and is empty") : checkText(text);
}

/** The value of strings whose escapes are still to be undone. Where they are cut inside a character, only their sum counts. */
export function readStrings(strings: readonly string[], isMaster: boolean): string | NameError {
  const joined = checkText(decodeStrings(strings, isMaster));
  if (typeof joined !== "string" || strings.length === 1) return joined;
  return valueOf(
    strings.map((string) => decodeStrings([string], isMaster)),
    joined,
  );
}

/** The value of decoded strings, where `joined` is their sum and null one that is no UTF-8. */
export function valueOf(strings: readonly (string | null)[], joined: string): string | NameError {
  if (strings.length > mostStrings)
    return refuseName("too_long", `must be at most ${mostStrings} strings, and is ${strings.length}`);
  const texts: string[] = [];
  for (const string of strings) {
    if (string === null) return joined;
    texts.push(...cutText(string));
  }
  const usual = cutText(joined);
  const isUsual = usual.length === texts.length && usual.every((text, i) => text === texts[i]);
  return isUsual ? joined : texts.join(separator);
}

/** The strings of a value, each at most 255 bytes. */
export const stringsOf = (value: string): string[] =>
  value.includes(separator) ? value.split(separator) : cutText(value);

/** The text if it may be stored: at most 4096 bytes of UTF-8 without control characters but tab. Null stands for bytes that are not UTF-8. */
export function checkText(text: string | null): string | NameError {
  if (text === null || !text.isWellFormed())
    return refuseName("format_invalid", "must be UTF-8, and some bytes are not");
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if ((c < 32 && c !== 9) || (c > 126 && c < 160))
      return refuseName(
        "format_invalid",
        `must not hold control characters, and has U+${c.toString(16).toUpperCase().padStart(4, "0")}`,
      );
  }
  if (text.length * 3 > limits.textBytes && Buffer.byteLength(text) > limits.textBytes)
    return refuseName("too_long", `must be at most ${limits.textBytes} bytes long, and has ${Buffer.byteLength(text)}`);
  return text;
}

/** The answer form: each string in quotes, a blank behind each. */
export function showText(value: string): string {
  let shown = "";
  for (const string of stringsOf(value)) shown += `"${string.replace(/["\\]/g, "\\$&")}" `;
  return shown;
}

/** Strings of at most 255 bytes, cut between characters. */
function cutText(text: string): string[] {
  if (text.length * 3 <= stringBytes) return [text];
  const strings: string[] = [];
  let start = 0;
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    const isPair = c >= 0xd800 && c <= 0xdbff;
    const width = c < 0x80 ? 1 : c < 0x800 ? 2 : isPair ? 4 : 3;
    if (bytes + width > stringBytes) {
      strings.push(text.slice(start, i));
      start = i;
      bytes = 0;
    }
    bytes += width;
    if (isPair) i++;
  }
  strings.push(text.slice(start));
  return strings;
}

/** The strings of a value in pure ASCII for a master file. */
export const printText = (value: string): string => stringsOf(value).map(printString).join(" ");

/** One string of a master file in quotes, in pure ASCII: bytes outside the visible ones become `\DDD`. */
export const printString = (text: string): string =>
  /^[ !#-[\]-~]*$/.test(text) ? `"${text}"` : `"${escapeBytes(Buffer.from(text))}"`;

function escapeBytes(bytes: Buffer): string {
  let out = "";
  for (const byte of bytes) {
    if (byte === 34 || byte === 92) out += `\\${String.fromCharCode(byte)}`;
    else out += byte > 31 && byte < 127 ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, "0")}`;
  }
  return out;
}

/** The inner texts, still escaped, of a text that is nothing but quoted strings; else null. */
function splitStrings(text: string): string[] | null {
  if (text.charCodeAt(0) !== 34) return null;
  const strings: string[] = [];
  let i = 0;
  while (i < text.length) {
    if (text.charCodeAt(i) !== 34) return null;
    const start = ++i;
    while (i < text.length && text.charCodeAt(i) !== 34) i += text.charCodeAt(i) === 92 ? 2 : 1;
    if (i >= text.length) return null;
    strings.push(text.slice(start, i++));
    while (text.charCodeAt(i) === 32 || text.charCodeAt(i) === 9) i++;
  }
  return strings;
}

/**
 * Joins strings whose escapes are still to be undone; null if the bytes are not UTF-8.
 * In a master file (`isMaster`) `\X` is X for every X (RFC 1035 section 5.1), and `\DDD` beyond 255 is refused with null.
 */
function decodeStrings(strings: readonly string[], isMaster: boolean): string | null {
  const raw = strings.length === 1 ? (strings[0] as string) : strings.join("");
  // No escape is longer than four characters a byte: a longer text is too long, whatever it says.
  if (!raw.includes("\\") || raw.length > 4 * limits.textBytes) return raw;
  if (!raw.isWellFormed()) return null;
  const parts: Buffer[] = [];
  for (const string of strings) if (!undoEscapes(string, isMaster, parts)) return null;
  const bytes = Buffer.concat(parts);
  return isUtf8(bytes) ? bytes.toString() : null;
}

/** A string of a master file whose escapes are still to be undone; null if its bytes are not UTF-8. */
export const decodeString = (raw: string): string | null => decodeStrings([raw], true);

function undoEscapes(raw: string, isMaster: boolean, parts: Buffer[]): boolean {
  let start = 0;
  for (let i = raw.indexOf("\\"); i >= 0; i = raw.indexOf("\\", i)) {
    parts.push(Buffer.from(raw.slice(start, i)));
    start = i + 1;
    const code = /^\d{3}/.test(raw.slice(start, start + 3)) ? Number(raw.slice(start, start + 3)) : -1;
    const next = raw.charCodeAt(start);
    if (code >= 0 && code <= 255) {
      parts.push(Buffer.of(code));
      start += 3;
      i = start;
    } else if (isMaster && next >= 48 && next <= 57) {
      return false;
    } else {
      if (!isMaster && next !== 34 && next !== 92) start = i;
      i += 2;
    }
  }
  parts.push(Buffer.from(raw.slice(start)));
  return true;
}
