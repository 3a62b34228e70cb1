/**
 * One page of a list that is read whole: filters of docs/spec.md#lists that SQL does not know (labels, names with `*`), the number
 * that matches, and where the next page begins. Pages go by id, so what is made or deleted in between is never doubled or lost.
 */
import type { Page } from "./handler.ts";
import { decodeCursor, encodeCursor } from "./read/page.ts";
import { matches, nameMatcher, parseSelector, stateMatcher } from "./read/selector.ts";

export interface ListQuery {
  readonly name?: string;
  readonly state?: string;
  readonly label?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** How to see in a row what filters look at. */
export interface Facets<T> {
  id(row: T): number;
  name?(row: T): string;
  state?(row: T): string;
  labels?(row: T): Readonly<Record<string, string>>;
  /** Objects inside it, where there may be many. */
  parts?(row: T): number;
}

/** Rows of a page when only `cursor` is given. */
export const defaultLimit = 100;

/** Objects inside the objects of one answer: what is more comes on the next page, asked for or not (decision 5). */
export const mostParts = 100_000;

/** How many of `rows`, from the first on, are `most` together; the first one may be more alone. */
export function countFitting<T>(rows: readonly T[], most: number, size: (row: T) => number): number {
  let sum = 0;
  for (const [index, row] of rows.entries()) {
    sum += size(row);
    if (sum > most) return Math.max(1, index);
  }
  return rows.length;
}

/** `rows` in ascending order of id. Throws `query_invalid` for a selector or cursor that cannot be read. */
export function takePage<T>(rows: readonly T[], query: ListQuery, facets: Facets<T>): Page<T> {
  const tests: ((row: T) => boolean)[] = [];
  if (query.name !== undefined && facets.name) {
    const test = nameMatcher(query.name);
    const name = facets.name;
    tests.push((row) => test(name(row)));
  }
  if (query.state !== undefined && facets.state) {
    const test = stateMatcher(query.state);
    const state = facets.state;
    tests.push((row) => test(state(row)));
  }
  if (query.label !== undefined && facets.labels) {
    const requirements = parseSelector(query.label);
    const labels = facets.labels;
    tests.push((row) => matches(requirements, labels(row)));
  }
  const matching = tests.length === 0 ? rows : rows.filter((row) => tests.every((test) => test(row)));
  const after = query.cursor === undefined ? 0 : decodeCursor(query.cursor).id;
  const rest = after === 0 ? matching : matching.filter((row) => facets.id(row) > after);
  const limit = query.limit ?? (query.cursor === undefined ? rest.length : defaultLimit);
  const asked = rest.slice(0, limit);
  const items = facets.parts ? asked.slice(0, countFitting(asked, mostParts, facets.parts)) : asked;
  const last = items.at(-1);
  return {
    items,
    total: matching.length,
    next: rest.length > items.length && last !== undefined ? encodeCursor({ id: facets.id(last) }) : null,
  };
}
