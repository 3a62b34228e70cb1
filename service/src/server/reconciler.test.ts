import assert from "node:assert/strict";
import { test } from "node:test";
import { serverRow, machineStatus as status } from "../../../test/support/rows.ts";
import type { Exit } from "../drivers/machine/interface.ts";
import { isRestarted, needOf } from "./reconciler.ts";

const exit = (reason: Exit["reason"]): Exit => ({ reason, at: 5, detail: "" });
const on = serverRow(17);
const off = serverRow(17, { is_on: 0 });

test("needs of a server with an empty queue", () => {
  const running = status({ power: "running" });
  assert.equal(needOf(on, running), "nothing");
  assert.equal(needOf(on, status({ power: "paused", canResume: true })), "reconcile");
  assert.equal(needOf(on, status({ power: "paused", trouble: "IoError" })), "nothing");
  assert.equal(needOf(on, status({ exit: exit("died") })), "restart");
  assert.equal(needOf(on, status({ exit: exit("guest") })), "off");
  assert.equal(needOf(on, status({ exit: exit("order") })), "reconcile");
  assert.equal(needOf(on, null), "reconcile");
  assert.equal(needOf(off, status({ exit: exit("died") })), "nothing");
  assert.equal(needOf(off, running), "reconcile");
  assert.equal(needOf(off, status({ power: "paused" })), "reconcile");
  assert.equal(needOf(off, null), "nothing");
});

test("the exit of an earlier boot is ignored", () => {
  const started = serverRow(17, { boot: 2 });
  assert.equal(needOf(started, status({ boot: 1, exit: exit("guest") })), "reconcile");
});

test("a disk of an old version needs a reconcile", () => {
  const disks = [1, 2].map((version) => ({ version, gb: 10, allocated: 0 }));
  assert.equal(needOf(on, status({ power: "running", disks })), "reconcile");
});

test("a blocked server is off, a failed one is removed, a new or deleted one belongs to its flow", () => {
  const running = status({ power: "running" });
  const of = (state: "Blocked" | "Failed" | "New" | "Deleting") => serverRow(17, { state });
  assert.deepEqual([needOf(of("Blocked"), running), needOf(of("Blocked"), status())], ["reconcile", "nothing"]);
  assert.deepEqual([needOf(of("Failed"), status()), needOf(of("Failed"), null)], ["reconcile", "nothing"]);
  for (const state of ["New", "Deleting"] as const)
    assert.deepEqual([needOf(of(state), running), needOf(of(state), null)], ["nothing", "nothing"]);
});

test("a VM is restarted three times, and each crash counts once", () => {
  assert.deepEqual(
    [[], [1, 2], [1, 2, 3], [1, 2, 4]].map((before) => isRestarted(4, new Set(before))),
    [true, true, false, true],
  );
});
