/**
 * Rules across the fields of a request object, as data: forms that exclude each other, and fields that need another field. The OpenAPI
 * document shows each form as a schema (`oneOf`), and strict mode checks the forms (docs/spec.md#strict-mode). In lenient mode the
 * handlers decide, because existing clients send fields that a form does not use.
 */

/** One form of a request. Exactly one form of an object matches a valid request. */
export interface Form<Name extends string = string> {
  /** Name of the form in the OpenAPI document. */
  readonly title: string;
  readonly description: string;
  /** Values of fields that select the form; `null`: the field is absent. */
  readonly where?: { readonly [N in Name]?: readonly (string | boolean | null)[] };
  /** Fields that the form requires: present, not `null` and not empty. */
  readonly needs?: readonly Name[];
  /** Fields that the form does not have: absent or `null`. */
  readonly without?: readonly Name[];
}

/** Option of a request object: its forms. */
export const forms = <const F extends readonly Form[]>(all: F) => ({ "x-forms": all });

/** Option of a request object: each field of the table needs the field that it names. */
export const requires = (table: Readonly<Record<string, string>>) => ({ "x-requires": table });

/** Returns whether a value is present for a form that needs it. */
export const isPresent = (value: unknown): boolean => value !== undefined && value !== null && value !== "";

/** Returns whether a value is absent. */
export const isAbsent = (value: unknown): boolean => value === undefined || value === null;

const matchesWord = (value: unknown, words: readonly unknown[]): boolean =>
  isPresent(value) ? words.includes(value) : words.includes(null);

/** Error of a form: the field and what is wrong with it. */
export interface FormProblem {
  readonly field: string;
  readonly code: "field_required" | "fields_conflict" | "value_not_allowed";
  readonly detail: string;
}

/** Returns the errors of a request by its forms. `valueOf` returns the value of a field as sent. */
export function checkForms(all: readonly Form[], valueOf: (field: string) => unknown): FormProblem[] {
  const selected = all.filter(({ where = {} }) =>
    Object.entries(where).every(([field, words]) => matchesWord(valueOf(field), words ?? [])),
  );
  if (selected.length === 0) return unselected(all, valueOf);
  const problems = selected.map((form) => problemsOf(form, valueOf));
  if (problems.some((found) => found.length === 0)) return [];
  const isStarted = ({ needs = [] }: Form): boolean => needs.some((field) => isPresent(valueOf(field)));
  const started = selected.findIndex(isStarted);
  return problems[Math.max(0, started)] ?? [];
}

/** Returns the error of the field that selects no form. */
function unselected(all: readonly Form[], valueOf: (field: string) => unknown): FormProblem[] {
  const selectors = [...new Set(all.flatMap(({ where = {} }) => Object.keys(where)))];
  let candidates = all;
  for (const field of selectors) {
    const value = valueOf(field);
    const matching = candidates.filter(({ where = {} }) => matchesWord(value, where[field] ?? [value, null]));
    if (matching.length > 0) {
      candidates = matching;
      continue;
    }
    if (!isPresent(value)) return [{ field, code: "field_required", detail: `${field} is required.` }];
    const words = candidates.flatMap(({ where = {} }) => where[field] ?? []).filter((word) => word !== null);
    const detail = `${field} must be ${words.length === 1 ? "" : "one of "}${words.join(", ")}, or absent.`;
    return [{ field, code: "value_not_allowed", detail }];
  }
  return [];
}

const wordOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "boolean" ? String(value) : "absent";

function problemsOf(
  { where = {}, needs = [], without = [] }: Form,
  valueOf: (field: string) => unknown,
): FormProblem[] {
  const words = Object.keys(where).map((field) => `${field} ${wordOf(valueOf(field))}`);
  const suffix = words.length === 0 ? "" : ` with ${words.join(" and ")}`;
  return [
    ...needs.flatMap((field): FormProblem[] =>
      isPresent(valueOf(field)) ? [] : [{ field, code: "field_required", detail: `${field} is required${suffix}.` }],
    ),
    ...without.flatMap((field): FormProblem[] =>
      isAbsent(valueOf(field))
        ? []
        : [
            {
              field,
              code: "fields_conflict",
              detail: `${field} must not be sent${suffix === "" ? ` together with ${needs.join(" and ")}` : suffix}.`,
            },
          ],
    ),
  ];
}

/** Returns the errors of fields that need another field. */
export function checkRequires(
  table: Readonly<Record<string, string>>,
  valueOf: (field: string) => unknown,
): FormProblem[] {
  return Object.entries(table).flatMap(([field, needed]): FormProblem[] =>
    isAbsent(valueOf(field)) || isPresent(valueOf(needed))
      ? []
      : [{ field, code: "fields_conflict", detail: `${field} requires ${needed}.` }],
  );
}
