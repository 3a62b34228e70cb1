/** What is reported: the progress of a step, a canceled creation, and the condition of a VM while nothing can be stored. */
import assert from "node:assert/strict";
import { insertImage } from "../../service/src/catalog/table.ts";
import { flow } from "../../service/src/engine/flow.ts";
import { errorFor, stepErrorOf } from "../../service/src/server/flow/error.ts";
import { changeServer } from "../../service/src/server/flow/serverrow.ts";
import { updateServer } from "../../service/src/server/table.ts";
import type { Tx } from "../../service/src/store/db.ts";
import {
  begin,
  createFixtureEngine,
  createGate,
  createTestAlarm,
  invariant,
  mustFind,
} from "../support/enginefixture.ts";
import { imageRow } from "../support/rows.ts";
import { openServerFixture } from "../support/serverfixture.ts";
import { waitUntil } from "../support/waituntil.ts";

invariant("a step reports its progress while it runs", async (store) => {
  const alarm = createTestAlarm();
  const gate = createGate();
  const logged: string[] = [];
  const busy = flow({
    name: "sample.busy",
    subject: "sample",
    steps: [
      {
        name: "Disk",
        async do({ note }) {
          note?.("10 %");
          note?.("11 %");
          await gate.pass();
          return { detail: "whole" };
        },
      },
    ],
    announce: async (_tx, { steps }, what) => void logged.push(`${what}: ${steps[0]?.detail}`),
  });
  const engine = createFixtureEngine(store, alarm, { flows: [busy] });
  engine.run();
  const { id } = await begin(store, busy, 1, alarm.now());
  await gate.reached;
  alarm.pass(1000);
  const detail = async () => (await mustFind(store, id)).steps[0]?.detail;
  await waitUntil("a note", detail, (text) => text !== "");
  const task = await mustFind(store, id);
  assert.deepEqual([task.state, task.steps[0]?.state, await detail()], ["InProgress", "InProgress", "11 %"]);
  gate.open();
  await engine.idle();
  assert.deepEqual([(await mustFind(store, id)).state, await detail()], ["Completed", "whole"]);
  assert.deepEqual(logged.slice(-2), ["changed: 11 %", "ended: whole"]);
  await engine.drain();
});

invariant("an error that only has the id of another request is not reported at each try", async (store) => {
  const alarm = createTestAlarm();
  const reported: string[] = [];
  let tries = 0;
  const endless = flow({
    name: "sample.endless",
    subject: "sample",
    persistent: true,
    steps: [
      {
        name: "Disk",
        async do() {
          tries += 1;
          if (tries < 9) throw stepErrorOf("disk_failed", `the host is busy (request 1234567${tries})`);
        },
      },
    ],
    announce: async (_tx, { error }, what) => void reported.push(`${what}: ${error?.detail}`),
  });
  const engine = createFixtureEngine(store, alarm, { flows: [endless] });
  engine.run();
  const { id } = await begin(store, endless, 1, alarm.now());
  while ((await mustFind(store, id)).state !== "Completed") {
    await engine.idle();
    alarm.pass(60_000);
  }
  await engine.drain();
  // The first failures come soon after the event of the creation.
  const failures = reported.filter((text) => text.includes("the host is busy (request 1234567"));
  assert.ok(failures.length >= 1 && failures.length <= 3, failures.join("\n"));
});

invariant("the error of a server that only has the id of another request is published once", async (store) => {
  const fixture = await openServerFixture(store, Date.now);
  try {
    const { id } = await fixture.makeServer();
    const { machineStatus } = fixture.servers;
    const note = (request: string) => {
      const error = JSON.stringify(errorFor("boot_failed", `the server could not start (request ${request})`));
      return store.write((tx) => changeServer({ clock: { now: Date.now }, machineStatus }, tx, id, { error }, null));
    };
    const countEvents = async () => (await store.read.selectFrom("event").select("id").execute()).length;
    const before = await countEvents();
    for (const request of ["12345678", "a5000000", "5e1f02ab"]) await note(request);
    assert.equal(await countEvents(), before + 1);
  } finally {
    fixture.servers.close();
  }
});

invariant("a step that waits for a guest observes no other server", async (store) => {
  const fixture = await openServerFixture(store, Date.now);
  try {
    const [{ id }] = [await fixture.makeServer(), await fixture.makeServer()];
    const guest = fixture.flow("server.PowerOn").steps.find(({ name }) => name === "Guest");
    assert.ok(guest?.do);
    const observed: (readonly number[] | undefined)[] = [];
    const { machines } = fixture;
    const { observe } = machines;
    machines.observe = (only) => {
      observed.push(only);
      return observe(only);
    };
    const { signal } = new AbortController();
    await guest.do({ task: 1, subject: id, project: 1, input: {}, facts: {}, attempt: 1, signal });
    assert.deepEqual(observed, [[id]]);
  } finally {
    fixture.servers.close();
  }
});

invariant("a canceled creation whose task has no error states the cancellation", async (store) => {
  const fixture = await openServerFixture(store, Date.now);
  try {
    const server = await fixture.makeServer();
    const run = { task: 1_000_000, subject: server.id, project: 1, input: { server: server.id }, facts: {} };
    const end = (name: string, subject: number) =>
      store.write((tx) => {
        const ended = fixture.flow(name).ended as unknown as (tx: Tx, run: object, ending: string) => Promise<void>;
        return ended(tx, { ...run, subject }, "Canceled");
      });
    await store.write((tx) => updateServer(tx, server.id, { state: "New" }));
    await end("server.Create", server.id);
    const failed = await fixture.row(server.id);
    assert.equal(failed.state, "Failed");
    assert.match(failed.error ?? "", new RegExp(`"detail":"The creation of server ${server.id} was canceled\\."`));
    const image = await store.write((tx) => insertImage(tx, imageRow(77, { state: "New" })));
    await end("image.make", image.id);
    const { error } = await store.read
      .selectFrom("image")
      .select("error")
      .where("id", "=", 77)
      .executeTakeFirstOrThrow();
    assert.match(error ?? "", /"detail":"The creation of image 77 was canceled\."/);
  } finally {
    fixture.servers.close();
  }
});

invariant("while nothing can be stored, the observed condition of a VM is shown", async (store) => {
  let blocked: string | null = null;
  const fixture = await openServerFixture({ ...store, blocked: () => blocked }, Date.now);
  try {
    const server = await fixture.makeServer();
    const { condition, machineStatus } = fixture.servers;
    const seen = async () => {
      await machineStatus.observe();
      return [condition(await fixture.row(server.id)), machineStatus.troubled()];
    };
    assert.deepEqual(await seen(), ["Normal", []]);
    fixture.machines.leave(0);
    fixture.machines.trouble(server.id, "IoError");
    blocked = "the disk is full";
    assert.deepEqual(await seen(), ["IoError", [{ id: server.id, condition: "IoError" }]]);
  } finally {
    fixture.servers.close();
  }
});
