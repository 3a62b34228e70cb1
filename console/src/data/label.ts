/** Labels as a person types them. Pure. */

export type Labels = Readonly<Record<string, string>>;

/** What changes in the labels of objects: pairs to set, and keys to remove. */
export interface LabelChange {
  readonly add: Labels;
  readonly remove: readonly string[];
}

const parts = (text: string): string[] =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** Returns the labels of `stage=test, team=web`. A key without a value has an empty one. */
export const readLabels = (text: string): Labels =>
  Object.fromEntries(
    parts(text).map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [part, ""] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    }),
  );

/** Returns the keys of `stage, team=web`. */
export const readKeys = (text: string): string[] => Object.keys(readLabels(text));

/** Returns each label as `stage=test`, or as its key if it has no value. */
export const labelTexts = (labels: Labels): string[] =>
  Object.entries(labels).map(([key, value]) => (value === "" ? key : `${key}=${value}`));

export const labelText = (labels: Labels): string => labelTexts(labels).join(", ");

/** Returns the labels after the change. */
export function changeLabels(labels: Labels, { add, remove }: LabelChange): Labels {
  const rest = Object.entries(labels).filter(([key]) => !remove.includes(key));
  return { ...Object.fromEntries(rest), ...add };
}
