/**
 * Real servers of the QEMU driver: confined, isolated from each other, and longer-lived than the service. The
 * properties of every machine driver are tested in test/invariants/machine.test.ts.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exec } from "../../service/src/drivers/exec.ts";
import { chainOf, createDisks, layerName, topOf } from "../../service/src/drivers/machine/disk/disk.ts";
import type { MachineSpec, PowerEvent } from "../../service/src/drivers/machine/interface.ts";
import { folderOf } from "../../service/src/drivers/machine/qemu/folder.ts";
import { createQmp, pick } from "../../service/src/drivers/machine/qemu/qmp.ts";
import { openSocket } from "../../service/src/drivers/machine/qemu/socket.ts";
import { describeMachines, imageName, machine, statusOf, untilReady } from "../support/machinelab.ts";
import { until } from "../support/waituntil.ts";

await describeMachines("servers of the QEMU driver", (newLab, lab) => {
  /** Another process that drives the same servers. */
  const service = (spec: MachineSpec): ChildProcess =>
    spawn(
      process.execPath,
      [join(import.meta.dirname, "machineservice.ts"), JSON.stringify({ options: lab().options, spec })],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
  async function kill(child: ChildProcess): Promise<void> {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  test("after a kill at any moment, the next service can continue", async () => {
    const { open, pidOf } = newLab();
    const nic = { id: 1, mac: "02:42:00:00:00:01" };
    for (const [round, delay] of [5, 30, 60, 90, 120, 160, 220, 300, 600].entries()) {
      const spec = machine({ id: round + 1, nics: [nic] });
      const child = service(spec);
      if (child.stdout !== null) await once(child.stdout, "data");
      await sleep(delay);
      await kill(child);
      const machines = await open();
      await machines.ensureDisk(spec, { image: imageName });
      await machines.ensureRunning(spec);
      const status = await statusOf(machines, spec.id);
      assert.deepEqual(
        [status?.power, status?.boot, status?.disks.length],
        ["running", 1, 1],
        `killed after ${delay} ms`,
      );
      assert.notEqual(pidOf(spec.id), null);
      assert.ok(existsSync(`/sys/class/net/${machines.deviceOf(nic.id)}`));
      await machines.remove(spec.id);
      assert.deepEqual(lab().traces(), []);
      await machines.close();
    }
  });

  test("servers keep running without a service, and the next one finds them", async () => {
    const { open, pidOf } = newLab();
    const spec = machine({ id: 1 });
    const child = service(spec);
    let output = "";
    child.stdout?.on("data", (bytes) => (output += String(bytes)));
    await until("it runs", async () => output.includes("running"));
    await kill(child);
    const pid = pidOf(1);
    assert.notEqual(pid, null);
    const first = await open();
    await untilReady(first, 1);
    await first.ensureRunning(spec);
    assert.equal(pidOf(1), pid);
    await first.close();

    // Its guest powers off while no service runs.
    const debug = await createQmp(await openSocket(folderOf(lab().servers, 1).run, "qmp-debug"));
    await debug.run("system_powerdown");
    await until("it is down", async () => pick(await debug.run("query-status"), "status") === "shutdown");
    debug.close();
    const second = await open();
    const status = await statusOf(second, 1);
    assert.deepEqual([status?.power, status?.exit?.reason, pidOf(1)], ["off", "guest", null]);

    // And its process ends while no service runs.
    await second.ensureRunning({ ...spec, boot: 2 });
    await second.close();
    process.kill(pidOf(1) ?? 0, "SIGKILL");
    await until("it is gone", async () => pidOf(1) === null);
    const third = await open();
    const after = await statusOf(third, 1);
    assert.deepEqual([after?.power, after?.exit?.reason, after?.boot], ["off", "died", 2]);
  });

  test("an interrupted snapshot is discarded", async () => {
    const { servers, images, firstUid, open } = newLab();
    const spec = machine();
    const disk = folderOf(servers, 1).disk(1);
    const first = await open();
    await first.ensureDisk(spec, { image: imageName });
    await first.ensureRunning(spec);
    await first.close();
    await createDisks(exec, images).addLayer(disk, firstUid + 1);
    assert.equal(topOf(disk), 2);
    const second = await open();
    assert.equal(topOf(disk), 1);
    assert.equal((await second.apply({ ...spec, disk: { version: 1, gb: 2 } })).disk, "live");
    await second.ensureDisk(machine({ id: 2 }), { server: 1 });
    assert.deepEqual([topOf(disk), (await statusOf(second, 2))?.disks[0]?.gb], [2, 2]);
  });

  test("layers are merged while the guest runs, and held layers stay", async () => {
    const { servers, open } = newLab();
    const spec = machine();
    const disk = folderOf(servers, 1).disk(1);
    const machines = await open();
    await machines.ensureDisk(spec, { image: imageName });
    await machines.ensureRunning(spec);
    await machines.ensureDisk(machine({ id: 2 }), { server: 1 });
    for (let time = 1; time <= 34; time++) {
      await machines.ensureSnapshot(1, `image-${time}`);
      if (time > 1) await machines.removeImage(`image-${time}`);
    }
    assert.equal((await chainOf(disk)).length, 37);
    await machines.ensureImage(1, "image-1", { title: "First" });
    await until("they are merged", async () => (await chainOf(disk)).length === 3);
    const layers = () => readdirSync(disk).filter((name) => name.endsWith(".qcow2"));
    await until("nothing is left of what was merged", async () => layers().length === 3);
    assert.deepEqual(layers().sort(), ["0.qcow2", "1.qcow2", "36.qcow2"]);
    await machines.ensureDisk(machine({ id: 3 }), { server: 1 });
    assert.equal((await machines.apply({ ...spec, disk: { version: 1, gb: 2 } })).disk, "live");
    for (const id of [1, 3]) {
      await machines.ensureRunning({ ...machine({ id }), boot: 2 });
      await untilReady(machines, id);
    }
    await machines.ensureStopped(1, "cut");
    await exec.run(["qemu-img", "check", "-q", join(disk, layerName(topOf(disk)))]);
  });

  test("a guest that switches itself off is off within seconds, and its process gone", async () => {
    const { open, pidOf } = newLab();
    const machines = await open();
    const events: PowerEvent[] = [];
    machines.onPower((event) => events.push(event));
    const spec = machine();
    await machines.ensureDisk(spec, { image: imageName });
    await machines.ensureRunning(spec);
    await untilReady(machines, 1);
    const serial = await machines.openSerial(1);
    let shown = "";
    serial.on("data", (bytes) => (shown += String(bytes)));
    serial.write("\r");
    await until("the login prompt", async () => /login:/.test(shown));
    const debug = await createQmp(await openSocket(folderOf(lab().servers, 1).run, "qmp-debug"));
    await debug.run("system_powerdown");
    await until("the power event", async () => events.some(({ exit }) => exit?.reason === "guest"));
    assert.equal(pidOf(1), null);
    assert.equal((await statusOf(machines, 1))?.power, "off");
  });

  test("a failed start leaves nothing running, and reports the reason", async () => {
    const { open, images } = newLab();
    const machines = await open();
    const spec = machine({ memory: 2 ** 40 });
    await machines.ensureDisk(spec, { image: imageName });
    await assert.rejects(machines.ensureRunning(spec), /QEMU ended: .*(memory|size)/);
    assert.deepEqual(
      lab()
        .traces()
        .filter((trace) => trace !== "1"),
      [],
    );
    assert.equal((await statusOf(machines, 1))?.boot, 0);
    await machines.ensureRunning({ ...spec, memory: 128 });
    assert.equal((await statusOf(machines, 1))?.power, "running");
    assert.deepEqual(readdirSync(images), [imageName]);
  });

  test("servers beyond the boot limit wait, and one that stops waiting leaves the queue", async () => {
    const { open } = newLab();
    const machines = await open();
    const specs = [1, 2, 3, 4].map((id) => machine({ id, owner: id }));
    for (const spec of specs) await machines.ensureDisk(spec, { image: imageName });
    const start = async () => {
      const answers = [];
      for (const spec of specs) answers.push(await machines.ensureRunning(spec));
      return answers;
    };
    assert.deepEqual(await start(), [null, null, 0, 1]);
    assert.deepEqual(await start(), [null, null, 0, 1], "the queue keeps its order");
    const powers = async () => (await machines.observe()).machines.map(({ power }) => power);
    assert.deepEqual(await powers(), ["running", "running", "off", "off"]);
    await machines.ensureStopped(3, "cut");
    specs.splice(2, 1);
    await until("the fourth has its turn", async () => (await start()).at(-1) === null);
    assert.deepEqual(await powers(), ["running", "running", "off", "running"]);
  });
});
