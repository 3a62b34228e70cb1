/** Creation of servers and images: copies, groups, rebuilds, images and backups. */
import assert from "node:assert/strict";
import { findImage, insertImage } from "../../service/src/catalog/table.ts";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { list, queue } from "../../service/src/engine/task.ts";
import { listLinks, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { effectiveServer } from "../../service/src/server/flow/effective.ts";
import type { ServerSpec } from "../../service/src/server/model/plan.ts";
import { findAnyServer, findBatch, insertBatch } from "../../service/src/server/table.ts";
import { imageRow, keyRow } from "../support/rows.ts";
import {
  by,
  day,
  eventsOf,
  minute,
  readJson,
  type ServerEngineFixture,
  serverInvariant,
} from "../support/serverenginefixture.ts";
import { listBackups } from "../support/serverfixture.ts";

const lost = imageRow(99, { name: "lost" });

/** Guests that never become ready. The check waits, so that the timeout of a step takes few polls. */
function suppressReports({ fixture, alarm }: ServerEngineFixture): void {
  fixture.sendsBanner = () => {
    alarm.pass(4_000);
    return false;
  };
}

async function makeGroup(
  { fixture, write, until }: ServerEngineFixture,
  store: ObservedStore,
  policy: "Atomic" | "BestEffort",
  specs: readonly Partial<ServerSpec>[],
) {
  const { commands } = fixture.servers;
  const made = await write(async (tx) => {
    const batch = await insertBatch(tx, { project_id: 1, policy, state: "New", errors: "[]", created: 0 });
    const tasks = [];
    for (const [index, spec] of specs.entries())
      tasks.push(
        await commands.create(tx, {
          project: 1,
          batch: batch.id,
          spec: fixture.spec({ name: `node-${index}`, ...spec }),
          by,
        }),
      );
    return { batch, tasks };
  });
  const group = async () => findBatch(store.read, 1, made.batch.id);
  await until(async () => (await group())?.state !== "New");
  return { ...made, group };
}
serverInvariant(
  "a copy waits for its source, and blocks it only for the snapshot",
  async ({ fixture, make, write, end, server, isOn }, store) => {
    const { servers, machines, spec } = fixture;
    const source = await make();
    machines.write(source.id, "precious");
    machines.delay("ensureStopped", 20);
    const off = await write((tx) => servers.commands.power(tx, source, { Type: "PowerOff" }, by));
    const copy = await write((tx) => servers.commands.copy(tx, { source, spec: spec({ name: "web-2" }), by }));
    const on = await write((tx) => servers.commands.power(tx, source, { Type: "PowerOn" }, by));
    const made = await end(copy.task);
    assert.deepEqual([made.state, machines.read(copy.server.id)], ["Completed", "precious"]);
    await end(on);
    const turn = (await list(store.read, { kind: "server", id: source.id }, 9)).find(
      ({ name }) => name === "server.turn",
    );
    const order = [await end(off), turn, await end(on)].map((task) => task?.end ?? 0);
    assert.deepEqual(
      order,
      [...order].sort((one, other) => one - other),
    );
    assert.deepEqual(await queue(store.read, { kind: "server", id: source.id }), []);
    assert.ok((await isOn(source.id)) && (await isOn(copy.server.id)));
    const row = await server(copy.server.id);
    assert.notDeepEqual(row.admin_password, source.admin_password);
    assert.equal(row.state, "Active");
  },
);
serverInvariant("a copy loses the guest identity of its source", async ({ fixture, make, write, end }, store) => {
  const copyOf = async (more: Partial<ServerSpec>) => {
    const source = await make(more);
    const spec = fixture.spec({ name: "web-2", ...more });
    return end((await write((tx) => fixture.servers.commands.copy(tx, { source, spec, by }))).task);
  };
  const detailOf = (task: Awaited<ReturnType<typeof copyOf>>, step = "Identity") => {
    assert.equal(task.state, "Completed");
    return task.steps.find(({ name }) => name === step)?.detail ?? "";
  };
  const foreign = imageRow(2);
  const removed = "host keys, machine id, password hashes, authorized keys and logs removed";
  assert.equal(detailOf(await copyOf({})), "the guest creates a new identity at its first start");
  assert.equal(detailOf(await copyOf({ image: foreign })), removed);
  assert.equal(
    detailOf(await copyOf({ image: { ...foreign, family: "Windows" } })),
    "identity of the source's guest not removed: not supported for Windows guests",
  );
  fixture.machines.closeDisks("the disk (XFS) cannot be opened");
  assert.equal(
    detailOf(await copyOf({ image: foreign })),
    "identity of the source's guest not removed: the disk (XFS) cannot be opened",
  );
  fixture.machines.closeDisks(null);

  // A backup contains the identity of its server's guest, which a new server must not have.
  const owner = await make({ image: foreign });
  const { id: _, ...backup } = imageRow(0, { project_id: 1, type: "Backup", guest: null, server_id: owner.id });
  const image = await store.write((tx) => insertImage(tx, { ...backup, folder: "image-2" }));
  const spec = { project: 1, batch: null, spec: fixture.spec({ image }), by };
  const restored = await end((await write((tx) => fixture.servers.commands.create(tx, spec))).task);
  assert.ok(detailOf(restored, "Disk").endsWith(`; ${removed}`));
  const plan = { image, keys: null, userData: undefined };
  const rebuild = async (id: number) => {
    const server = (await findAnyServer(store.read, id)) ?? assert.fail();
    return end((await write((tx) => fixture.servers.commands.rebuild(tx, server, plan, "Power", by))).task);
  };
  assert.ok(!detailOf(await rebuild(owner.id), "Disk").includes("removed"), "its own it gets back as it was");
  assert.ok(detailOf(await rebuild((await make()).id), "Disk").endsWith(`; ${removed}`));
});
serverInvariant(
  "a copy whose source is deleted fails and leaves nothing",
  async ({ fixture, make, write, end, server, machines, until }, store) => {
    const { servers, spec } = fixture;
    const source = await make();
    // The copy has not started when the source is deleted.
    const release = fixture.machines.hold("ensureStopped");
    await write((tx) => servers.commands.power(tx, source, { Type: "PowerOff" }, by));
    const copy = await write((tx) => servers.commands.copy(tx, { source, spec: spec({ name: "web-2" }), by }));
    await write((tx) => servers.commands.delete(tx, source, by));
    release();
    const made = await end(copy.task);
    assert.deepEqual([made.state, made.error?.code], ["Failed", "snapshot_failed"]);
    assert.equal((await server(copy.server.id)).state, "Failed");
    await until(async () => (await findAnyServer(store.read, source.id)) === undefined);
    assert.deepEqual(await machines(), []);
    assert.deepEqual(await listLinksOfServer(store.read, copy.server.id), []);
  },
);
serverInvariant("a failed atomic group leaves nothing", async (it, store) => {
  const { machines, server, fixture, until } = it;
  const { tasks, group } = await makeGroup(it, store, "Atomic", [{}, { image: lost }, {}]);
  assert.equal((await group())?.state, "Failed");
  await until(async () => (await machines()).length === 0);
  const rows = await Promise.all(tasks.map((made) => server(made.server.id)));
  assert.deepEqual(
    rows.map(({ state, error }) => [state, readJson(error)["code"]]),
    [
      ["Failed", "batch_undone"],
      ["Failed", "disk_failed"],
      ["Failed", "batch_undone"],
    ],
  );
  assert.deepEqual(await listLinks(store.read, fixture.networks[0]?.id ?? 0), []);
});
serverInvariant("a created member of an atomic group is removed if another is not ready in time", async (it, store) => {
  suppressReports(it);
  const { tasks, group } = await makeGroup(it, store, "Atomic", [{}, { waitFor: "Ssh" }]);
  assert.equal((await group())?.state, "Failed");
  const rows = await Promise.all(tasks.map((made) => it.server(made.server.id)));
  assert.deepEqual(
    rows.map(({ error }) => readJson(error)["code"]),
    ["batch_undone", "ssh_not_ready"],
  );
  await it.until(async () => (await it.machines()).length === 0);
});

serverInvariant(
  "a BestEffort group contains the created servers, and is deleted with the last one",
  async (it, store) => {
    const { fixture, write, until, machines, server } = it;
    const { batch, tasks, group } = await makeGroup(it, store, "BestEffort", [{}, { image: lost }]);
    assert.equal((await group())?.state, "Active");
    assert.deepEqual(await Promise.all(tasks.map(async (made) => (await server(made.server.id)).state)), [
      "Active",
      "Failed",
    ]);
    await write((tx) => fixture.servers.commands.deleteBatch(tx, batch, by));
    await until(async () => (await group()) === undefined);
    assert.deepEqual(await machines(), []);
    assert.deepEqual(
      (await eventsOf(store, "batch", batch.id)).map(({ type }) => type),
      ["batch.changed", "batch.changed", "batch.deleted"],
    );
  },
);

serverInvariant("a server that is not ready in time stays, and the error contains its last output", async (it) => {
  const { fixture, write, end, server, isOn } = it;
  suppressReports(it);
  const spec = fixture.spec({ waitFor: "Ssh" });
  const made = await write((tx) => fixture.servers.commands.create(tx, { project: 1, batch: null, spec, by }));
  const behind = await write((tx) => fixture.servers.commands.power(tx, made.server, { Type: "PowerOff" }, by));
  const task = await end(made.task);
  assert.deepEqual([task.state, task.error?.code], ["Failed", "ssh_not_ready"]);
  assert.match(task.error?.log ?? "", /simulated/);
  assert.equal((await end(behind)).state, "Canceled");
  assert.equal((await server(made.server.id)).state, "Active");
  assert.ok(await isOn(made.server.id));
});

serverInvariant(
  "a rebuild deletes the old disk, and a failed one changes nothing",
  async ({ fixture, make, write, end, until, server, isOn }) => {
    const { commands } = fixture.servers;
    const { id } = await make();
    const disks = async () =>
      (await fixture.machines.observe()).machines.find((each) => each.id === id)?.disks.map(({ version }) => version);
    const rebuild = async (image: typeof lost) => {
      const plan = { image, keys: null, userData: undefined };
      return write(async (tx) => commands.rebuild(tx, await fixture.row(id), plan, "Power", by));
    };
    fixture.machines.write(id, "old");
    const good = await rebuild(imageRow(2));
    assert.equal((await end(good.task)).state, "Completed");
    await until(async () => (await disks())?.length === 1);
    assert.deepEqual([await disks(), fixture.machines.read(id)], [[2], ""]);
    const before = await server(id);
    assert.deepEqual([before.image_name, before.disk_version], ["debian-12", 2]);

    const first = await rebuild(lost);
    const second = await rebuild({ ...lost, name: "lost too" });
    assert.equal((await server(id)).image_name, "lost too");
    assert.deepEqual(
      [(await end(first.task)).error?.code, (await end(second.task)).error?.code],
      ["disk_failed", "disk_failed"],
    );
    const after = await server(id);
    assert.deepEqual(
      [after.image_name, after.image_id, after.admin_password],
      [before.image_name, before.image_id, before.admin_password],
    );
    assert.deepEqual([await disks(), await isOn(id)], [[2], true]);
  },
);

serverInvariant("queued rebuilds each use their own input", async ({ fixture, make, write, end }, store) => {
  const { commands } = fixture.servers;
  const { id } = await make();
  const before = await fixture.row(id);
  const { first, broken, last } = await write(async (tx) => {
    const rebuild = async (image: typeof lost, ...keys: number[]) => {
      const row = (await findAnyServer(tx, id)) ?? assert.fail();
      return commands.rebuild(
        tx,
        row,
        { image, keys: keys.map((key) => keyRow(key)), userData: image.name },
        "Power",
        by,
      );
    };
    await commands.power(tx, await fixture.row(id), { Type: "PowerOff" }, by);
    const ordered = {
      first: await rebuild(imageRow(2), 7),
      broken: await rebuild(lost),
      last: await rebuild(imageRow(1), 8),
    };
    const row = (await findAnyServer(tx, id)) ?? assert.fail();
    const { server, keys } = await effectiveServer(tx, row);
    assert.deepEqual([row.image_name, row.boot, keys], ["brume-tiny", before.boot, []]);
    assert.ok(Buffer.from(before.admin_password).equals(server.admin_password) && server.user_data === null);
    return ordered;
  });
  assert.equal((await end(first.task)).steps[1]?.detail, "10 GB from debian-12");
  assert.equal((await end(broken.task)).error?.code, "disk_failed");
  assert.equal((await end(last.task)).steps[1]?.detail, "10 GB from brume-tiny");
  const { server, keys } = await effectiveServer(store.read, await fixture.row(id));
  assert.deepEqual(
    keys.map((key) => key.id),
    [8],
  );
  assert.ok(Buffer.from(server.admin_password).equals(last.server.admin_password));
});

serverInvariant(
  "a backup is created daily and deleted by age",
  async ({ fixture, make, until, pass, alarm }, store) => {
    const { id } = await make({ isBackupActive: true });
    fixture.machines.write(id, "precious");
    const backups = async () => (await listBackups(store.read)).filter(({ state }) => state === "Active");
    await until(async () => (await backups()).length === 1);
    const [first] = await backups();
    assert.deepEqual([first?.server_id, first?.name, first?.folder], [id, "web-1 2026-11-20", `backup-${first?.id}`]);
    await pass(20 * minute);
    assert.equal((await backups()).length, 1, "once a day");
    const begun = alarm.now();
    alarm.pass(1.1 * day);
    await until(async () => (await backups()).length === 2);
    alarm.pass(begun + 7.5 * day - alarm.now());
    await until(async () => !(await backups()).some((each) => each.id === first?.id));
    assert.ok((await backups()).length >= 2);
  },
);

serverInvariant(
  "an image of a server is created, or shows its error, and can be deleted",
  async ({ fixture, make, write, end }, store) => {
    const { commands } = fixture.servers;
    const row = await make();
    const spec = { type: "Client", name: "gold", techName: "gold", labels: {} } as const;
    const made = await write((tx) => commands.image(tx, row, spec, by));
    await end(made.task);
    const image = (await findImage(store.read, 1, made.image.id)) ?? assert.fail();
    assert.deepEqual([image.state, image.hdd, image.progress], ["Active", 10, 100]);
    await write((tx) => commands.removeImage(tx, image, by));
    assert.equal(await findImage(store.read, 1, image.id), undefined);
    fixture.machines.fail("ensureImage", 9);
    const broken = await write((tx) => commands.image(tx, row, spec, by));
    assert.equal((await end(broken.task)).state, "Failed");
    const failed = await findImage(store.read, 1, broken.image.id);
    assert.deepEqual([failed?.state, readJson(failed?.error)["code"]], ["Failed", "snapshot_failed"]);
  },
);

serverInvariant(
  "an image blocks its server only for the snapshot",
  async ({ fixture, make, write, end, until, machines }, store) => {
    const { commands } = fixture.servers;
    const row = await make();
    fixture.machines.write(row.id, "at that moment");
    // Tried again after seconds, in which others have their turn.
    fixture.machines.fail("ensureImage", 9);
    const spec = { type: "Client", name: "gold", techName: "gold", labels: {} } as const;
    const [kept, given, other] = await write(async (tx) => [
      await commands.image(tx, row, spec, by),
      await commands.image(tx, row, { ...spec, name: "cancelled" }, by),
      await commands.image(tx, row, { ...spec, name: "other" }, by),
    ]);
    const rebuilt = await write((tx) =>
      commands.rebuild(tx, row, { image: imageRow(2), keys: null, userData: undefined }, "Power", by),
    );
    assert.equal((await end(rebuilt.task)).state, "Completed");
    const image = async (made: typeof kept) => findImage(store.read, 1, made?.image.id ?? 0);
    assert.deepEqual(
      [(await image(kept))?.state, fixture.machines.images().length],
      ["New", 3],
      "it is still being written",
    );
    await write(async (tx) => {
      await commands.removeImage(tx, given?.image ?? assert.fail(), by);
      await commands.delete(tx, await fixture.row(row.id), by);
    });
    await until(async () => (await machines()).length === 0);
    for (const made of [kept, other]) assert.equal((await end(made?.task ?? assert.fail())).state, "Completed");
    await until(async () => fixture.machines.images().length === 2);
    assert.deepEqual(fixture.machines.images(), [
      { content: "at that moment", isKept: false },
      { content: "at that moment", isKept: false },
    ]);
  },
);

serverInvariant(
  "an image that cannot be written shows the error, and its snapshot is removed",
  async ({ fixture, make, write, end }, store) => {
    const row = await make();
    fixture.machines.fail("ensureImage", 9);
    const spec = { type: "Client", name: "gold", techName: "gold", labels: {} } as const;
    const made = await write((tx) => fixture.servers.commands.image(tx, row, spec, by));
    assert.equal((await end(made.task)).error?.step, "Write");
    assert.deepEqual(fixture.machines.images(), []);
    assert.equal((await findImage(store.read, 1, made.image.id))?.state, "Failed");
    assert.deepEqual(await queue(store.read, { kind: "server", id: row.id }), []);
  },
);

serverInvariant("a copy that is deleted while it waits unblocks its source", async (it, store) => {
  const { fixture, make, write, end, until, machines } = it;
  const { commands } = fixture.servers;
  const source = await make();
  fixture.machines.delay("ensureStopped", 100);
  await write((tx) => commands.power(tx, source, { Type: "PowerOff" }, by));
  const copy = await write((tx) => commands.copy(tx, { source, spec: fixture.spec({ name: "web-2" }), by }));
  const on = await write((tx) => commands.power(tx, source, { Type: "PowerOn" }, by));
  await write((tx) => commands.delete(tx, copy.server, by));
  await until(async () => (await findAnyServer(store.read, copy.server.id)) === undefined);
  assert.equal((await end(on)).state, "Completed");
  assert.deepEqual(await machines(), [source.id]);
});

serverInvariant("a member that is deleted before its creation does not fail its group", async (it, store) => {
  const { fixture, write, until } = it;
  const { commands } = fixture.servers;
  fixture.router.broken = true;
  const { batch, members } = await write(async (tx) => {
    const batch = await insertBatch(tx, { project_id: 1, policy: "Atomic", state: "New", errors: "[]", created: 0 });
    const spec = { project: 1, batch: batch.id, spec: fixture.spec(), by };
    return { batch, members: [await commands.create(tx, spec), await commands.create(tx, spec)] };
  });
  const [first, second] = members;
  await write((tx) => commands.delete(tx, first?.server ?? assert.fail(), by));
  fixture.router.broken = false;
  await until(async () => (await findBatch(store.read, 1, batch.id))?.state === "Active");
  await until(async () => (await findAnyServer(store.read, first?.server.id ?? 0)) === undefined);
  assert.equal((await it.server(second?.server.id ?? 0)).state, "Active");
});
