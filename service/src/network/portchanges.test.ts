import assert from "node:assert/strict";
import { test } from "node:test";
import { createPortChanges } from "./portchanges.ts";

const never = Number.POSITIVE_INFINITY;

test("ports that changed since the applied generation are returned once", () => {
  const changes = createPortChanges();
  assert.equal(changes.take(1, 1, 0), null);
  changes.applied(1, 1, never);
  changes.note(1, 2, [10]);
  changes.note(1, 3, [11, 12]);
  changes.note(2, 2, [99]);
  assert.deepEqual(changes.take(1, 3, 0), { from: 1, links: [11, 12, 10], next: never });
  changes.applied(1, 3, never);
  assert.equal(changes.take(1, 3, 0), null);
  changes.touch(1, [11]);
  assert.deepEqual(changes.take(1, 3, 0), { from: 3, links: [11], next: never });
});

test("an unknown change needs a complete apply", () => {
  const changes = createPortChanges();
  changes.applied(1, 1, never);
  changes.note(1, 2, [10]);
  changes.note(1, 4, [11]);
  assert.equal(changes.take(1, 4, 0), null, "generation 3 is not known");
  changes.applied(1, 4, never);
  changes.note(1, 5, [10]);
  changes.note(1, 6, null);
  assert.equal(changes.take(1, 6, 0), null, "generation 6 changes anything");
  // Rolled back and used again: what the first transaction noted stays.
  changes.applied(1, 6, never);
  changes.note(1, 7, null);
  changes.note(1, 7, [10]);
  assert.equal(changes.take(1, 7, 0), null);
  changes.applied(1, 7, never);
  changes.note(1, 8, [10]);
  changes.note(1, 8, [11]);
  assert.deepEqual(changes.take(1, 8, 0)?.links, [10, 11]);
  changes.applied(1, 8, never);
  assert.equal(changes.take(1, 5, 0), null, "an older database was restored");
});

test("a complete apply is due at its time, and after drift", () => {
  const changes = createPortChanges();
  changes.applied(1, 1, 1000);
  changes.touch(1, [10]);
  assert.deepEqual(changes.take(1, 1, 999), { from: 1, links: [10], next: 1000 });
  changes.touch(1, [10]);
  assert.equal(changes.take(1, 1, 1000), null);
  changes.applied(1, 1, never);
  changes.touch(1, [10]);
  changes.forget(1);
  assert.equal(changes.take(1, 1, 0), null);
});
