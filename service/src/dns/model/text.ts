/**
 * The text of a TXT record. It is stored joined, and served and printed as strings of at most 255 bytes (RFC 1035 section 3.3.14). Strings
 * that are split differently (RFC 6763 section 6: `"a=1" "b=2"`) are stored with a unit separator between them, which no text contains.
 * Existing clients compare the API form byte by byte, including the final blank.
 */
import { isUtf8 } from "node:buffer";
import { limits } from "@brume/api/dns.ts";
import { type NameError, refuseName } from "./name.ts";

const stringBytes = 255;
const separator = "\x1f";
/** Maximum number of strings per record: more than any use needs, and fewer than fit into a message. */
const maxStrings = 1000;

/**
 * Parses the `Text` of a request. A text that consists of strings in `"`, with blanks between and after them, is parsed as strings: the
 * escapes `\"`, `\\` and `\DDD` (a byte) are resolved, other backslashes are kept. Every other text is taken literally.
 */
export function readText(text: string): string | NameError {
  const strings = splitStrings(text);
  if (strings !== null) return readStrings(strings, false);
  return text === "" ? refuseName("too_short", "must be 1 to 4096 bytes long, and is empty") : checkText(text);
}

/** Returns the value of strings with escapes. If a string ends inside a UTF-8 character, only the joined text is stored. */
export function readStrings(strings: readonly string[], isMaster: boolean): string | NameError {
  const joined = checkText(decodeStrings(strings, isMaster));
  if (typeof joined !== "string" || strings.length === 1) return joined;
  return valueOf(
    strings.map((string) => decodeStrings([string], isMaster)),
    joined,
  );
}

/** Returns the value of decoded strings. `joined` is their concatenation; null if a string is not UTF-8. */
export function valueOf(strings: readonly (string | null)[], joined: string): string | NameError {
  if (strings.length > maxStrings)
    return refuseName("too_long", `must be at most ${maxStrings} strings, and is ${strings.length}`);
  const texts: string[] = [];
  for (const string of strings) {
    if (string === null) return joined;
    texts.push(...splitText(string));
  }
  const byDefault = splitText(joined);
  const isDefault = byDefault.length === texts.length && byDefault.every((text, i) => text === texts[i]);
  return isDefault ? joined : texts.join(separator);
}

/** Returns the strings of a value, each at most 255 bytes. */
export const stringsOf = (value: string): string[] =>
  value.includes(separator) ? value.split(separator) : splitText(value);

/** Returns the text if it is valid: at most 4096 bytes of UTF-8, no control characters except tab. Null means invalid UTF-8. */
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

/** Returns the API form: each string in quotes, followed by a blank. */
export function showText(value: string): string {
  let shown = "";
  for (const string of stringsOf(value)) shown += `"${string.replace(/["\\]/g, "\\$&")}" `;
  return shown;
}

/** Splits a text into strings of at most 255 bytes, between characters. */
function splitText(text: string): string[] {
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

/** Prints the strings of a value for a zone file, in ASCII. */
export const printText = (value: string): string => stringsOf(value).map(printString).join(" ");

/** Prints one string for a zone file: in quotes, in ASCII, other bytes as `\DDD`. */
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

/** Returns the contents, still escaped, of a text that consists of quoted strings; else null. */
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
 * Resolves the escapes of strings and joins them. Returns null if the bytes are not UTF-8.
 * In a zone file (`isMaster`) `\X` is X for every X (RFC 1035 section 5.1), and `\DDD` above 255 returns null.
 */
function decodeStrings(strings: readonly string[], isMaster: boolean): string | null {
  const raw = strings.length === 1 ? (strings[0] as string) : strings.join("");
  // An escape has at most four characters per byte, so a longer text is too long in any case.
  if (!raw.includes("\\") || raw.length > 4 * limits.textBytes) return raw;
  if (!raw.isWellFormed()) return null;
  const parts: Buffer[] = [];
  for (const string of strings) if (!resolveEscapes(string, isMaster, parts)) return null;
  const bytes = Buffer.concat(parts);
  return isUtf8(bytes) ? bytes.toString() : null;
}

/** Resolves the escapes of one string of a zone file. Returns null if its bytes are not UTF-8. */
export const decodeString = (raw: string): string | null => decodeStrings([raw], true);

function resolveEscapes(raw: string, isMaster: boolean, parts: Buffer[]): boolean {
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
