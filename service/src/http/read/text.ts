/** Functions on text that the modules of this folder share: ASCII letter case, percent-encoding, JSON pointers, quoting of input. */
import { quote as quoteText } from "../../base/quote.ts";

/** Converts only A-Z to lower case, so that no other character, such as the Kelvin sign, becomes an ASCII letter. */
export function asciiLower(text: string): string {
  if (!/[A-Z]/.test(text)) return text;
  return /[\u0080-\uffff]/.test(text) ? text.replace(/[A-Z]+/g, (run) => run.toLowerCase()) : text.toLowerCase();
}

/** Decodes percent-encoded UTF-8 (RFC 3986 section 2.1). Returns null if the text is malformed or not UTF-8. */
export function percentDecode(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Percent-encodes bytes above 0x7f, which node:http passes as Latin-1 characters, so that they are decoded as UTF-8. */
export function encodeHighBytes(target: string): string {
  return /[\x80-\xff]/.test(target)
    ? target.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`)
    : target;
}

/** Escapes a key as one step of a JSON pointer (RFC 6901). */
export function pointerStep(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Quotes input for a sentence, at most 40 characters of it. */
export const quote = (text: string): string => quoteText(text, { longest: 40 });
