/** Servers whose VM fails: a crash, no response, a missing disk, a full host disk. Each emits events, and the power can be cut. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { createServerApiFixture, type ServerApiFixture } from "../support/serverapifixture.ts";

onSqlite("failing servers", (harness) => {
  let fixture: ServerApiFixture;
  before(() => {
    fixture = createServerApiFixture(harness);
  });
  const shown = (id: number, until: (server: Server) => boolean) => fixture.read(id, until);
  const conditionsOf = async (id: number) =>
    (await fixture.newEvents()).flatMap(({ ResourceID, Type, Data }) =>
      ResourceID === id && Type.startsWith("server.") ? [(Data as Server).Condition] : [],
    );

  test("a VM that does not respond is marked and reported, and can be powered off at once", async () => {
    const { ID: id } = await fixture.server();
    await fixture.newEvents();
    harness.brume.machines.trouble(id, "NotResponding");
    await shown(id, ({ Condition }) => Condition === "NotResponding");
    assert.ok((await conditionsOf(id)).includes("NotResponding"));
    const metric = new RegExp(`^brume_server_condition\\{server="${id}",condition="NotResponding"\\} 1$`, "m");
    assert.match(await harness.client.readMetrics(), metric);
    const release = harness.brume.machines.hold("apply");
    const running = await harness.client.updateServer({ path: { id }, body: { HDD: 40 } });
    const later = await harness.client.updateServer({ path: { id }, body: { HDD: 41 } });
    const reboot = await fixture.order(id, { Type: "PowerReboot" });
    const off = await fixture.order(id, { Type: "PowerOff" });
    assert.deepEqual([running.State, later.State, off.State], ["InProgress", "Postponed", "Postponed"]);
    release();
    const ended = await fixture.ended(off);
    assert.equal(ended.State, "Completed");
    const overtaken = await fixture.ended(reboot);
    assert.deepEqual([overtaken.State, overtaken.Error?.code], ["Canceled", "superseded"]);
    assert.equal((await fixture.ended(later)).State, "Completed");
    const [after, first] = [(await fixture.ended(later)).EndDate, ended.EndDate].map((date) => Date.parse(date ?? ""));
    assert.ok((after ?? 0) >= (first ?? 0), "it had its turn before what waited");
    const server = await shown(id, ({ Condition }) => Condition === "Normal");
    assert.equal(server.IsPowerOn, false);
  });

  test("an action that is being undone cannot be canceled", async () => {
    const { ID: id } = await fixture.server();
    harness.brume.machines.fail("apply", 2, "before");
    harness.brume.machines.deafen(id, true);
    const release = harness.brume.machines.hold("ensureRunning");
    const action = await harness.client.startAction({ path: { id }, body: { Type: "RebootGuestOS", Timeout: 1 } });
    await harness.client.waitFor(
      "readAction",
      { path: { id, actionID: action.ID } },
      { until: ({ Steps }) => Steps[0]?.State === "Failed", timeout: 120_000 },
    );
    const error = await refused(
      harness.client.cancelAction({ path: { id, actionID: action.ID } }),
      "action_not_allowed",
    );
    assert.match(error.message, /is being undone already/);
    release();
    harness.brume.machines.fail("apply", 0);
    assert.equal((await fixture.ended(action)).Error?.code, "guest_did_not_respond");
  });

  test("a crash is reported with its reason and log, also after the restart of the server", async () => {
    const { ID: id } = await fixture.server();
    await fixture.newEvents();
    const crash = async (times: number) => {
      const before = await harness.brume.machines.readLog(id);
      harness.brume.machines.kill(id);
      const server = await shown(id, ({ Crashes }) => Crashes === times);
      assert.deepEqual([server.Error?.code, server.Error?.log], ["crashed", before]);
      return server;
    };
    for (let times = 1; times <= 3; times++) {
      const { Error: error } = await crash(times);
      const outcome = `It is started again (restart ${times} of at most 3 in ten minutes).`;
      assert.equal(error?.detail, `The VM of server ${id} ended unexpectedly: killed. ${outcome}`);
      await shown(id, ({ IsPowerOn }) => IsPowerOn);
      assert.equal((await fixture.read(id)).Error?.code, "crashed");
    }
    const events = (await fixture.newEvents()).filter(
      ({ Type, ResourceID }) => Type === "server.crashed" && ResourceID === id,
    );
    assert.deepEqual(
      events.map(({ Data }) => (Data as Server).Crashes),
      [1, 2, 3],
    );
    const staysOff = /killed\. It stays off, since it was restarted 3 times in the last ten minutes\.$/;
    assert.match((await crash(4)).Error?.detail ?? "", staysOff);
    assert.equal((await shown(id, ({ IsPowerOn }) => !IsPowerOn)).State, "Active");
    assert.match(
      await harness.client.readMetrics(),
      new RegExp(`^brume_server_crashes_total\\{server="${id}"\\} 4$`, "m"),
    );
    assert.equal((await fixture.act(id, { Type: "PowerOn" })).State, "Completed");
    const again = await fixture.read(id);
    assert.deepEqual([again.IsPowerOn, again.Error, again.Crashes], [true, null, 4]);
    // The crash after a start by a client is no restart, and does not count as one.
    assert.match((await crash(5)).Error?.detail ?? "", staysOff);
  });

  describe("a disk", () => {
    test("that is missing is reported at once, by an action and by the reconciler", async () => {
      const { ID: id } = await fixture.server();
      await fixture.act(id, { Type: "PowerOff" });
      harness.brume.machines.lose(id);
      const action = await fixture.act(id, { Type: "PowerOn" });
      assert.deepEqual([action.State, action.Error?.code], ["Failed", "disk_missing"]);
      assert.match(action.Error?.detail ?? "", /its disk is missing/);
      const other = await fixture.server();
      harness.brume.machines.lose(other.ID);
      harness.brume.machines.kill(other.ID, "host");
      const { Error: error } = await shown(other.ID, (server) => server.Error !== null);
      assert.equal(error?.code, "disk_missing");
    });

    test("without space pauses the VM, which continues when space is free", async () => {
      const { ID: id } = await fixture.server();
      await fixture.newEvents();
      harness.brume.machines.leave(0);
      harness.brume.machines.trouble(id, "IoError");
      await shown(id, ({ Condition }) => Condition === "IoError");
      harness.brume.machines.leave(100);
      await shown(id, ({ Condition }) => Condition === "Normal");
      assert.deepEqual([...new Set(await conditionsOf(id))], ["IoError", "Normal"]);
    });
  });
});
