/**
 * What a master file has no words for stands in comments behind records, `; brume: own env=prod`: the labels of a record, and whether
 * an NS set at the top is the domain's own or the automatic one. Other comments mean nothing.
 */
import { type Labels, labelKey, labelValue, maxLabels } from "@brume/api/common.ts";
import { quote } from "../../../base/quote.ts";
import { type NameError, refuseName } from "../name.ts";

export interface Mark {
  /** Of an NS record at the top: kept as the domain's own, or replaced by the automatic set; null: the file does not say. */
  readonly top: "own" | "automatic" | null;
  /** JSON; null: none are given. */
  readonly labels: string | null;
}

const none: Mark = { top: null, labels: null };

/** Reads the text of a comment. A refusal for a mark that is none. */
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
    else return refuseName("format_invalid", `the comment must hold labels such as env=prod, not ${quote(word)}`);
  }
  if (labels.size > maxLabels)
    return refuseName("too_long", `the comment must hold at most ${maxLabels} labels, not ${labels.size}`);
  return { top, labels: labels.size === 0 ? null : JSON.stringify(Object.fromEntries(labels)) };
}

/** The comment of a mark with the blank before it, "" for none. `labels` is JSON. */
export function printMark(top: Mark["top"], labels: string): string {
  const words = Object.entries(JSON.parse(labels) as Labels).map(([key, value]) => `${key}=${value}`);
  if (top !== null) words.unshift(top);
  return words.length === 0 ? "" : ` ; brume: ${words.join(" ")}`;
}
