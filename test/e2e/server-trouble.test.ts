/** Servers when their machines fail: they crash, stop answering, lose their disk or the room for it. Each is told of, and power can be cut. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { createServerScene, type ServerScene } from "../support/serverservice.ts";

onSqlite("servers in trouble", (stage) => {
  let scene: ServerScene;
  before(() => {
    scene = createServerScene(stage);
  });
  const shown = (id: number, until: (server: Server) => boolean) => scene.read(id, until);
  const conditionsOf = async (id: number) =>
    (await scene.response()).flatMap(({ ResourceID, Type, Data }) =>
      ResourceID === id && Type.startsWith("server.") ? [(Data as Server).Condition] : [],
    );

  test("a machine that does not respond is marked, told of, and cut whatever waits", async () => {
    const { ID: id } = await scene.server();
    await scene.response();
    stage.world.machines.trouble(id, "NotResponding");
    await shown(id, ({ Condition }) => Condition === "NotResponding");
    assert.ok((await conditionsOf(id)).includes("NotResponding"));
    const metric = new RegExp(`^brume_server_condition\\{server="${id}",condition="NotResponding"\\} 1$`, "m");
    assert.match(await stage.client.readMetrics(), metric);
    stage.world.machines.delay("apply", 1500);
    const running = await stage.client.updateServer({ path: { id }, body: { HDD: 40 } });
    const later = await stage.client.updateServer({ path: { id }, body: { HDD: 41 } });
    const reboot = await scene.order(id, { Type: "PowerReboot" });
    const off = await scene.order(id, { Type: "PowerOff" });
    assert.deepEqual([running.State, later.State, off.State], ["InProgress", "Postponed", "Postponed"]);
    const ended = await scene.ended(off);
    stage.world.machines.delay("apply", 0);
    assert.equal(ended.State, "Completed");
    const overtaken = await scene.ended(reboot);
    assert.deepEqual([overtaken.State, overtaken.Error?.code], ["Canceled", "superseded"]);
    assert.equal((await scene.ended(later)).State, "Completed");
    const [after, first] = [(await scene.ended(later)).EndDate, ended.EndDate].map((date) => Date.parse(date ?? ""));
    assert.ok((after ?? 0) >= (first ?? 0), "it had its turn before what waited");
    const server = await shown(id, ({ Condition }) => Condition === "Normal");
    assert.equal(server.IsPowerOn, false);
  });

  test("what is being undone cannot be canceled, and says so", async () => {
    const { ID: id } = await scene.server();
    stage.world.machines.fail("apply", 2, "before");
    stage.world.machines.deafen(id, true);
    stage.world.machines.delay("ensureRunning", 1500);
    const action = await stage.client.startAction({ path: { id }, body: { Type: "RebootGuestOS", Timeout: 1 } });
    await stage.client.waitFor(
      "readAction",
      { path: { id, actionID: action.ID } },
      { until: ({ Steps }) => Steps[0]?.State === "Failed", timeout: 30_000 },
    );
    const error = await refused(stage.client.cancelAction({ path: { id, actionID: action.ID } }), "action_not_allowed");
    assert.match(error.message, /is being undone already/);
    stage.world.machines.delay("ensureRunning", 0);
    stage.world.machines.fail("apply", 0);
    assert.equal((await scene.ended(action)).Error?.code, "guest_did_not_respond");
  });

  test("a crash is told of with its reason and its log, also when the server is on again", async () => {
    const { ID: id } = await scene.server();
    await scene.response();
    const crash = async (times: number) => {
      const before = await stage.world.machines.readLog(id);
      stage.world.machines.kill(id);
      const server = await shown(id, ({ Crashes }) => Crashes === times);
      assert.deepEqual([server.Error?.code, server.Error?.log], ["crashed", before]);
      return server;
    };
    for (let times = 1; times <= 3; times++) {
      const { Error: error } = await crash(times);
      assert.match(error?.detail ?? "", new RegExp(`${times} times in ten minutes: killed\\. It is started again\\.`));
      await shown(id, ({ IsPowerOn }) => IsPowerOn);
      assert.equal((await scene.read(id)).Error?.code, "crashed");
    }
    const events = (await scene.response()).filter(
      ({ Type, ResourceID }) => Type === "server.crashed" && ResourceID === id,
    );
    assert.deepEqual(
      events.map(({ Data }) => (Data as Server).Crashes),
      [1, 2, 3],
    );
    assert.match((await crash(4)).Error?.detail ?? "", /It stays off\./);
    assert.equal((await shown(id, ({ IsPowerOn }) => !IsPowerOn)).State, "Active");
    assert.match(
      await stage.client.readMetrics(),
      new RegExp(`^brume_server_crashes_total\\{server="${id}"\\} 4$`, "m"),
    );
    assert.equal((await scene.act(id, { Type: "PowerOn" })).State, "Completed");
    const again = await scene.read(id);
    assert.deepEqual([again.IsPowerOn, again.Error, again.Crashes], [true, null, 4]);
  });

  describe("a disk", () => {
    test("that is missing is named at once, by an order and by what brings servers back", async () => {
      const { ID: id } = await scene.server();
      await scene.act(id, { Type: "PowerOff" });
      stage.world.machines.lose(id);
      const action = await scene.act(id, { Type: "PowerOn" });
      assert.deepEqual([action.State, action.Error?.code], ["Failed", "disk_missing"]);
      assert.match(action.Error?.detail ?? "", /its disk is missing/);
      const other = await scene.server();
      stage.world.machines.lose(other.ID);
      stage.world.machines.kill(other.ID, "host");
      const { Error: error } = await shown(other.ID, (server) => server.Error !== null);
      assert.equal(error?.code, "disk_missing");
    });

    test("without room pauses the machine, which goes on when there is room", async () => {
      const { ID: id } = await scene.server();
      await scene.response();
      stage.world.machines.leave(0);
      stage.world.machines.trouble(id, "IoError");
      await shown(id, ({ Condition }) => Condition === "IoError");
      stage.world.machines.leave(100);
      await shown(id, ({ Condition }) => Condition === "Normal");
      assert.deepEqual([...new Set(await conditionsOf(id))], ["IoError", "Normal"]);
    });
  });
});
