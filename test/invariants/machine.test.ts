/**
 * Conformance suite of the machine driver interface: repeated calls, starts, ownership of disks, and complete removal. Every driver runs
 * it; the real driver runs real guests.
 */
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import type { MachineSpec, PowerEvent } from "../../service/src/drivers/machine/interface.ts";
import type { QemuDriver } from "../../service/src/drivers/machine/qemu/qemu.ts";
import { drivers, type Subject } from "../support/machinedrivers.ts";
import { imageName, machine, statusOf, untilReady } from "../support/machinelab.ts";
import { until } from "../support/waituntil.ts";

for (const [driver, { start, hindrance, only }] of Object.entries(drivers)) {
  if (hindrance !== null) console.log(`machine conformance, ${driver}: skipped, ${hindrance}`);
  describe(driver, { skip: hindrance ?? false }, () => {
    let subject: Subject;
    let machines: QemuDriver;
    const powerEvents: PowerEvent[] = [];
    const status = (id: number) => statusOf(machines, id);
    const spec = (change: Partial<MachineSpec> = {}) => machine({ uuid: uuidOf(change.id ?? 1), ...change });
    const uuidOf = (id: number) => `00000000-0000-4000-8000-${String(id).padStart(12, "0")}`;
    const made = async (change: Partial<MachineSpec> = {}) => {
      const one = spec(change);
      await machines.ensureDisk(one, { image: imageName });
      return one;
    };
    const listen = (driver: QemuDriver) => {
      machines = driver;
      machines.onPower((event) => powerEvents.push(event));
    };
    const clear = async () => {
      for (const { id } of (await machines.observe()).machines) await machines.remove(id);
      assert.deepEqual((await machines.observe()).machines, []);
      powerEvents.length = 0;
    };

    const test = (title: string, run: () => Promise<void>): void => {
      if (only?.test(title) ?? true) it(title, run);
    };

    before(async () => {
      subject = await start();
      listen(subject.machines);
      const seen = await machines.observe();
      assert.deepEqual([seen.ready, seen.machines], [true, []]);
      assert.ok(seen.capacity.cores > 0 && seen.capacity.memory > 0 && seen.capacity.diskFree > 0);
    });
    afterEach(clear);
    after(() => subject.close());

    test("a disk is created once and keeps its content", async () => {
      const one = await made({ disk: { version: 1, gb: 2 } });
      const before = await status(1);
      assert.deepEqual([before?.power, before?.boot, before?.since, before?.exit], ["off", 0, null, null]);
      assert.deepEqual(
        before?.disks.map(({ version, gb }) => [version, gb]),
        [[1, 2]],
      );
      await subject.write(1, "a");
      await machines.ensureDisk(one, { image: imageName });
      assert.equal(await subject.read(1), "a");
      await machines.ensureDisk({ ...one, disk: { version: 1, gb: 3 } }, { image: imageName });
      await machines.ensureDisk(one, { image: imageName });
      assert.deepEqual([await subject.read(1), (await status(1))?.disks[0]?.gb], ["a", 3]);
    });

    test("a failed creation leaves no disk", async () => {
      await assert.rejects(machines.ensureDisk(spec(), { image: "no-such-image" }));
      await assert.rejects(machines.ensureDisk(spec(), { server: 4711 }));
      await assert.rejects(machines.ensureRunning(spec()), /disk is missing/);
      assert.deepEqual((await status(1))?.disks ?? [], []);
      assert.equal(powerEvents.length, 0);
    });

    test("a folder belongs to one server, even if its id is used again", async () => {
      await made();
      await subject.write(1, "a");
      const other = spec({ uuid: uuidOf(9) });
      await assert.rejects(
        machines.ensureDisk(other, { image: imageName }),
        (error: Error & { final?: boolean }) => /belongs to another server/.test(error.message) && error.final === true,
      );
      assert.equal(await subject.read(1), "a");
      assert.deepEqual((await status(1))?.label, { uuid: uuidOf(1), name: "", cpus: 1, memory: 128, image: imageName });
      // The new owner of the folder claims it first.
      await machines.apply({ ...other, name: "mine" });
      assert.deepEqual([(await status(1))?.label?.uuid, (await status(1))?.label?.name], [uuidOf(9), "mine"]);
      await machines.ensureDisk(other, { image: imageName });
      assert.equal(await subject.read(1), "a");
    });

    test("a server without its disk fails to start at once", async () => {
      const one = await made();
      subject.lose(1);
      await assert.rejects(
        machines.ensureRunning(one),
        (error: Error & { final?: boolean }) =>
          /its disk is (missing|damaged)/.test(error.message) && error.final === true,
      );
      assert.equal((await status(1))?.power, "off");
    });

    test("a VM that does not respond is reported, recovers, and can be stopped while calls wait", async () => {
      const one = await made();
      await machines.ensureRunning(one);
      subject.freeze(1);
      const trouble = async () => (await status(1))?.trouble;
      await until("its problem is reported", async () => (await trouble()) === "NotResponding");
      const silent = await status(1);
      assert.deepEqual([silent?.power, silent?.usage], ["running", null]);
      assert.equal(await machines.ensureRunning(one), null, "it is not started a second time");
      listen(await subject.reopen());
      await until("its problem is reported again", async () => (await trouble()) === "NotResponding");
      subject.thaw(1);
      await until("it is found again", async () => ((await status(1))?.usage ?? null) !== null);
      assert.equal(await trouble(), null);
      subject.freeze(1);
      const waiting = machines.apply({ ...one, memory: 512 }).catch(() => {});
      assert.equal(await machines.ensureStopped(1, "cut"), true);
      await waiting;
      assert.equal((await status(1))?.power, "off");
    });

    test("a copy has the content of its source at that moment, and both are independent", async () => {
      const one = await made();
      await subject.write(1, "a");
      const two = spec({ id: 2, disk: { version: 1, gb: 2 } });
      await machines.ensureDisk(two, { server: 1 });
      await subject.write(1, "b");
      await machines.ensureDisk(two, { server: 1 });
      assert.deepEqual([await subject.read(1), await subject.read(2)], ["b", "a"]);
      await subject.write(2, "c");
      assert.equal(await subject.read(1), "b");
      await machines.ensureDisk(spec({ id: 3 }), { server: 2 });
      await machines.remove(1);
      await machines.ensureDisk(spec({ id: 4 }), { server: 2 });
      await machines.remove(2);
      assert.deepEqual([await subject.read(3), await subject.read(4)], ["c", "c"]);
      assert.equal((await status(one.id))?.disks, undefined);
    });

    test("a copy loses the identity of its source before its first start", async () => {
      await made();
      await subject.write(1, "a");
      await machines.ensureDisk(spec({ id: 2 }), { server: 1 });
      assert.deepEqual(await machines.ensureIdentityRemoved(2, 1), { removed: true, detail: "" });
      listen(await subject.reopen());
      assert.deepEqual(await machines.ensureIdentityRemoved(2, 1), { removed: true, detail: "" });
      await subject.write(1, "b");
      assert.deepEqual([await subject.read(1), await subject.read(2)], ["b", "a"]);
      await machines.ensureDisk(spec({ id: 3 }), { server: 2 });
      await machines.remove(1);
      assert.deepEqual([await subject.read(2), await subject.read(3)], ["a", "a"]);
      await assert.rejects(machines.ensureIdentityRemoved(2, 7), /no disk/);
      await assert.rejects(machines.ensureIdentityRemoved(4711, 1), /no disk/);
      await machines.ensureRunning(spec({ id: 2 }));
      await assert.rejects(machines.ensureIdentityRemoved(2, 1), /server 2 is running/);
    });

    test("a rebuild is stored beside the old disk, and either can be kept", async () => {
      await made();
      await subject.write(1, "a");
      await made({ disk: { version: 2, gb: 1 } });
      assert.deepEqual(
        (await status(1))?.disks.map(({ version }) => version),
        [1, 2],
      );
      assert.equal(await subject.read(1), "");
      await machines.ensureOnlyDisk(1, 1);
      await machines.ensureOnlyDisk(1, 1);
      assert.equal(await subject.read(1), "a");
      await made({ disk: { version: 3, gb: 1 } });
      await machines.ensureOnlyDisk(1, 3);
      assert.deepEqual(
        (await status(1))?.disks.map(({ version }) => version),
        [3],
      );
      await assert.rejects(machines.ensureOnlyDisk(1, 1), /no disk/);
    });

    test("an image of a server is independent", async () => {
      await made({ disk: { version: 1, gb: 2 } });
      await subject.write(1, "a");
      await assert.rejects(machines.ensureImage(1, "mine", { title: "Mine" }));
      await machines.ensureSnapshot(1, "mine");
      await subject.write(1, "b");
      await machines.ensureSnapshot(1, "mine");
      await assert.rejects(machines.ensureDisk(spec({ id: 3 }), { image: "mine" }), "a snapshot is no image yet");
      const size = await machines.ensureImage(1, "mine", { title: "Mine" });
      assert.equal(size.gb, 2);
      assert.deepEqual(size.identity, { removed: true, detail: "" });
      await machines.ensureSnapshot(1, "mine");
      assert.deepEqual(await machines.ensureImage(1, "mine", { title: "Mine" }), size);
      await machines.remove(1);
      await machines.ensureDisk(spec({ id: 2 }), { image: "mine" });
      await machines.removeImage("mine");
      await machines.removeImage("mine");
      assert.equal(await subject.read(2), "a");
      await assert.rejects(machines.ensureDisk(spec({ id: 3 }), { image: "mine" }));
      assert.deepEqual(
        subject.traces().filter((trace) => !/^[0-9]+$/.test(trace)),
        [],
      );
    });

    test("a snapshot survives the service, a rebuild and the server, and is removed with its image", async () => {
      await made();
      await subject.write(1, "a");
      for (const name of ["kept", "dropped"]) await machines.ensureSnapshot(1, name);
      await made({ disk: { version: 2, gb: 1 } });
      await machines.ensureOnlyDisk(1, 2);
      await assert.rejects(machines.ensureImage(1, "kept", { title: "Kept" }, AbortSignal.abort(new Error("enough"))));
      await machines.remove(1);
      listen(await subject.reopen());
      const { identity } = await machines.ensureImage(1, "kept", { title: "Kept", keepsIdentity: true });
      assert.deepEqual(identity, { removed: false, detail: "it was kept as it is" });
      await machines.ensureDisk(spec({ id: 2 }), { image: "kept" });
      assert.equal(await subject.read(2), "a");
      for (const name of ["kept", "dropped"]) await machines.removeImage(name);
      await assert.rejects(machines.ensureImage(1, "dropped", { title: "Dropped" }));
      assert.deepEqual(
        subject.traces().filter((trace) => !/^[0-9]+$/.test(trace)),
        [],
      );
    });

    test("a life cycle: start, change, copy, stop, start", async () => {
      const nic = (id: number) => ({ id, mac: `02:42:00:00:00:0${id}` });
      const one = await made({ memory: 256, nics: [nic(1)] });
      const devices = new Set<string>();
      const leave = machines.onDevice((device) => devices.add(device));
      assert.equal(await machines.ensureStopped(1, "cut"), true);
      await machines.ensureRunning(one);
      await machines.ensureRunning(one);
      assert.deepEqual([...devices], [machines.deviceOf(1)]);
      const events = () => powerEvents.map(({ boot, exit }) => [boot, exit?.reason ?? null]);
      assert.deepEqual(events(), [[1, null]]);
      const early = await status(1);
      assert.deepEqual([early?.power, early?.boot, early?.version, early?.exit], ["running", 1, 1, null]);
      assert.deepEqual([early?.cpus, early?.memory], [1, 256]);
      assert.ok((early?.since ?? 0) <= Date.now());
      await untilReady(machines, 1);
      assert.match((await machines.readLog(1)) ?? "", /BRUME-READY/);

      // Greater in every way that can be without a start.
      const reach = (await status(1))?.reach;
      assert.ok((reach?.memory ?? 0) >= 384);
      assert.ok((reach?.cpus ?? 0) >= 3);
      const grown = { ...one, cpus: 3, memory: 384, share: 2, disk: { version: 1, gb: 2 }, nics: [nic(1), nic(2)] };
      const live = { cpus: "live", memory: "live", disk: "live", share: "live", nics: "live" };
      assert.deepEqual(await machines.apply(grown), live);
      assert.deepEqual([...devices].sort(), [machines.deviceOf(1), machines.deviceOf(2)].sort());
      leave();
      const same = { cpus: "same", memory: "same", disk: "same", share: "same", nics: "same" };
      assert.deepEqual(await machines.apply(grown), same);
      const now = await status(1);
      assert.deepEqual([now?.cpus, now?.memory, now?.disks[0]?.gb], [3, 384, 2]);
      const back = await machines.apply(one);
      assert.deepEqual([back.disk, back.nics], ["same", "live"]);
      // Memory shrinks if the guest releases it, and the reported size is the actual one.
      const left = await status(1);
      assert.deepEqual([left?.memory, left?.disks[0]?.gb], [back.memory === "live" ? 256 : 384, 2]);
      assert.equal((await machines.apply({ ...one, memory: 128 })).memory, "nextStart", "it was started with more");

      // A copy and an image of what runs, which runs on.
      await machines.ensureDisk(spec({ id: 2 }), { server: 1 });
      await machines.ensureSnapshot(1, "live");
      const { identity } = await machines.ensureImage(1, "live", { title: "Live" });
      assert.deepEqual(identity, { removed: true, detail: "" });
      assert.deepEqual([(await status(1))?.power, (await status(1))?.boot], ["running", 1]);
      assert.equal((await status(2))?.disks[0]?.gb, 2);

      const stream = await machines.openSerial(1);
      const answer = new Promise<string>((resolve) => stream.on("data", (bytes) => resolve(String(bytes))));
      stream.write("\r");
      assert.notEqual(await answer, "");
      stream.destroy();
      const screen = await machines.openVnc(1);
      const banner = await new Promise<string>((resolve) => screen.once("data", (bytes) => resolve(String(bytes))));
      assert.equal(banner, "RFB 003.008\n");
      screen.destroy();

      assert.equal(await machines.ensureStopped(1, "shutdown", AbortSignal.timeout(120_000)), true);
      const off = await status(1);
      assert.deepEqual([off?.power, off?.exit?.reason, off?.cpus, off?.usage], ["off", "guest", 0, null]);
      await assert.rejects(machines.openSerial(1), /off/);
      await machines.ensureRunning({ ...grown, boot: 2, cpus: 2 });
      const again = await status(1);
      assert.deepEqual([again?.boot, again?.cpus, again?.memory], [2, 2, 384]);
      assert.match((await machines.readLog(1, { previous: true })) ?? "", /BRUME-READY/);
      assert.equal((await machines.readLog(1, { previous: true, tail: 1 }))?.trim().includes("\n"), false);
      assert.deepEqual(events(), [
        [1, null],
        [1, "guest"],
        [2, null],
      ]);
      await machines.removeImage("live");
    });

    test("a reset is done once", async () => {
      const one = await made();
      await machines.ensureRunning(one);
      await machines.ensureRunning({ ...one, boot: 2 });
      await machines.ensureRunning({ ...one, boot: 2 });
      // A late repetition of an older order changes nothing.
      await machines.ensureRunning(one);
      assert.deepEqual(
        powerEvents.map(({ boot, exit }) => [boot, exit?.reason ?? null]),
        [
          [1, null],
          [1, "order"],
          [2, null],
        ],
      );
      await assert.rejects(machines.ensureOnlyDisk(1, 2));
    });

    test("an unexpected exit is reported, and the server can be started again", async () => {
      const one = await made();
      await machines.ensureRunning(one);
      subject.kill(1);
      await until("the exit is reported", async () => powerEvents.length === 2);
      assert.deepEqual([powerEvents[1]?.id, powerEvents[1]?.boot, powerEvents[1]?.exit?.reason], [1, 1, "died"]);
      assert.deepEqual([(await status(1))?.power, (await status(1))?.exit?.reason], ["off", "died"]);
      await machines.ensureRunning(one);
      assert.equal((await status(1))?.power, "running");
      await machines.ensureStopped(1, "cut");
      assert.equal((await status(1))?.exit?.reason, "order");
    });

    test("removing is complete in any state, and can be repeated", async () => {
      const one = await made({ nics: [{ id: 7, mac: "02:42:00:00:00:07" }] });
      await machines.ensureRunning(one);
      await machines.remove(1);
      await machines.remove(1);
      await machines.remove(4711);
      assert.deepEqual((await machines.observe()).machines, []);
      assert.deepEqual(subject.traces(), []);
      assert.equal(await machines.readLog(1), null);
      assert.equal(await machines.ensureStopped(1, "shutdown"), true);
      assert.equal(powerEvents.at(-1)?.exit?.reason, "order");
    });
  });
}
