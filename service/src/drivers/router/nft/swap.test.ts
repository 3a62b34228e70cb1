import assert from "node:assert/strict";
import { test } from "node:test";
import type { NamespaceState } from "../linux/snapshot.ts";
import { digestOf, tableText } from "./firewall.ts";
import { activeOf, generationLine, removalText, staleOf, swap } from "./swap.ts";

const text = tableText("inet", "edge", ["chain forward {", "  accept", "}"]);

/** An observation of tables with these counters. */
const found = (tables: Readonly<Record<string, readonly string[]>>) =>
  ({
    counters: new Map(
      Object.entries(tables).map(([table, names]) => [
        table,
        new Map(names.map((name) => [name, { packets: 0, bytes: 0 }])),
      ]),
    ),
    rules: Object.keys(tables)
      .map((table) => `table inet ${table} {\n}\n`)
      .join(""),
  }) as unknown as NamespaceState;

test("a table is loaded inactive, and activated by a step that deletes nothing", () => {
  const active = { name: "edge0", digest: digestOf(text) };
  const first = swap("edge", text, null, []);
  assert.deepEqual(first, {
    first:
      "create table inet edge0 { flags dormant; }\ntable inet edge0 {\n  flags dormant;\n  chain forward {\n    accept\n  }\n}\n",
    second: `add table inet edge0\nadd counter inet edge0 d_${active.digest}\n`,
    past: "",
    active,
  });
  const next = swap("edge", text, active, ["edge1"]);
  assert.match(
    next.first,
    /^delete table inet edge1\ncreate table inet edge1 \{ flags dormant; \}\ntable inet edge1 \{\n {2}flags dormant;\n/,
  );
  assert.match(next.second, /^add table inet edge0 \{ flags dormant; \}$/m);
  assert.deepEqual(next.second.match(/^(?!add )./gm), null);
  assert.equal(next.past, "delete table inet edge0\n");
  const last = { name: "lock1", digest: "" };
  assert.match(swap("lock", text, last, []).second, /^add table bridge lock0$/m);
  const many = tableText("inet", "edge", ["chain forward {", "  accept", "}", "x".repeat(2 ** 18)]);
  assert.match(swap("edge", many, active, []).second, /^flush chain inet edge0 forward$/m);
  assert.match(swap("lock", many, last, []).second, /^add table bridge lock1 \{ flags dormant; \}$/m);
});

test("after an interruption at any point the active table is known, and others are stale", () => {
  const cases: readonly (readonly [Readonly<Record<string, readonly string[]>>, string | null, readonly string[]])[] = [
    [{}, null, []],
    [{ edge0: ["rest"] }, null, ["edge0"]],
    [{ edge0: ["d_1"], edge1: ["rest"] }, "edge0", ["edge1"]],
    [{ edge0: ["d_1", "past"], edge1: ["d_2", "g_7"] }, "edge1", ["edge0"]],
    [{ edge1: ["d_2"], guard0: ["d_3"] }, "edge1", []],
    // As an earlier version called them.
    [{ edge1: ["rest"], edge2: ["d_4"] }, "edge2", ["edge1"]],
  ];
  for (const [tables, active, stale] of cases) {
    assert.equal(activeOf(found(tables), "edge")?.name ?? null, active);
    assert.deepEqual(staleOf(found(tables), "edge"), stale);
  }
  assert.equal(removalText("lock", ["lock0", "lock1"]), "delete table bridge lock0\ndelete table bridge lock1\n");
  assert.equal(generationLine({ name: "edge1", digest: "" }, 7), "add counter inet edge1 g_7\n");
});
