import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitForStart } from "./daemon.ts";

const child = { pid: 1, born: 1 };
const alive = { isAlive: () => true };

test("a start ends with the first response, with the program, and at the limit although each attempt hangs", async () => {
  let attempts = 0;
  const respond = async () => (++attempts < 3 ? null : "up");
  assert.deepEqual([await waitForStart(alive, child, respond), attempts], ["up", 3]);
  assert.equal(await waitForStart({ isAlive: () => attempts++ < 5 }, child, async () => null), null);
  attempts = 0;
  const hang = async () => {
    attempts++;
    await sleep(60);
    return null;
  };
  assert.equal(await waitForStart(alive, child, hang, 100), null);
  assert.ok(attempts <= 2, `${attempts} attempts of 60 ms in 100 ms`);
});
