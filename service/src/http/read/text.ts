/**
 * Small dealings with text that every reading room shares: ASCII letter case, percent-encoding, JSON pointers, and how something
 * that came from outside is shown in a sentence.
 */

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

const shownLength = 40;

/** A text from outside in quotes: one line, short, nothing in it that a terminal or a page would act on. */
export function quote(text: string): string {
  let shown = text.slice(0, 2 * shownLength).toWellFormed();
  const points = Array.from(shown);
  if (points.length > shownLength || shown.length < text.length) shown = `${points.slice(0, shownLength).join("")}…`;
  return JSON.stringify(shown).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (odd) => `\\u{${(odd.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
