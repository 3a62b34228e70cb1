/** Backups in a separate folder on another file system: complete, found again, usable as images, and removed. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exec } from "../../service/src/drivers/exec.ts";
import { layerName, topOf } from "../../service/src/drivers/machine/disk/disk.ts";
import { openQemu } from "../../service/src/drivers/machine/qemu/qemu.ts";
import { createMachineLab, findCapabilities, imageName, machine } from "../support/machinelab.ts";

const found = await findCapabilities();
const hindrance = "hindrance" in found ? found.hindrance : null;
if (hindrance !== null) console.log(`backups elsewhere: not tried, ${hindrance}`);

test("backups are in the operator's folder", { skip: hindrance ?? false }, async (t) => {
  assert.ok("capabilities" in found);
  const lab = createMachineLab(found.capabilities);
  const folder = mkdtempSync(join(tmpdir() === "/dev/shm" ? "/var/tmp" : "/dev/shm", "brume-backups-"));
  t.after(async () => {
    await lab.close();
    rmSync(folder, { recursive: true, force: true });
  });
  assert.notEqual(statSync(folder).dev, statSync(lab.images).dev, "it is another file system");
  const machines = await openQemu({
    ...lab.options,
    backups: { folder, isBackup: (name) => name.startsWith("backup-") },
  });
  const one = machine();
  await machines.ensureDisk(one, { image: imageName });
  const diskOf = (id: number) => {
    const disk = join(lab.servers, String(id), "disk-1");
    return join(disk, layerName(topOf(disk)));
  };
  await exec.run(["qemu-io", "-f", "qcow2", "-c", "write -P 97 900M 512", diskOf(1)]);
  // The folder cannot be renamed to a link, so the first publication fails.
  symlinkSync("nowhere", join(folder, "backup-7"));
  await machines.ensureSnapshot(1, "backup-7");
  await assert.rejects(machines.ensureImage(1, "backup-7", { title: "backup-7" }), { code: "ENOTDIR" });
  assert.deepEqual(readdirSync(folder), ["backup-7"]);
  rmSync(join(folder, "backup-7"));
  for (const name of ["backup-7", "own-8"]) {
    await machines.ensureSnapshot(1, name);
    await machines.ensureImage(1, name, { title: name });
  }
  assert.deepEqual(readdirSync(folder), ["backup-7"]);
  assert.ok(readdirSync(lab.images).includes("own-8"));
  assert.deepEqual((await machines.listImages()).map(({ name }) => name).sort(), ["backup-7", imageName, "own-8"]);
  await machines.ensureDisk(machine({ id: 2 }), { image: "backup-7" });
  await machines.removeImage("backup-7");
  assert.deepEqual(readdirSync(folder), []);
  const text = await exec.run(["qemu-io", "-r", "-f", "qcow2", "-c", "read -v 900M 16", diskOf(2)]);
  assert.match(text, /61 61 61 61/);
  await machines.close();
});
