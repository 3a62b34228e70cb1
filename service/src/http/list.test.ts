/** Pages by what their objects hold. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "./handler.ts";
import { countFitting, mostParts, takePage } from "./list.ts";

test("a page has as many objects as fit, and at least one", () => {
  const fitting = (sizes: number[]) => countFitting(sizes, 10, (size) => size);
  assert.deepEqual([[], [10], [11], [4, 6], [4, 7], [11, 0], [0, 0, 11]].map(fitting), [0, 1, 1, 2, 1, 1, 2]);
});

test("a page ends at its weight limit, regardless of the requested size, and the next one continues there", () => {
  const rows = [1, 2, 3, 4].map((id) => ({ id, parts: id === 2 ? mostParts + 1 : 1 }));
  type Row = (typeof rows)[number];
  const facets = { id: (row: Row) => row.id, parts: (row: Row) => row.parts };
  const pages: number[][] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Page<Row> = takePage(rows, cursor === "" ? {} : { cursor, limit: 2 }, facets);
    assert.equal(page.total, 4);
    pages.push(page.items.map(({ id }) => id));
    cursor = page.next;
  }
  assert.deepEqual(pages, [[1], [2], [3, 4]]);
});
