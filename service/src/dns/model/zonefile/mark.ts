/**
 * Marks: comments after records of a zone file, `; brume: own env=prod`. They contain what the format has no syntax for: the labels of a
 * record, the labels of the domain after its SOA, and whether an NS set at the top is the domain's own or the automatic one. Other
 * comments are ignored.
 */
import { type Labels, labelKey, labelValue, maxLabels } from "@brume/api/common.ts";
import { quote } from "../../../base/quote.ts";
import { type NameError, refuseName } from "../name.ts";

/** What the comment of one record contains. */
export interface Mark {
  /** For an NS record at the top: the domain's own record, or part of the automatic set; null: not marked. */
  readonly top: "own" | "automatic" | null;
  /** JSON; null: none are given. */
  readonly labels: string | null;
}

const none: Mark = { top: null, labels: null };

/** Parses the text of a comment. Returns an error for an invalid mark. */
export function readMark(comment: string): Mark | NameError {
  const text = /^\s*brume:(.*)$/s.exec(comment)?.[1];
  if (text === undefined) return none;
  let top: Mark["top"] = null;
  const labels = new Map<string, string>();
  for (const word of text.split(/\s+/)) {
    if (word === "") continue;
    const cut = word.indexOf("=");
    if (word === "own" || word === "automatic") top = word;
    else if (cut > 0 && labelKey.test(word.slice(0, cut)) && labelValue.test(word.slice(cut + 1)))
      labels.set(word.slice(0, cut), word.slice(cut + 1));
    else return refuseName("format_invalid", `the comment must contain labels such as env=prod, not ${quote(word)}`);
  }
  if (labels.size > maxLabels)
    return refuseName("too_long", `the comment must have at most ${maxLabels} labels, not ${labels.size}`);
  return { top, labels: labels.size === 0 ? null : JSON.stringify(Object.fromEntries(labels)) };
}

/** Prints a mark as a comment with a leading blank; "" if it is empty. `labels` is JSON. */
export function printMark(top: Mark["top"], labels: string): string {
  const words = Object.entries(JSON.parse(labels) as Labels).map(([key, value]) => `${key}=${value}`);
  if (top !== null) words.unshift(top);
  return words.length === 0 ? "" : ` ; brume: ${words.join(" ")}`;
}
