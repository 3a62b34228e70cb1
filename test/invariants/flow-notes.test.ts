/** What a step reports while it works. */
import assert from "node:assert/strict";
import { flow } from "../../service/src/engine/flow.ts";
import {
  begin,
  createFixtureEngine,
  createGate,
  createTestAlarm,
  invariant,
  mustFind,
} from "../support/enginefixture.ts";

invariant("a step reports its progress while it runs", async (store) => {
  const alarm = createTestAlarm();
  const gate = createGate();
  const told: string[] = [];
  const busy = flow({
    name: "sample.busy",
    subject: "sample",
    steps: [
      {
        name: "Disk",
        async do({ note }) {
          note?.("10 %");
          note?.("11 %");
          await gate.pass();
          return { detail: "whole" };
        },
      },
    ],
    announce: async (_tx, { steps }, what) => void told.push(`${what}: ${steps[0]?.detail}`),
  });
  const engine = createFixtureEngine(store, alarm, { flows: [busy] });
  engine.run();
  const { id } = await begin(store, busy, 1, alarm.now());
  await gate.reached;
  alarm.pass(1000);
  const detail = async () => (await mustFind(store, id)).steps[0]?.detail;
  while ((await detail()) === "") await new Promise(setImmediate);
  const task = await mustFind(store, id);
  assert.deepEqual([task.state, task.steps[0]?.state, await detail()], ["InProgress", "InProgress", "11 %"]);
  gate.open();
  await engine.idle();
  assert.deepEqual([(await mustFind(store, id)).state, await detail()], ["Completed", "whole"]);
  assert.deepEqual(told.slice(-2), ["changed: 11 %", "ended: whole"]);
  await engine.drain();
});
