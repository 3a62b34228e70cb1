/** Converts an error to what a person can act on: cause, remedy and the id of the request. */
import { ApiError, ConnectionError } from "@brume/api/client.ts";
import { withoutField } from "../texts/detail.ts";
import type { Texts } from "../texts/en.ts";
import type { ErrorText } from "../ui/feedback.tsx";

/** An error of the console that a person can act on, such as a change by another client. `message`: its sentence. */
export class Conflict extends Error {}

export function errorText(error: unknown, t: Texts): ErrorText {
  if (error instanceof ApiError) {
    const details = [error.detail, ...error.errors.map(({ detail }) => detail).filter((one) => one !== error.detail)];
    return {
      title: t.errors.titles[error.code] ?? error.problem?.title ?? t.errors.title,
      cause: details.map(t.errors.detail).join(" "),
      remedy: t.errors.remedies[error.code] ?? "",
      requestId: error.requestId,
    };
  }
  if (error instanceof ConnectionError)
    return { title: t.errors.title, cause: t.errors.noAnswer, remedy: t.errors.noAnswerRemedy, requestId: "" };
  if (error instanceof Conflict) return { title: t.errors.title, cause: error.message, remedy: "", requestId: "" };
  return { title: t.errors.broken, cause: String(error), remedy: t.errors.brokenRemedy, requestId: "" };
}

/** The errors of a form, which its fields take when they are rendered. */
export interface PlacedErrors {
  /** Returns the first error at a pointer, or of an element below it. The field takes the others too: each follows when the one before it is corrected. */
  at(pointer: string): string | undefined;
  /** Returns whether a field has taken each error. */
  areTaken(): boolean;
}

/** Places the errors of fields. What no field takes, the form must show itself. */
export function placeErrors(error: unknown, t: Texts): PlacedErrors {
  const errors = Object.entries(errorsOf(error, t));
  const taken = new Set<string>();
  return {
    at(pointer) {
      const found = errors.filter(([at]) => at === pointer || at.startsWith(`${pointer}/`));
      for (const [at] of found) taken.add(at);
      return found[0] && withCapital(withoutField(...found[0]));
    },
    areTaken: () => errors.length > 0 && errors.every(([pointer]) => taken.has(pointer)),
  };
}

export const withCapital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Returns the first error of each field by its pointer: `/Name`, `/Labels/a`. They have the order of the response. */
export function errorsOf(error: unknown, t: Texts): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  if (error instanceof ApiError)
    for (const { pointer, detail } of error.errors) found[pointer] ??= t.errors.detail(detail);
  return found;
}
