import assert from "node:assert/strict";
import { test } from "node:test";
import { capacityOf, demandOf, growthOf, requireCapacity, requireQuotas } from "./capacity.ts";

const small = { cpu: 1, ram: 512, hdd: 10 };
const large = { cpu: 4, ram: 2048, hdd: 40 };
const nothing = { Servers: 0, CPU: 0, RAM: 0, HDD: 0 };

test("the demand of several servers is their sum", () => {
  assert.deepEqual(demandOf([small, large]), { Servers: 2, CPU: 5, RAM: 2560, HDD: 50 });
  assert.deepEqual(demandOf([]), nothing);
});

test("a resize demands only the growth", () => {
  assert.deepEqual(growthOf(small, large), { Servers: 0, CPU: 3, RAM: 1536, HDD: 30 });
  assert.deepEqual(growthOf(large, small), nothing);
});

test("the error of a quota contains the numbers", () => {
  const quotas = JSON.stringify({ CPU: 4 });
  requireQuotas(quotas, nothing, demandOf([large]));
  assert.throws(() => requireQuotas(quotas, demandOf([small]), demandOf([large])), {
    code: "quota_exceeded",
    message: "CPU: wanted 4, free 3, limit 4.",
  });
});

test("a lowered quota does not reject a demand of 0", () => {
  const lowered = JSON.stringify({ CPU: 1 });
  requireQuotas(lowered, demandOf([large]), { ...nothing, HDD: 10 });
  assert.throws(() => requireQuotas(lowered, demandOf([large]), { ...nothing, CPU: 1 }), { code: "quota_exceeded" });
});

const host = { cores: 2, memory: 24_576, disk: 100, diskFree: 60 };

test("cores and disks are overcommitted; memory is not, and a part is reserved for the host", () => {
  assert.deepEqual(capacityOf(host, demandOf([small]), 8), {
    CPU: 16,
    RAM: 23_552,
    HDD: 400,
    FreeCPU: 15,
    FreeRAM: 23_040,
    FreeHDD: 390,
  });
});

test("free capacity is never negative, and no disk is free on a nearly full host", () => {
  const taken = { CPU: 20, RAM: 30_000, HDD: 10 };
  const { FreeCPU, FreeRAM, FreeHDD } = capacityOf({ ...host, diskFree: 4.9 }, taken, 8);
  assert.deepEqual([FreeCPU, FreeRAM, FreeHDD], [0, 0, 0]);
  assert.equal(capacityOf({ ...host, memory: 512.5 }, taken, 8).RAM, 0);
});

test("the error of a full host contains the numbers", () => {
  const capacity = { CPU: 16, RAM: 23_552, HDD: 400, FreeCPU: 4, FreeRAM: 1024, FreeHDD: 400 };
  requireCapacity(capacity, { Servers: 1, CPU: 4, RAM: 1024, HDD: 400 });
  assert.throws(() => requireCapacity(capacity, demandOf([large])), {
    code: "no_capacity",
    message: "RAM (MB): wanted 2048, free 1024, limit 23552.",
  });
  requireCapacity({ ...capacity, FreeCPU: -3 }, { ...nothing, RAM: 1 });
});
