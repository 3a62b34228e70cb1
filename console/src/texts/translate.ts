/**
 * Translates sentences of the service by a table of templates. The API has English texts only; the console shows them in another language.
 *
 * `{1}` in a template is a value, which is inserted as it came. `{a}` is a phrase, which must be in the table too, and `{A}` a sentence.
 * `{a?}` is a phrase, a sentence with or without its dot, or a value. A value ends where the text after it begins for the first time, so the time
 * is linear in the length of any text.
 */

import { isolate } from "./isolate.ts";

/** A template and its translation, with the same values and phrases in any order. */
export type Entry = readonly [template: string, translation: string];

/** Sentences are complete details. Phrases are parts of them. */
export interface Table {
  readonly sentences: readonly Entry[];
  readonly phrases: readonly Entry[];
}

export interface Translation {
  readonly text: string;
  /** The entries that it consists of. */
  readonly used: readonly Entry[];
  /** Characters of the templates: of several translations, the one with the most is the most exact. */
  readonly weight: number;
}

interface Compiled {
  readonly entry: Entry;
  /** Text before, between and after the gaps. */
  readonly texts: readonly string[];
  readonly gaps: readonly { readonly name: string; readonly kind: Kind; readonly mayBeValue: boolean }[];
  readonly weight: number;
}

type Kind = "value" | "phrase" | "sentence";

const gap = /\{([1-9]|[A-Za-z]\??)\}/;
const kindOf = (name: string): Kind => (name <= "9" ? "value" : name >= "a" ? "phrase" : "sentence");
/** Most sentences of one detail, and most levels of phrases. */
const mostSentences = 8;
const deepest = 5;

function compile(entry: Entry): Compiled {
  const parts = entry[0].split(gap);
  const texts = parts.filter((_, index) => index % 2 === 0);
  const gaps = parts
    .filter((_, index) => index % 2 === 1)
    .map((name) => ({ name, kind: kindOf(name), mayBeValue: name.endsWith("?") }));
  return { entry, texts, gaps, weight: texts.join("").length };
}

/** Returns where `part` begins in `text`, not before `from`; -1: nowhere. */
type Search = (text: string, part: string, from: number) => number;

/** Returns the values of the gaps; null: the text has another form. */
function valuesOf({ texts, gaps }: Compiled, text: string, search: Search): string[] | null {
  const first = texts[0] ?? "";
  const last = texts.at(-1) ?? "";
  if (gaps.length === 0) return text === first ? [] : null;
  if (!text.startsWith(first) || !text.endsWith(last)) return null;
  const end = text.length - last.length;
  const values: string[] = [];
  let at = first.length;
  for (const next of texts.slice(1, -1)) {
    const found = search(text, next, at);
    if (found === -1 || found + next.length > end) return null;
    values.push(text.slice(at, found));
    at = found + next.length;
  }
  if (at > end) return null;
  values.push(text.slice(at, end));
  return values;
}

/** Returns a function that translates a text; null: the table does not have it. The table is compiled at the first call. */
export function createTranslator(
  table: Table,
  search: Search = (text, part, from) => text.indexOf(part, from),
): (text: string) => Translation | null {
  let compiled: { readonly sentences: readonly Compiled[]; readonly phrases: readonly Compiled[] } | undefined;

  function best(all: readonly Compiled[], text: string, depth: number): Translation | null {
    let found: Translation | null = null;
    for (const one of all) {
      if (one.gaps.every(({ kind }) => kind === "value") && one.weight <= (found?.weight ?? -1)) continue;
      const values = valuesOf(one, text, search);
      const next = values === null ? null : fill(one, values, depth);
      if (next !== null && next.weight > (found?.weight ?? -1)) found = next;
    }
    return found;
  }

  function fill({ entry, gaps, weight }: Compiled, values: readonly string[], depth: number): Translation | null {
    const inserted = new Map<string, string>();
    const used = [entry];
    let sum = weight;
    for (const [index, { name, kind, mayBeValue }] of gaps.entries()) {
      const value = values[index] ?? "";
      const phrase = kind === "value" || depth === deepest ? null : partOf(value, kind, mayBeValue, depth + 1);
      if (kind !== "value" && !mayBeValue && phrase === null) return null;
      inserted.set(name, phrase?.text ?? isolate(value));
      used.push(...(phrase?.used ?? []));
      sum += phrase?.weight ?? 0;
    }
    // In one pass: a value may look like a gap.
    const text = entry[1].replaceAll(new RegExp(gap, "g"), (_, name: string) => inserted.get(name) ?? "");
    return { text, used, weight: sum };
  }

  /** Translates a phrase or a sentence within another text. */
  function partOf(value: string, kind: "phrase" | "sentence", mayBeValue: boolean, depth: number): Translation | null {
    if (compiled === undefined) return null;
    if (kind === "sentence") return best(compiled.sentences, value, depth);
    const found = best(compiled.phrases, value, depth);
    if (found !== null || !mayBeValue) return found;
    // The reason of an error is a sentence with its dot, or one without.
    if (value.endsWith(".")) return best(compiled.sentences, value, depth);
    const sentence = best(compiled.sentences, `${value}.`, depth);
    return sentence && { ...sentence, text: sentence.text.replace(/\.$/, "") };
  }

  /** Translates a text of several sentences, if each of them is in the table. */
  function eachSentence(text: string, all: readonly Compiled[]): Translation | null {
    const texts: Translation[] = [];
    let start = 0;
    for (let n = 0, end = text.indexOf(". "); n < mostSentences; n++, end = text.indexOf(". ", end + 1)) {
      const found = best(all, text.slice(start, end === -1 ? undefined : end + 1), 0);
      if (found !== null) texts.push(found);
      if (end === -1)
        return found === null
          ? null
          : {
              text: texts.map((one) => one.text).join(" "),
              used: texts.flatMap(({ used }) => used),
              weight: texts.reduce((sum, { weight }) => sum + weight, 0),
            };
      if (found !== null) start = end + 2;
    }
    return null;
  }

  return (text) => {
    compiled ??= { sentences: table.sentences.map(compile), phrases: table.phrases.map(compile) };
    const whole = best(compiled.sentences, text, 0);
    const each = text.includes(". ") ? eachSentence(text, compiled.sentences) : null;
    return each !== null && each.weight > (whole?.weight ?? -1) ? each : whole;
  };
}
