/** Colours of a terminal (ECMA-48, "select graphic rendition"), and the width of texts. */

/** Wraps texts in colours, or returns them unchanged. */
export interface Style {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

/** Returns the colours; without `isColored` texts stay unchanged. */
export function createStyle(isColored: boolean): Style {
  const paint = (code: number, end: number) => (text: string) =>
    isColored && text !== "" ? `\u001B[${code}m${text}\u001B[${end}m` : text;
  return { bold: paint(1, 22), dim: paint(2, 22), red: paint(31, 39), green: paint(32, 39), yellow: paint(33, 39) };
}

const good = new Set(["Active", "Completed", "Available", "Delivered", "Up", "Allow", "ready", "ok", "Delegated"]);
const bad = new Set(["Failed", "Down", "Deny", "failing", "Blocked", "NotDelegated", "IoError", "NotResponding"]);
const between = new Set([
  "New",
  "FromPool",
  "Deleting",
  "InProgress",
  "Postponed",
  "Pending",
  "Waiting",
  "Connecting",
  "Partial",
]);

/** Colours a state. */
export function paintState(text: string, style: Style): string {
  if (good.has(text)) return style.green(text);
  if (bad.has(text)) return style.red(text);
  return between.has(text) ? style.yellow(text) : text;
}

/** Returns the number of columns of a text on a terminal; East Asian wide letters and pictures take two. */
export function widthOf(text: string): number {
  let width = 0;
  for (const letter of text.replaceAll(/\p{Cc}\[\d+m/gu, "")) {
    const code = letter.codePointAt(0) ?? 0;
    if (/\p{M}|\u200D/u.test(letter)) continue;
    width +=
      code >= 0x1100 &&
      /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}/u.test(
        letter,
      )
        ? 2
        : 1;
  }
  return width;
}

/** Replaces control characters, so that data cannot control the terminal. */
export const safe = (text: string): string => text.replaceAll(/[^\P{Cc}\n\t]/gu, "\uFFFD");

/** Returns the output of a console as plain text: without carriage returns and without sequences that move the cursor or set colours. */
export const plainText = (text: string): string =>
  safe(text.replaceAll("\r", "").replaceAll(/\p{Cc}\[[\d;?]*[A-Za-z]/gu, ""));
