/** Quotes untrusted texts for error messages, and words for a shell. */
export interface QuoteOptions {
  /** Most characters that are shown. Default 64. */
  readonly longest?: number;
  /** Characters that are shown as `\u{…}`. Default: control, format and separator characters. */
  readonly escape?: RegExp;
}

const active = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns the text in double quotes, on one line, shortened with an ellipsis. */
export function quote(text: string, { longest = 64, escape = active }: QuoteOptions = {}): string {
  let shown = text.slice(0, 2 * longest).toWellFormed();
  const points = Array.from(shown);
  if (points.length > longest || shown.length < text.length) shown = `${points.slice(0, longest).join("")}…`;
  return JSON.stringify(shown).replace(escape, (odd) => `\\u{${(odd.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Returns the value as one word of a POSIX shell. The value must not contain NUL. */
export const quoteShell = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;
