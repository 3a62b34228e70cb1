/**
 * Creates one page of a list from all its rows: the filters of docs/spec.md#lists that SQL cannot express (labels, names with `*`), the
 * number of matches, and the cursor of the next page. Pages are ordered by id, so objects that are created or deleted between two pages
 * cause no gaps and no duplicates.
 */
import type { Page } from "./handler.ts";
import { decodeCursor, encodeCursor } from "./read/page.ts";
import { matches, nameMatcher, parseSelector, stateMatcher } from "./read/selector.ts";

/** Filters and page of a query; each list accepts those of its schema. */
export interface ListQuery {
  readonly name?: string;
  readonly state?: string;
  readonly label?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** Functions that return the filtered properties of a row. */
export interface Facets<T> {
  id(row: T): number;
  name?(row: T): string;
  state?(row: T): string;
  labels?(row: T): Readonly<Record<string, string>>;
  /** Number of objects inside the row, if there may be many, such as the records of a domain. */
  parts?(row: T): number;
}

/** Returns the page of a request without filters, which SQL can select directly; null: the request needs the complete list. */
export function plainPage(
  query: ListQuery & Readonly<Record<string, unknown>>,
): { readonly limit: number; readonly after: number } | null {
  const { limit, cursor, ...filters } = query;
  if (limit === undefined && cursor === undefined) return null;
  if (Object.values(filters).some((value) => value !== undefined)) return null;
  return { limit: limit ?? defaultLimit, after: cursor === undefined ? 0 : decodeCursor(cursor).id };
}

/** Cuts a page of `limit` rows out of `rows`, which may contain one more. `parts` as in `Facets`. */
export function cutPage<T extends { readonly id: number }>(
  rows: readonly T[],
  limit: number,
  parts: (row: T) => number = () => 0,
): { readonly items: readonly T[]; readonly next: string | null } {
  const selected = rows.slice(0, limit);
  const items = selected.slice(0, countFitting(selected, mostParts, parts));
  const last = items.at(-1);
  return { items, next: rows.length > items.length && last !== undefined ? encodeCursor({ id: last.id }) : null };
}

/** Rows of a page if the request has a `cursor` but no `limit`. */
export const defaultLimit = 100;

/** Maximum number of objects inside the objects of one page; a page ends early rather than exceed it (decision 5). */
export const mostParts = 100_000;

/** Returns how many rows, from the first on, have a total size of at most `most`; at least 1. */
export function countFitting<T>(rows: readonly T[], most: number, size: (row: T) => number): number {
  let sum = 0;
  for (const [index, row] of rows.entries()) {
    sum += size(row);
    if (sum > most) return Math.max(1, index);
  }
  return rows.length;
}

/** Returns a page of `rows`, which are in ascending order of id. Throws `query_invalid` for a malformed selector or cursor. */
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
  const selected = rest.slice(0, limit);
  const items = facets.parts ? selected.slice(0, countFitting(selected, mostParts, facets.parts)) : selected;
  const last = items.at(-1);
  return {
    items,
    total: matching.length,
    next: rest.length > items.length && last !== undefined ? encodeCursor({ id: facets.id(last) }) : null,
  };
}
