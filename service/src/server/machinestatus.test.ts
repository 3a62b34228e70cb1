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

test("the revision grows exactly when the power of a VM changes", async () => {
  const capacity = { cores: 1, memory: 1, disk: 1, diskFree: 1 };
  let machines: { id: number; power: "on" | "off"; usage: null }[] = [];
  let report: (event: PowerEvent) => void = () => {};
  const driver = {
    observe: async () =>
      ({ ready: true, detail: "", accelerator: null, capacity, machines }) as unknown as MachinesStatus,
    onPower(listener: (event: PowerEvent) => void) {
      report = listener;
      return () => {};
    },
  };
  const cache = createMachineStatusCache(driver, { now: () => 0 }, () => {});
  let before = cache.revision();
  const hasChanged = (): boolean => {
    const earlier = before;
    before = cache.revision();
    return before > earlier;
  };
  const died = { reason: "died", at: 0, detail: "" } as const;
  report({ id: 1, boot: 1, exit: null });
  assert.ok(hasChanged(), "a start");
  report({ id: 1, boot: 1, exit: null });
  assert.ok(!hasChanged(), "the same again");
  report({ id: 1, boot: 1, exit: died });
  assert.ok(hasChanged(), "an end");
  machines = [
    { id: 1, power: "on", usage: null },
    { id: 2, power: "off", usage: null },
  ];
  await cache.observe();
  assert.ok(hasChanged(), "an observed start");
  await cache.observe();
  assert.ok(!hasChanged(), "the same observation");
  machines = [{ id: 2, power: "on", usage: null }];
  await cache.observeServers([2]);
  assert.ok(hasChanged(), "an observed start of one server");
  await cache.observe();
  assert.ok(hasChanged(), "a VM that is gone");
  assert.deepEqual([cache.power(1), cache.power(2)], [false, true]);
});

test("a start that is reported during an observation is not overridden by it", async () => {
  const capacity = { cores: 1, memory: 1, disk: 1, diskFree: 1 };
  const machines = [{ id: 1, power: "off", usage: null }];
  const status = { ready: true, detail: "", accelerator: null, capacity, machines } as unknown as MachinesStatus;
  let report: (event: PowerEvent) => void = () => {};
  let end = (): void => {};
  const driver = {
    observe: () => new Promise<MachinesStatus>((resolve) => (end = () => resolve(status))),
    onPower(listener: (event: PowerEvent) => void) {
      report = listener;
      return () => {};
    },
  };
  const cache = createMachineStatusCache(driver, { now: () => 0 }, () => {});
  for (const observe of [() => cache.observe(), () => cache.observeServers([1])]) {
    for (const isReported of [true, false]) {
      const observing = observe();
      if (isReported) report({ id: 1, boot: 1, exit: null });
      end();
      await observing;
      assert.equal(cache.power(1), isReported);
    }
    assert.equal(cache.power(1), false, "a later observation counts");
  }
});

test("an observation that began before a failed one is not the recent one", async () => {
  const capacity = { cores: 1, memory: 1, disk: 1, diskFree: 1 };
  const status: MachinesStatus = { ready: true, detail: "", accelerator: null, capacity, machines: [] };
  const ends: PromiseWithResolvers<MachinesStatus>[] = [];
  const driver = {
    observe() {
      const end = Promise.withResolvers<MachinesStatus>();
      ends.push(end);
      return end.promise;
    },
    onPower: () => () => {},
  };
  const cache = createMachineStatusCache(driver, { now: () => 0 }, () => {});
  const [all, host] = [cache.observe(), cache.observeServers([])];
  ends[1]?.reject(new Error("no response"));
  await assert.rejects(host);
  ends[0]?.resolve(status);
  assert.equal(await all, status);
  const recent = cache.recent();
  ends[2]?.resolve({ ...status, ready: false });
  assert.equal((await recent).ready, false, "the host is observed again");
});

test("equal states of a VM are one object, and its usage is that of the last observation", async () => {
  const capacity = { cores: 1, memory: 1, disk: 1, diskFree: 1 };
  let machine = { id: 1, power: "running", disks: [{ version: 1, gb: 2 }], usage: { cpuTime: 5 } };
  const driver = {
    observe: async () =>
      structuredClone({
        ready: true,
        detail: "",
        accelerator: null,
        capacity,
        machines: [machine],
      }) as unknown as MachinesStatus,
    onPower: () => () => {},
  };
  let now = 0;
  const cache = createMachineStatusCache(driver, { now: () => now }, () => {});
  const observe = async () => {
    now += 10;
    const { machines } = await cache.observe();
    const [{ state, usage, at } = assert.fail()] = cache.all();
    assert.equal(cache.of(1), state);
    assert.deepEqual({ ...state, usage }, machines[0]);
    assert.equal(at, now);
    return state;
  };
  const first = await observe();
  machine = { ...machine, usage: { cpuTime: 7 } };
  assert.equal(await observe(), first);
  machine = { ...machine, disks: [{ version: 1, gb: 3 }] };
  assert.notEqual(await observe(), first);
});

test("an observation of all VMs does not override a later one of some", async () => {
  const capacity = { cores: 1, memory: 1, disk: 1, diskFree: 1 };
  const status = (boot: number) =>
    ({
      ready: true,
      capacity,
      machines: [{ id: 1, power: "running", boot, usage: null }],
    }) as unknown as MachinesStatus;
  const all = Promise.withResolvers<MachinesStatus>();
  const driver = {
    observe: (ids?: readonly number[]) => (ids === undefined ? all.promise : Promise.resolve(status(2))),
    onPower: () => () => {},
  };
  const cache = createMachineStatusCache(driver, { now: () => 0 }, () => {});
  const observing = cache.observe();
  await cache.observeServers([1]);
  all.resolve(status(1));
  await observing;
  assert.equal(cache.of(1)?.boot, 2);
});
