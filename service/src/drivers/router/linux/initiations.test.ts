import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createInitiations, type Initiation } from "./initiations.ts";

const peers = (fails: readonly number[] = []) => {
  const started: number[] = [];
  const initiationOf = (tunnel: number): Initiation => ({
    tunnel,
    async start() {
      started.push(tunnel);
      if (fails.includes(tunnel)) throw new Error("it is not loaded");
    },
  });
  return { started, initiationsOf: (...tunnels: readonly number[]) => tunnels.map(initiationOf) };
};

test("peers are contacted one after the other, in order", () => {
  const { started, initiationsOf } = peers();
  const initiations = createInitiations();
  initiations.replace(initiationsOf(1, 2, 3, 4));
  assert.deepEqual(started, [1, 2]);
  initiations.end(2);
  assert.deepEqual(started, [1, 2, 3]);
  initiations.end(9);
  initiations.end(2);
  assert.deepEqual(started, [1, 2, 3], "ending an initiation that does not run frees no slot");
  initiations.end(1);
  assert.deepEqual(started, [1, 2, 3, 4]);
});

test("a peer that was just contacted, or is up, is not contacted", () => {
  const { started, initiationsOf } = peers();
  const initiations = createInitiations();
  initiations.replace(initiationsOf(1, 2, 3, 4));
  initiations.replace(initiationsOf(1, 2, 3, 4));
  initiations.end(3);
  initiations.end(1);
  initiations.end(2);
  assert.deepEqual(started, [1, 2, 4]);
});

test("peers that do not respond do not delay others", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { started, initiationsOf } = peers();
  createInitiations().replace(initiationsOf(1, 2, 3, 4, 5));
  t.mock.timers.tick(499);
  assert.deepEqual(started, [1, 2]);
  t.mock.timers.tick(1);
  assert.deepEqual(started, [1, 2, 3, 4]);
  t.mock.timers.tick(500);
  assert.deepEqual(started, [1, 2, 3, 4, 5]);
});

test("a restarted peer is not contacted, and a failed initiation frees its slot", async () => {
  const { started, initiationsOf } = peers([1]);
  const initiations = createInitiations();
  initiations.replace(initiationsOf(1, 2, 3));
  initiations.replace(initiationsOf(4));
  assert.deepEqual(started, [1, 2]);
  await turn();
  assert.deepEqual(started, [1, 2, 4]);
});
