import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CurrentServer,
  heldSizes,
  heldWith,
  planResize,
  type ResizeInput,
  sizesAfter,
  sizesOf,
} from "./resize.ts";

const now = { cpu: 2, ram: 1024, hdd: 10, fast: false };
const frame = (more: Partial<CurrentServer> = {}): CurrentServer => ({
  id: 17,
  sizes: now,
  isOn: true,
  reach: { cpus: 4, memory: 2048 },
  minRam: 128,
  ...more,
});
const stepsOf = (spec: ResizeInput, more?: Partial<CurrentServer>) => planResize(spec, frame(more)).steps.join(" ");
const task = (input: object, name = "server.Resize") => ({ name, input });

test("the plan has only the needed steps, in order, and a restart only if needed", () => {
  const cases: readonly (readonly [ResizeInput, string, string])[] = [
    // Body; steps when on; steps when off.
    [{}, "", ""],
    [{ CPU: 2, RAM: 1024, HDD: 10, IsHighPerformance: false }, "", ""],
    [{ HDD: 20 }, "Disk", "Disk"],
    [{ IsHighPerformance: true }, "Cpu", "Cpu"],
    [{ CPU: 4 }, "Cpu", "Cpu"],
    [{ CPU: 4, RAM: 2048, HDD: 11 }, "Cpu Memory Disk", "Cpu Memory Disk"],
    [{ CPU: 5 }, "Stop Cpu Start", "Cpu"],
    [{ CPU: 1 }, "Stop Cpu Start", "Cpu"],
    [{ RAM: 512 }, "Stop Memory Start", "Memory"],
    [{ RAM: 2176, HDD: 11 }, "Stop Memory Start Disk", "Memory Disk"],
  ];
  for (const [spec, on, off] of cases) {
    assert.equal(stepsOf(spec), on, JSON.stringify(spec));
    assert.equal(stepsOf(spec, { isOn: false, reach: null }), off, JSON.stringify(spec));
  }
});

test("if the reach of the VM is unknown, cores and memory need a restart, disk and share do not", () => {
  assert.equal(stepsOf({ CPU: 3 }, { reach: null }), "Stop Cpu Start");
  assert.equal(stepsOf({ HDD: 11, IsHighPerformance: true }, { reach: null }), "Cpu Disk");
});

test("only a plan that needs a restart is rejected with AllowRestart false", () => {
  const refusal = (spec: ResizeInput, named: string) =>
    assert.throws(() => planResize({ ...spec, AllowRestart: false }, frame()), {
      code: "restart_needed",
      message: `Server 17 is on and has to be restarted for ${named}. Allow it (AllowRestart), or power the server off first.`,
    });
  refusal({ CPU: 1 }, "CPU 1 (it has 2)");
  refusal({ RAM: 512, CPU: 4, HDD: 20 }, "RAM 512 (it has 1024)");
  refusal({ CPU: 1, RAM: 512 }, "CPU 1 (it has 2) and RAM 512 (it has 1024)");
  assert.equal(stepsOf({ CPU: 4, HDD: 20, AllowRestart: false }), "Cpu Disk");
  assert.equal(stepsOf({ CPU: 64, AllowRestart: false }, { isOn: false }), "Cpu");
});

test("a disk never shrinks, and memory is never less than the image needs", () => {
  assert.throws(() => planResize({ HDD: 9 }, frame()), {
    code: "disk_cannot_shrink",
    message: /has 10 GB and cannot shrink to 9 GB/,
  });
  assert.throws(() => planResize({ RAM: 256 }, frame({ minRam: 512 })), { code: "validation_failed" });
  // Unchanged memory is accepted, even if the image needs more now.
  assert.equal(stepsOf({ RAM: 1024, HDD: 11 }, { minRam: 2048 }), "Disk");
});

test("queued resizes count: sizes after the queue, and the largest on the way", () => {
  const queue = [task({ cpu: 8 }), task({ id: 1 }, "server.PowerOff"), task({ cpu: 1, hdd: 20 })];
  assert.deepEqual(sizesAfter(now, queue), { cpu: 1, ram: 1024, hdd: 20, fast: false });
  assert.deepEqual(heldWith(now, queue, { ram: 512 }), { cpu: 8, ram: 1024, hdd: 20 });
  assert.deepEqual(heldSizes(now, []), { cpu: 2, ram: 1024, hdd: 10 });
  const after = frame({ sizes: sizesAfter(now, queue) });
  assert.throws(() => planResize({ HDD: 15 }, after), { code: "disk_cannot_shrink" });
  assert.deepEqual(planResize({ CPU: 2, HDD: 20 }, after).input, { cpu: 2 });
});

test("sizesOf reads the sizes of a row", () => {
  assert.deepEqual(sizesOf({ cpu: 1, ram: 2, hdd: 3, is_high_performance: 1 }), { cpu: 1, ram: 2, hdd: 3, fast: true });
});
