/** Texts from outside as error messages repeat them, and as words of a shell. */
export interface QuoteOptions {
  /** Characters that are shown; 64 by default. */
  readonly longest?: number;
  /** Characters that are shown as `\u{…}`: by default those that a terminal or a page would act on. */
  readonly escape?: RegExp;
}

const active = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** In quotes: one line, short, with an ellipsis where something is left out. */
export function quote(text: string, { longest = 64, escape = active }: QuoteOptions = {}): string {
  let shown = text.slice(0, 2 * longest).toWellFormed();
  const points = Array.from(shown);
  if (points.length > longest || shown.length < text.length) shown = `${points.slice(0, longest).join("")}…`;
  return JSON.stringify(shown).replace(escape, (odd) => `\\u{${(odd.codePointAt(0) ?? 0).toString(16)}}`);
}

/** One word for a POSIX shell, whatever is in it but NUL. */
export const quoteShell = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;
