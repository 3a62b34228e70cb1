import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachinesStatus, PowerEvent } from "../drivers/machine/interface.ts";
import { createMachineStatusCache } from "./machinestatus.ts";

test("one check is requested for all starts and ends that it takes", () => {
  const capacity = { cores: 1, memory: 1, disk: 1, diskFree: 1 };
  const status: MachinesStatus = { ready: true, detail: "", accelerator: null, capacity, machines: [] };
  let report: (event: PowerEvent) => void = () => {};
  const requested: number[] = [];
  const driver = {
    observe: async () => status,
    onPower(listener: (event: PowerEvent) => void) {
      report = listener;
      return () => {};
    },
  };
  const cache = createMachineStatusCache(driver, { now: () => 0 }, (id) => requested.push(id));
  for (const id of [4, 5, 6]) report({ id, boot: 1, exit: null });
  assert.deepEqual(requested, [4]);
  assert.deepEqual(cache.takeReported(), [4, 5, 6]);
  report({ id: 5, boot: 1, exit: { reason: "died", at: 0, detail: "" } });
  assert.deepEqual(requested, [4, 5]);
  assert.deepEqual([cache.power(4), cache.power(5)], [true, false]);
});
