import assert from "node:assert/strict";
import { test } from "node:test";
import { flow } from "./flow.ts";
import { type LiveTask, postpone } from "./transition.ts";

test("the facts of a step that waits are kept for its next run", () => {
  const waiting = flow({ name: "test", subject: "server", steps: [{ name: "Wait" }] });
  const row = { step: "Wait", step_until: null, deadline_at: null, begun_at: 0, ending: null, facts: '{"a":1}' };
  const live = { row, records: [], facts: { a: 1 }, input: null } as unknown as LiveTask;
  const { live: next } = postpone(waiting, live, { wait: 50, facts: { b: 2 } }, 1000);
  assert.deepEqual([next.row.due_at, next.facts, JSON.parse(next.row.facts)], [1050, { a: 1, b: 2 }, { a: 1, b: 2 }]);
});
