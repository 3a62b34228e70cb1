/** A backup with disks: consistent while guests run, incremental, and servers run from it on an empty data folder with their data. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { copyDisks } from "../../service/src/drivers/machine/disk/backup.ts";
import { layerName, topOf } from "../../service/src/drivers/machine/disk/disk.ts";
import { createMachineLab, findCapabilities, imageName, machine, statusOf, untilReady } from "../support/machinelab.ts";

const found = await findCapabilities();
const hindrance = "hindrance" in found ? found.hindrance : null;
if (hindrance !== null) console.log(`backup with disks: not tried, ${hindrance}`);

const topIn = (servers: string, id: number): string => {
  const disk = join(servers, String(id), "disk-1");
  return join(disk, layerName(topOf(disk)));
};
const write = (path: string, byte: number, place: string) =>
  exec.run(["qemu-io", "-f", "qcow2", "-c", `write -P ${byte} ${place} 64k`, path]);
const read = async (path: string, place: string): Promise<string> => {
  const text = await exec.run(["qemu-io", "-r", "-f", "qcow2", "-c", `read -v ${place} 16`, path]);
  return /:\s+([0-9a-f]{2}) /.exec(text)?.[1] ?? "";
};

test("servers and images of a backup with disks run on an empty data folder", {
  skip: hindrance ?? false,
}, async (t) => {
  assert.ok("capabilities" in found);
  const lab = createMachineLab(found.capabilities);
  const other = createMachineLab(found.capabilities);
  const target = mkdtempSync(join(tmpdir(), "brume-backup-"));
  t.after(async () => {
    await lab.close();
    await other.close();
    rmSync(target, { recursive: true, force: true });
  });
  const machines = await lab.open();
  const [on, off] = [machine({ name: "on" }), machine({ id: 2, name: "off" })];
  for (const one of [on, off]) await machines.ensureDisk(one, { image: imageName });
  await write(topIn(lab.servers, 1), 0x61, "900M");
  await write(topIn(lab.servers, 2), 0x62, "900M");
  await machines.ensureRunning(on);
  await untilReady(machines, 1);
  await machines.ensureSnapshot(2, "own-9");
  await machines.ensureImage(2, "own-9", { title: "nine" });

  const dataFolder = dirname(lab.servers);
  const copy = (name: string, previous: string | null) =>
    copyDisks({
      dataFolder,
      backupFolder: null,
      target: join(target, name),
      previous: previous === null ? null : join(target, previous),
      hold: machines.holdDisks,
    });
  const first = await copy("1", null);
  assert.deepEqual([first.servers, first.images], [2, 2]);
  await machines.releaseDisks();
  assert.deepEqual(readdirSync(lab.servers).sort(), ["1", "2"], "nothing stays of what was held");
  assert.equal((await statusOf(machines, 1))?.power, "running", "the guest continues");
  assert.ok(existsSync(join(target, "1", "images", "own-9", "image.json")));

  // Only new data is copied: no image, and of the disks only the layers above the closed ones.
  const second = await copy("2", "1");
  await machines.releaseDisks();
  assert.ok(second.copied < first.copied / 4, `${second.copied} of ${first.copied} bytes`);
  assert.ok(second.kept > first.copied / 2, `${second.kept} bytes were there`);
  const base = (name: string) => statSync(join(target, name, "servers", "1", "disk-1", "0.qcow2"));
  assert.equal(base("1").ino, base("2").ino);
  // Later writes are in no copy.
  await write(topIn(lab.servers, 2), 0x63, "901M");

  // As documented: into an empty data folder, unchanged.
  rmSync(other.servers, { recursive: true, force: true });
  rmSync(other.images, { recursive: true, force: true });
  for (const part of ["servers", "images"]) {
    const place = join(dirname(other.servers), part);
    mkdirSync(dirname(place), { recursive: true });
    await exec.run(["cp", "-a", join(target, "2", part), place]);
  }
  const firstUid = lab.firstUid;
  const { openQemu } = await import("../../service/src/drivers/machine/qemu/qemu.ts");
  const restored = await openQemu({ ...other.options, firstUid });
  assert.deepEqual(
    (await restored.observe()).machines.map(({ id, power, label }) => [id, power, label?.name, label?.uuid]),
    [
      [1, "off", "on", on.uuid],
      [2, "off", "off", off.uuid],
    ],
  );
  assert.equal(await read(topIn(other.servers, 1), "900M"), "61");
  assert.equal(await read(topIn(other.servers, 2), "900M"), "62");
  assert.equal(await read(topIn(other.servers, 2), "901M"), "00");
  await restored.ensureDisk(machine({ id: 3 }), { image: "own-9" });
  assert.equal(await read(topIn(other.servers, 3), "900M"), "62");
  await restored.ensureRunning({ ...on, boot: 2 });
  await untilReady(restored, 1);
  for (const id of [1, 2, 3]) await restored.remove(id);
  await restored.close();
});

test("incomplete copies and held layers are removed at the next start", {
  skip: hindrance ?? false,
}, async (t) => {
  assert.ok("capabilities" in found);
  const lab = createMachineLab(found.capabilities);
  t.after(() => lab.close());
  const machines = await lab.open();
  await machines.ensureDisk(machine(), { image: imageName });
  const held = await machines.holdDisks(1);
  assert.equal(held, "1.copy");
  const copy = join(lab.servers, held);
  cpSync(copy, `${copy}.part`, { recursive: true });
  // An incomplete disk, layer, note and held image.
  const root = join(lab.servers, "1");
  for (const folder of ["1/disk-2.part", "own-9.image/disk.part"])
    mkdirSync(join(lab.servers, folder), { recursive: true });
  for (const file of ["disk-2.part/0.qcow2", "disk-1/2.qcow2.part", "state.json.part"])
    writeFileSync(join(root, file), "half");
  const complete = readdirSync(join(root, "disk-1")).filter((name) => !name.endsWith(".part"));
  await machines.close();
  await lab.open();
  assert.deepEqual(readdirSync(lab.servers).sort(), ["1", "own-9.image"]);
  assert.deepEqual(readdirSync(join(root, "disk-1")), complete);
  assert.deepEqual(readdirSync(root).sort(), ["disk-1", "label.json"]);
  assert.deepEqual(readdirSync(join(lab.servers, "own-9.image")), []);
  await assert.rejects(machines.holdDisks(7), /server 7 has no disk/);
});

test("a removal that failed is finished by the next one", { skip: hindrance ?? false }, async (t) => {
  assert.ok("capabilities" in found);
  const lab = createMachineLab(found.capabilities);
  t.after(() => lab.close());
  const machines = await lab.open();
  const remove = async (): Promise<string[]> => {
    mkdirSync(join(lab.servers, "1.gone", "disk-1"), { recursive: true });
    await machines.remove(1);
    return readdirSync(lab.servers);
  };
  assert.deepEqual(await remove(), []);
  await machines.ensureDisk(machine(), { image: imageName });
  assert.deepEqual(await remove(), []);
});
