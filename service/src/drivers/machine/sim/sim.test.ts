import assert from "node:assert/strict";
import fs, { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { MachineSpec } from "../interface.ts";
import { createSim } from "./sim.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-sim-"));
after(() => rmSync(folder, { recursive: true }));

const machine: MachineSpec = {
  id: 1,
  uuid: "00000000-0000-4000-8000-000000000001",
  owner: 1,
  boot: 1,
  cpus: 1,
  memory: 256,
  share: 1,
  disk: { version: 1, gb: 1 },
  nics: [{ id: 3, mac: "02:42:00:00:00:03" }],
  seed: [],
};

test("with a file the next instance continues where the last was killed", async () => {
  const options = { now: () => 1000, images: null, file: join(folder, "machines.json") };
  const first = createSim(options);
  await first.ensureDisk(machine, { image: "any" });
  await first.ensureRunning(machine);
  first.write(1, "content");
  await first.ensureSnapshot(1, "mine");
  await first.ensureImage(1, "mine", { title: "Mine" });
  const second = createSim(options);
  assert.deepEqual(await second.observe(), await first.observe());
  await second.ensureDisk({ ...machine, id: 2 }, { image: "mine" });
  assert.deepEqual([second.read(1), second.read(2), second.read(3)], ["content", "content", null]);
  await second.remove(1);
  // Killed while writing a line.
  appendFileSync(options.file, '{"id":2,"ser');
  const third = createSim(options);
  assert.deepEqual([third.read(1), third.read(2)], [null, "content"]);
  third.write(2, "other");
  assert.equal(createSim(options).read(2), "other");
});

test("after a full disk the file has all servers again", async (context) => {
  const options = { now: () => 1000, images: null, file: join(folder, "full.json") };
  const first = createSim(options);
  const create = (id: number) => first.ensureDisk({ ...machine, id }, { image: "any" });
  const full = (write: typeof appendFileSync) => (path: fs.PathOrFileDescriptor, text: string | Uint8Array) => {
    write(path, text.slice(0, 10));
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  };
  const mocks = (["appendFileSync", "writeFileSync"] as const).map((name) =>
    context.mock.method(fs, name, full(fs[name])),
  );
  syncBuiltinESMExports();
  try {
    await assert.rejects(create(1), { code: "ENOSPC" });
    await assert.rejects(create(1), { code: "ENOSPC" });
  } finally {
    for (const { mock } of mocks) mock.restore();
    syncBuiltinESMExports();
  }
  await create(1);
  await create(2);
  const { machines } = await createSim(options).observe();
  assert.deepEqual(
    machines.map(({ id }) => id),
    [1, 2],
  );
});

test("a file of an earlier release has `cards` instead of `nics`", async () => {
  const options = { now: () => 1000, images: null, file: join(folder, "cards.json") };
  const first = createSim(options);
  for (const id of [1, 2]) {
    await first.ensureDisk({ ...machine, id }, { image: "any" });
    await first.ensureRunning({ ...machine, id });
  }
  const stored = readFileSync(options.file, "utf8");
  assert.match(stored, /"nics":\[3\]/);
  writeFileSync(options.file, stored.replaceAll('"nics":', '"cards":'));
  const second = createSim(options);
  for (const id of [1, 2]) assert.equal((await second.apply({ ...machine, id })).nics, "same");
  assert.doesNotMatch(readFileSync(options.file, "utf8"), /"cards"/);
});

test("requested failures come before or after the work, this number of times", async () => {
  const sim = createSim({ now: () => 1000, images: ["tiny"] });
  sim.fail("ensureDisk", 2);
  for (let time = 0; time < 2; time++)
    await assert.rejects(sim.ensureDisk(machine, { image: "tiny" }), /simulated failure of ensureDisk/);
  assert.equal(sim.read(1), null);
  sim.fail("ensureDisk", 1, "after");
  await assert.rejects(sim.ensureDisk(machine, { image: "tiny" }));
  assert.equal(sim.read(1), "");
  await sim.ensureDisk(machine, { image: "tiny" });
});

test("a deaf guest ignores its power button and unplug requests", async () => {
  const sim = createSim({ now: () => 1000, images: ["tiny"] });
  await sim.ensureDisk(machine, { image: "tiny" });
  await sim.ensureRunning(machine);
  const memory = machine.memory + 128;
  assert.equal((await sim.apply({ ...machine, memory })).memory, "live");
  const changed = async () => {
    const { nics, memory } = await sim.apply({ ...machine, nics: [] });
    return [nics, memory];
  };
  sim.deafen(1, true);
  assert.equal(await sim.ensureStopped(1, "shutdown"), false);
  assert.deepEqual(await changed(), ["nextStart", "nextStart"]);
  sim.deafen(1, false);
  assert.deepEqual(await changed(), ["live", "live"]);
  assert.equal(await sim.ensureStopped(1, "shutdown"), true);
});

test("guests boot in the configured time", async () => {
  let now = 1000;
  const sim = createSim({ now: () => now, images: null, bootTime: 500, accelerator: "kvm" });
  const stage = async () => (await sim.observe()).machines[0]?.stage;
  await sim.ensureDisk(machine, { image: "any" });
  assert.equal(await stage(), null);
  await sim.ensureRunning(machine);
  assert.equal(await stage(), "starting");
  now += 500;
  assert.equal(await stage(), "ready");
  assert.equal((await sim.apply({ ...machine, cpus: 2 })).cpus, "live");
  sim.switchOff(1);
  assert.equal((await sim.observe()).machines[0]?.exit?.reason, "guest");
});

test("a start costs the same with any number of servers that have booted", async () => {
  let readings = 0;
  const now = () => {
    readings += 1;
    return 1000;
  };
  const sim = createSim({ now, images: null });
  const costOf = async (id: number) => {
    await sim.ensureDisk({ ...machine, id }, { image: "any" });
    const before = readings;
    await sim.ensureRunning({ ...machine, id });
    return readings - before;
  };
  await costOf(1);
  const cost = await costOf(2);
  for (let id = 3; id < 20; id++) await costOf(id);
  assert.equal(await costOf(20), cost);
});
