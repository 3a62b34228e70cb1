/** Servers over time, with their reconcilers and queues: crashes, power, deletion, blocked projects, and leftovers. */
import assert from "node:assert/strict";
import { findProject, updateProject } from "../../service/src/account/table.ts";
import { findImage } from "../../service/src/catalog/table.ts";
import { find, list } from "../../service/src/engine/task.ts";
import { addLink, listLinks, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { crashesWithin } from "../../service/src/server/flow/reconcile.ts";
import { showAction } from "../../service/src/server/model/show.ts";
import { sumProject } from "../../service/src/server/sumtable.ts";
import { findAnyServer } from "../../service/src/server/table.ts";
import { imageRow } from "../support/rows.ts";
import { by, eventsOf, minute, readJson, serverInvariant } from "../support/serverenginefixture.ts";

serverInvariant(
  "a crashed VM is restarted up to three times in ten minutes",
  async ({ fixture, make, until, isOn, server, pass, end, write, alarm }, store) => {
    const { id } = await make();
    for (let crashes = 1; crashes <= 3; crashes++) {
      fixture.machines.kill(id);
      assert.equal(fixture.servers.power(id), false);
      await until(() => isOn(id));
      await pass(minute);
    }
    // In the database: a restart of the service does not forget them.
    assert.equal((await crashesWithin(store.read, id, alarm.now(), 10 * minute)).size, 3);
    fixture.machines.kill(id);
    await until(async () => (await server(id)).is_on === 0);
    await pass(minute);
    assert.equal(await isOn(id), false);
    const row = await server(id);
    const task = await write((tx) => fixture.servers.commands.power(tx, row, { Type: "PowerOn" }, by));
    assert.equal((await end(task)).state, "Completed");
    assert.equal(fixture.servers.power(id), true);
    await pass(11 * minute);
    fixture.machines.kill(id);
    await until(() => isOn(id));
  },
);

serverInvariant(
  "a guest that powers itself off stays off, with an event",
  async ({ fixture, make, until, isOn, server, pass }, store) => {
    const { id } = await make();
    const before = (await eventsOf(store, "server", id)).length;
    fixture.machines.switchOff(id);
    await until(async () => (await server(id)).is_on === 0);
    await pass(minute);
    assert.equal(await isOn(id), false);
    const newEvents = (await eventsOf(store, "server", id)).slice(before);
    assert.deepEqual(
      newEvents.map(({ type, data }) => [type, readJson(data)["IsPowerOn"]]),
      [["server.changed", false]],
    );
  },
);

serverInvariant(
  "after a host reboot servers that were on are started, others stay off",
  async ({ fixture, make, until, isOn, pass, write, end }) => {
    const on = await make();
    const off = await make({ name: "web-2" });
    await end(await write((tx) => fixture.servers.commands.power(tx, off, { Type: "PowerOff" }, by)));
    fixture.machines.kill(on.id);
    await until(() => isOn(on.id));
    await pass(minute);
    assert.equal(await isOn(off.id), false);
    // As the driver reports a VM that should run and does not exist.
    await fixture.machines.ensureStopped(on.id, "cut");
    await until(() => isOn(on.id));
  },
);

serverInvariant(
  "a host reboot does not count as a crash",
  async ({ fixture, make, until, isOn, pass, alarm }, store) => {
    const { id } = await make();
    for (const reason of ["died", "host", "died", "host", "died", "host", "host"] as const) {
      fixture.machines.kill(id, reason);
      await until(() => isOn(id));
      await pass(minute);
    }
    assert.equal((await crashesWithin(store.read, id, alarm.now(), 10 * minute)).size, 3);
  },
);

serverInvariant(
  "a failed server uses no quota, also during its deletion",
  async ({ fixture, make, write, end, until, pass }, store) => {
    await make();
    const before = await sumProject(store.read, 1);
    const spec = fixture.spec({ image: imageRow(99, { name: "lost" }) });
    const { server, task } = await write((tx) =>
      fixture.servers.commands.create(tx, { project: 1, batch: null, spec, by }),
    );
    assert.notDeepEqual(await sumProject(store.read, 1), before);
    assert.equal((await end(task)).state, "Failed");
    assert.deepEqual(await sumProject(store.read, 1), before);
    fixture.machines.fail("remove", Infinity);
    await write(async (tx) => fixture.servers.commands.delete(tx, await fixture.row(server.id), by));
    await pass(minute);
    assert.equal((await fixture.row(server.id)).state, "Deleting");
    assert.deepEqual(await sumProject(store.read, 1), before);
    fixture.machines.fail("remove", 0);
    await until(async () => (await findAnyServer(store.read, server.id)) === undefined);
  },
);

serverInvariant("tasks and events contain no secret", async ({ fixture, write, end }, store) => {
  const spec = fixture.spec({ userData: "#!/bin/sh\necho very-hidden\n", waitFor: "Guest" });
  const { server, task } = await write((tx) =>
    fixture.servers.commands.create(tx, { project: 1, batch: null, spec, by }),
  );
  await end(task);
  const plan = { image: imageRow(2), keys: null, userData: "#!/bin/sh\necho hidden-too\n" };
  const rebuilt = await write((tx) => fixture.servers.commands.rebuild(tx, server, plan, "Power", by));
  await end(rebuilt.task);
  const tasks = await store.read.selectFrom("task").select(["input", "facts", "steps", "error"]).execute();
  const events = await store.read.selectFrom("event").select("data").execute();
  const passwords = events.map(({ data }) => readJson(data)["AdminPassword"]).filter((one) => one !== undefined);
  assert.ok(passwords.length > 0 && passwords.every((one) => one === ""));
  assert.doesNotMatch(JSON.stringify([tasks, events]), /hidden/);
});

serverInvariant("events name the token from the request to the end", async ({ fixture, make }, store) => {
  const server = await make();
  const [task] = await list(store.read, { kind: "server", id: server.id }, 1);
  const actionEvents = await eventsOf(store, "action", task?.id ?? 0);
  assert.deepEqual([actionEvents[0]?.type, actionEvents.at(-1)?.type], ["action.created", "action.ended"]);
  assert.ok(
    actionEvents.every((event) => event.token_id === 1 && event.request_id === "test" && event.parent_id === server.id),
  );
  assert.deepEqual(readJson(actionEvents.at(-1)?.data)["State"], "Completed");
  const [link] = await listLinksOfServer(store.read, server.id);
  assert.equal(link?.state, "Active");
  assert.equal((await fixture.router.observe()).networks[0]?.ports[0]?.attached, true);
});

serverInvariant(
  "a deletion runs before waiting actions and leaves nothing",
  async ({ fixture, write, until, machines, alarm }, store) => {
    const { servers, router, spec } = fixture;
    router.broken = true;
    const { server, task } = await write((tx) =>
      servers.commands.create(tx, { project: 1, batch: null, spec: spec(), by }),
    );
    const waiting = await write((tx) => servers.commands.power(tx, server, { Type: "PowerOff" }, by));
    await until(async () => (await find(store.read, task.id))?.steps[1]?.state === "Completed");
    const deletion = await write((tx) => servers.commands.delete(tx, server, by));
    assert.equal(await write(async (tx) => servers.commands.delete(tx, await fixture.row(server.id), by)), null);
    const canceled = await find(store.read, waiting.id);
    assert.deepEqual([canceled?.state, canceled?.error?.code], ["Canceled", "superseded"]);
    assert.deepEqual(
      (await eventsOf(store, "action", waiting.id)).map(({ type }) => type),
      ["action.created", "action.ended"],
    );
    await until(async () => (await find(store.read, deletion?.id ?? 0))?.steps[0]?.state === "Completed");
    assert.equal((await fixture.row(server.id)).state, "Deleting");
    const late = alarm.now() + 30 * minute;
    await until(async () => alarm.now() > late);
    assert.equal((await fixture.row(server.id)).state, "Deleting", "the deletion is retried without end");
    router.broken = false;
    await until(async () => (await findAnyServer(store.read, server.id)) === undefined);
    assert.deepEqual(await machines(), []);
    assert.deepEqual(await listLinks(store.read, fixture.networks[0]?.id ?? 0), []);
    assert.deepEqual(await list(store.read, { kind: "server", id: server.id }, 9), []);
    const [gone, ended] = [
      await eventsOf(store, "server", server.id),
      await eventsOf(store, "action", deletion?.id ?? 0),
    ];
    assert.deepEqual(
      ended.map(({ type }) => type).filter((type) => type !== "action.changed"),
      ["action.created", "action.ended"],
    );
    assert.deepEqual([gone.at(-1)?.type, readJson(ended.at(-1)?.data)["State"]], ["server.deleted", "Completed"]);
    assert.ok((ended.at(-1)?.id ?? 0) < (gone.at(-1)?.id ?? 0), "no event follows the end of a deleted server");
  },
);

serverInvariant(
  "blocking a project powers its servers off, and unblocking restores them",
  async ({ fixture, make, write, until, isOn, server, end }, store) => {
    const { commands } = fixture.servers;
    const on = await make();
    const off = await make({ name: "web-2" });
    await end(await write((tx) => commands.power(tx, off, { Type: "PowerOff" }, by)));
    const release = fixture.machines.hold("ensureDisk");
    const late = await write((tx) =>
      commands.create(tx, { project: 1, batch: null, spec: fixture.spec({ name: "web-3" }), by }),
    );
    const waiting = await write((tx) => commands.power(tx, late.server, { Type: "PowerReboot" }, by));
    const set = (is_blocked: 0 | 1) =>
      write(async (tx) => {
        await updateProject(tx, 1, { is_blocked });
        await (is_blocked ? commands.block : commands.unblock)(tx, 1, by);
      });
    await set(1);
    release();
    assert.equal((await findProject.first(store.read, { id: 1 }))?.is_blocked, 1);
    assert.equal((await end(waiting)).state, "Canceled");
    await until(async () => (await server(late.server.id)).state === "Blocked");
    for (const { id } of [on, off, late.server]) {
      await until(async () => !(await isOn(id)));
      assert.equal((await server(id)).state, "Blocked");
    }
    await set(0);
    for (const { id } of [on, late.server]) await until(() => isOn(id));
    assert.deepEqual([(await server(off.id)).state, await isOn(off.id)], ["Active", false]);
  },
);

serverInvariant(
  "resources of a waiting action are released when it is canceled",
  async ({ fixture, make, write, end, server }, store) => {
    const { commands } = fixture.servers;
    const row = await make();
    const why = {
      code: "superseded",
      title: "The action was superseded by a later request.",
      detail: "On purpose.",
      step: null,
    } as const;
    const release = fixture.machines.hold("ensureStopped");
    const running = await write((tx) => commands.power(tx, row, { Type: "PowerOff" }, by));
    const steps = ["Cpu", "Memory", "Disk"];
    const resize = await write((tx) =>
      commands.resize(tx, row, { input: { cpu: 4, hdd: 40 }, steps, restart: false }, by),
    );
    const join = await write((tx) => commands.addNetwork(tx, row, { network: fixture.networks[1]?.id ?? 0 }, by));
    assert.deepEqual([resize.state, join.state, (await server(row.id)).held_cpu], ["Postponed", "Postponed", 4]);
    assert.equal((await listLinksOfServer(store.read, row.id)).length, 2);
    assert.deepEqual(
      showAction(join)?.Steps.map((step) => [step.State, step.StartDate]),
      [
        ["Pending", null],
        ["Pending", null],
      ],
    );
    for (const { id: task } of [resize, join]) await write((tx) => commands.cancel(tx, row.id, why, { task }));
    const canceled = await find(store.read, join.id);
    assert.deepEqual(canceled && showAction(canceled)?.Steps.map(({ State, Detail }) => [State, Detail !== ""]), [
      ["Undone", true],
      ["Pending", false],
    ]);
    const { held_cpu, held_hdd } = await server(row.id);
    assert.deepEqual([held_cpu, held_hdd, (await listLinksOfServer(store.read, row.id)).length], [1, 10, 1]);
    release();
    assert.equal((await end(running)).state, "Completed");
  },
);

serverInvariant(
  "a NIC is attached and detached while the server is on and off",
  async ({ fixture, make, write, end, until, server }, store) => {
    const { commands } = fixture.servers;
    const row = await make();
    const network = fixture.networks[1]?.id ?? 0;
    const joined = await end(await write((tx) => commands.addNetwork(tx, row, { network }, by)));
    assert.equal(joined.state, "Completed", JSON.stringify(joined.error));
    const [, link] = await listLinksOfServer(store.read, row.id);
    assert.equal(link?.state, "Active");
    const ports = async () =>
      (await fixture.router.observe()).networks.find(({ id }) => id === network)?.ports.map(({ attached }) => attached);
    assert.deepEqual(await ports(), [true]);
    fixture.machines.deafen(row.id, true);
    const refused = await end(await write((tx) => commands.removeNetwork(tx, row, link ?? assert.fail(), by)));
    assert.deepEqual([refused.state, refused.error?.code], ["Failed", "apply_failed"]);
    fixture.machines.deafen(row.id, false);
    await end(await write((tx) => commands.power(tx, row, { Type: "PowerOff" }, by)));
    await end(await write((tx) => commands.removeNetwork(tx, row, link ?? assert.fail(), by)));
    await until(async () => (await ports())?.length === 0);
    assert.equal((await listLinksOfServer(store.read, row.id)).length, 1);
    assert.equal((await server(row.id)).state, "Active");
  },
);

serverInvariant(
  "a guest that ignores the power button stays on unless forced",
  async ({ fixture, make, write, end, isOn }) => {
    const row = await make();
    const shutDown = async (Force: boolean) =>
      end(
        await write((tx) =>
          fixture.servers.commands.power(tx, row, { Type: "ShutDownGuestOS", Timeout: 1, Force }, by),
        ),
      );
    fixture.machines.deafen(row.id, true);
    assert.deepEqual([(await shutDown(false)).error?.code, await isOn(row.id)], ["guest_did_not_respond", true]);
    assert.deepEqual([(await shutDown(true)).state, await isOn(row.id)], ["Completed", false]);
  },
);

serverInvariant(
  "a guest that shuts down after a failed reset stays off",
  async ({ fixture, make, write, end, pass, isOn, server }) => {
    const { machines, servers } = fixture;
    const boots: (number | undefined)[] = [];
    for (const failure of ["before the reset", "when the VM is off", "when the VM runs"]) {
      const { id, boot } = await make({ name: `web-${boots.length}` });
      machines.fail("ensureRunning", 5, failure === "when the VM runs" ? "after" : "before", id);
      const row = await server(id);
      const task = await write((tx) => servers.commands.power(tx, row, { Type: "PowerReboot" }, by));
      if (failure === "when the VM is off") await machines.ensureStopped(id, "cut");
      assert.equal((await end(task)).state, "Failed");
      const status = (await machines.observe([id])).machines[0];
      assert.deepEqual([status?.power, status?.boot], ["running", (await server(id)).boot], failure);
      boots.push((status?.boot ?? 0) - boot);
      machines.switchOff(id);
      await pass(minute);
      assert.deepEqual([(await server(id)).is_on, await isOn(id)], [0, false], failure);
    }
    assert.deepEqual(boots, [0, 1, 1], "only a VM that still runs continues");
  },
);

serverInvariant(
  "an orphaned server is kept and powered off, and links without a server are removed",
  async ({ fixture, make, until, machines }, store) => {
    const row = await make();
    const machine = {
      id: 4711,
      uuid: "",
      owner: 1,
      boot: 1,
      cpus: 1,
      memory: 128,
      share: 1,
      disk: { version: 1, gb: 1 },
      nics: [],
      seed: [],
    };
    await fixture.machines.ensureDisk(machine, { image: "image-1" });
    const network = fixture.networks[0]?.id ?? 0;
    const stray = {
      id: 4711,
      network_id: network,
      server_id: 4711,
      host_name: "x",
      ip: "0a3f00aa",
      bandwidth: 1,
      state: "Active",
      created: 0,
    } as const;
    await store.write(async (tx) => addLink(tx, stray));
    await fixture.machines.ensureRunning(machine);
    const isOff = async () =>
      (await fixture.machines.observe()).machines.every(({ id, power }) => id !== 4711 || power === "off");
    await until(async () => (await isOff()) && (await listLinks(store.read, network)).length === 1);
    assert.deepEqual(await machines(), [row.id, 4711]);
  },
);

serverInvariant(
  "a copy and an image behind a failed rebuild have the image of the disk",
  async ({ fixture, make, write, end, server }, store) => {
    const { commands } = fixture.servers;
    const origin = imageRow(2);
    const { id } = await make({ image: origin });
    const release = fixture.machines.hold("ensureStopped");
    const plan = { image: imageRow(99, { name: "lost", guest: "cloud-init" }), keys: null, userData: undefined };
    const rebuilt = await write(async (tx) => commands.rebuild(tx, await fixture.row(id), plan, "Power", by));
    // As the routes do, from the row of the source at the time of the request.
    const source = await server(id);
    const { image_id, image_name, family, guest } = source;
    const spec = fixture.spec({ name: "web-2", image: { id: image_id, name: image_name, family, guest } });
    const copied = await write((tx) => commands.copy(tx, { source, spec, by }));
    const imaged = await write((tx) =>
      commands.image(tx, source, { type: "Client", name: "gold", techName: "gold", labels: {} }, by),
    );
    release();
    assert.equal((await end(rebuilt.task)).state, "Failed");
    const { state, steps } = await end(copied.task);
    const copy = await server(copied.server.id);
    assert.deepEqual([state, copy.image_id, copy.image_name, copy.guest], ["Completed", 2, origin.name, null]);
    assert.match(steps.find(({ name }) => name === "Identity")?.detail ?? "", /^host keys, .* removed$/);
    assert.equal((await end(imaged.task)).state, "Completed");
    const image = await findImage(store.read, 1, imaged.image.id);
    assert.deepEqual([image?.guest, image?.min_ram], [null, origin.min_ram]);
  },
);
