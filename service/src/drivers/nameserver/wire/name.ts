/**
 * Domain names in the server's internal form: the wire form of RFC 1035 section 3.1 without the final zero, one character per byte
 * ("\x03www\x07example\x03com", the root is ""). Such a string is compact, a good Map key and unambiguous for any byte, and its parents are
 * its suffixes.
 */

/** Maximum bytes of a name in wire form, including the final zero (RFC 1035 section 2.3.4). */
export const NAME_LIMIT = 255;
const LABEL_LIMIT = 63;
/** Bytes in lower case as RFC 4343 defines it: ASCII letters only. Length bytes are at most 63 and therefore no letters. */
export const LOWER = Uint8Array.from({ length: 256 }, (_, code) => (code >= 65 && code <= 90 ? code + 32 : code));
const DOT = 46;
const BACKSLASH = 92;

/**
 * Writes a dotted ASCII name into `bytes` at `at`, in its letter case and without the final zero. Returns the offset after it. `\\DDD` is
 * one byte (RFC 1035 section 5.1). The buffer must have space for `text.length + 1` bytes. Throws a RangeError that describes the error.
 */
export function writeName(bytes: Uint8Array, at: number, text: string): number {
  if (text === "") return at;
  let label = at;
  let pos = at + 1;
  if (text.charCodeAt(text.length - 1) === BACKSLASH) throw new RangeError(`name "${text}" ends in an open escape`);
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : DOT;
    if (code === DOT) {
      const size = pos - label - 1;
      if (size === 0) throw new RangeError(`name "${text}" has an empty label`);
      if (size > LABEL_LIMIT) throw new RangeError(`name "${text}" has a label of more than ${LABEL_LIMIT} bytes`);
      bytes[label] = size;
      label = pos++;
    } else if (code > 126 || code < 33) {
      throw new RangeError(`name ${JSON.stringify(text)} has a character outside of printable ASCII`);
    } else if (code === BACKSLASH) {
      const digits = text.slice(i + 1, i + 4);
      if (!/^\d{3}$/.test(digits) || Number(digits) > 255)
        throw new RangeError(`name "${text}" has an escape that is not \\000 to \\255`);
      bytes[pos++] = Number(digits);
      i += 3;
    } else {
      bytes[pos++] = code;
    }
  }
  if (label - at + 1 > NAME_LIMIT) throw new RangeError(`name "${text}" is longer than ${NAME_LIMIT} bytes`);
  return label;
}

/** Returns the name of a dotted ASCII text in lower case, as a key of zones. Throws a RangeError as `writeName` does. */
export function nameOf(text: string): string {
  const bytes = Buffer.allocUnsafe(text.length + 2);
  return lowerCase(bytes.toString("latin1", 0, writeName(bytes, 0, text)));
}

/** Returns the dotted text of a name, for log and interface; bytes that are not printable ASCII as `\DDD` (RFC 1035 section 5.1). */
export function textOf(name: string): string {
  const labels: string[] = [];
  for (let at = 0; at < name.length; at += 1 + name.charCodeAt(at)) {
    const label = name.substring(at + 1, at + 1 + name.charCodeAt(at));
    labels.push(label.replace(/[^!-~]|[.\\]/g, (c) => `\\${c.charCodeAt(0).toString().padStart(3, "0")}`));
  }
  return labels.join(".");
}

/** Returns the name one label up. Must not be called for the root. */
export function parentOf(name: string): string {
  return name.substring(1 + name.charCodeAt(0));
}

/** Returns `name` without the labels of `apex` at its end: "" for the apex itself, null for a name outside. */
export function relativeTo(name: string, apex: string): string | null {
  let at = 0;
  while (name.length - at > apex.length) at += 1 + name.charCodeAt(at);
  return name.length - at === apex.length && name.endsWith(apex) ? name.substring(0, at) : null;
}

/** Returns the offset of each label, leftmost first. */
export function labelStarts(name: string): number[] {
  const starts: number[] = [];
  for (let at = 0; at < name.length; at += 1 + name.charCodeAt(at)) starts.push(at);
  return starts;
}

/** Returns the name in lower case, ASCII letters only (RFC 4343). Length bytes are at most 63 and therefore never letters. */
export function lowerCase(name: string): string {
  return /[A-Z]/.test(name) ? name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase()) : name;
}
