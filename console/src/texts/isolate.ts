/**
 * Names within sentences. A name of the other direction, or with characters that change the direction, must not turn the words after it:
 * `delete abc\u202e?` would read as another question.
 */

/** Characters of scripts that run from right to left, and characters that change the direction. */
const turning = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;
const controls = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Returns the name between "first strong isolate" and "pop directional isolate", without characters that would end these. */
export const isolate = (name: string): string =>
  turning.test(name) ? `\u2068${name.replaceAll(controls, "")}\u2069` : name;

/** Returns a line with its characters that change the direction in words, `\\u{202e}`: what is reviewed must read in its order. */
export const inOrder = (line: string): string =>
  line.replaceAll(controls, (control) => `\\u{${control.charCodeAt(0).toString(16)}}`);

const unseen = /\p{Default_Ignorable_Code_Point}/gu;

/** Returns what a user sees of a name and can type: without invisible characters, and with one space where the name has several. */
export const visible = (name: string): string => name.normalize().replaceAll(unseen, "").replaceAll(/\s+/g, " ").trim();

/** Returns the texts of a language, whose functions isolate the names that they get. Each group is made when it is first read: a page reads few. */
export function isolated<T extends object>(texts: T): T {
  const made = {};
  for (const [key, text] of Object.entries(texts) as [string, unknown][]) {
    const define = (value: unknown): unknown => {
      Object.defineProperty(made, key, { value, enumerable: true, configurable: true });
      return value;
    };
    if (typeof text === "function")
      define((...args: unknown[]) => Reflect.apply(text, texts, args.map(isolatedArgument)) as unknown);
    else if (typeof text === "object" && text !== null && !Array.isArray(text))
      Object.defineProperty(made, key, { get: () => define(isolated(text)), enumerable: true, configurable: true });
    else define(text);
  }
  return made as T;
}

const isolatedArgument = (value: unknown): unknown => (typeof value === "string" ? isolate(value) : value);
