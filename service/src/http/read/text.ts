/**
 * Small dealings with text that every reading room shares: ASCII letter case, percent-encoding, JSON pointers, and how something
 * that came from outside is shown in a sentence.
 */
import { quote as quoteText } from "../../base/quote.ts";

/** Lower case for A-Z only, so that no letter of another alphabet (the Kelvin sign, say) ever passes for one of ours. */
export function asciiLower(text: string): string {
  return /[A-Z]/.test(text) ? text.replace(/[A-Z]+/g, (run) => run.toLowerCase()) : text;
}

/** Percent-decoding (RFC 3986 section 2.1) to UTF-8; null if the text is malformed or not UTF-8. */
export function percentDecode(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * node:http hands bytes above 0x7f in a request target over as Latin-1 characters. Percent-encoded they are read as what they
 * were sent as, UTF-8.
 */
export function encodeHighBytes(target: string): string {
  return /[\x80-\xff]/.test(target)
    ? target.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`)
    : target;
}

/** A key as one step of a JSON pointer (RFC 6901). */
export function pointerStep(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** A text from outside, short. */
export const quote = (text: string): string => quoteText(text, { longest: 40 });
