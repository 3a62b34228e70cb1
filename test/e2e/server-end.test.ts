/**
 * The life of a server (docs/spec.md#server-states, #server-endpoints), its second half: copied, rebuilt, deleted, and told of to those who
 * may hear it.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onSqlite, refused } from "../support/harness.ts";
import {
  createServerScene,
  debian,
  type ServerScene,
  stepsOf,
  tracesOf,
  typesOf,
  windows,
} from "../support/serverservice.ts";
import { tiny } from "../support/testservice.ts";

const path = ({ ID }: { readonly ID: number }) => ({ id: ID });

onSqlite(
  "servers",
  (stage) => {
    let scene: ServerScene;
    before(() => {
      scene = createServerScene(stage);
    });

    describe("made anew", () => {
      test("a copy is somebody else with the same disk", async () => {
        const source = await scene.server({ Labels: { env: "prod" } });
        stage.world.machines.write(source.ID, "what was written");
        const copy = await stage.client.copyServer({ path: path(source), body: { Name: "twin" } }, { wait: 30 });
        assert.deepEqual(
          [copy.State, copy.Name, copy.HostName, copy.Labels],
          ["Active", "twin", "twin", { env: "prod" }],
        );
        assert.deepEqual(
          [copy.CPU, copy.RAM, copy.HDD, copy.ImageID],
          [source.CPU, source.RAM, source.HDD, source.ImageID],
        );
        for (const field of ["ID", "IP", "AdminPassword"] as const) assert.notEqual(copy[field], source[field]);
        assert.notEqual(copy.LinkedNetworks[0]?.MAC, source.LinkedNetworks[0]?.MAC);
        assert.equal(stage.world.machines.read(copy.ID), "what was written");
        const [action] = await scene.actions(copy.ID);
        assert.ok(action);
        assert.deepEqual(
          stepsOf(action),
          ["Reserve", "Snapshot", "Disk", "Identity", "Network", "Boot"].map((name) => `${name} Completed`),
        );
        assert.deepEqual(
          (await scene.actions(source.ID)).map(({ Type }) => Type),
          ["Create"],
        );
        await scene.remove(source.ID);
        assert.equal(stage.world.machines.read(copy.ID), "what was written");
      });

      test("a copy waits for what its source was asked before", async () => {
        const source = await scene.server();
        stage.world.machines.delay("ensureStopped", 300);
        const stop = await scene.order(source.ID, { Type: "PowerOff" });
        const copy = await stage.client.copyServer({ path: path(source), body: {} }, { wait: 30 });
        stage.world.machines.delay("ensureStopped", 0);
        assert.deepEqual([copy.State, copy.Name], ["Active", `${source.Name}-copy`]);
        assert.equal((await scene.ended(stop)).State, "Completed");
      });

      test("a rebuild is the same server with a new disk", async () => {
        const made = await scene.server();
        stage.world.machines.write(made.ID, "secret");
        const built = await stage.client.rebuildServer(
          { path: path(made), body: { ImageId: debian.name } },
          { wait: 30 },
        );
        const { AdminPassword, Image, ImageID, ...rest } = made;
        const { AdminPassword: password, Image: image, ImageID: _, ...now } = built;
        assert.deepEqual(now, rest);
        assert.deepEqual([image, password === AdminPassword], [debian.name, false]);
        assert.ok(Image && ImageID);
        assert.equal(stage.world.machines.read(made.ID), "");
        const [action] = await scene.actions(made.ID);
        assert.ok(action);
        assert.deepEqual(
          [action.Type, ...stepsOf(action)],
          ["Rebuild", "Stop Completed", "Disk Completed", "Boot Completed"],
        );
        await refused(
          stage.client.rebuildServer({ path: path(made), body: { ImageId: "windows" } }),
          "validation_failed",
          { "/ImageId": "out_of_range" },
        );
      });
    });

    describe("deleted", () => {
      test("nothing is left, and what works on it is given up", async () => {
        const made = await scene.server();
        stage.world.machines.delay("apply", 200);
        const running = await stage.client.updateServer({ path: path(made), body: { HDD: 40 } });
        const waiting = await scene.order(made.ID, { Type: "PowerOff" });
        assert.deepEqual([running.State, waiting.State], ["InProgress", "Postponed"]);
        await stage.client.deleteServer({ path: path(made) });
        assert.equal((await scene.read(made.ID)).State, "Deleting");
        const state = async (id: number) =>
          (await stage.client.readAction({ path: { id: made.ID, actionID: id } })).State;
        assert.equal(await state(waiting.ID), "Canceled");
        await refused(stage.client.updateServer({ path: path(made), body: { Name: "x" } }), "action_not_allowed");
        stage.world.machines.delay("apply", 0);
        // Again is as good as once.
        await scene.remove(made.ID);
        await refused(stage.client.readServer({ path: path(made) }), "server_not_found");
        await refused(stage.client.deleteServer({ path: path(made) }), "server_not_found");
        await refused(stage.client.listActions({ path: path(made) }), "server_not_found");
        assert.deepEqual(await tracesOf(stage, made.ID), []);
        const next = await scene.server();
        assert.equal(next.IP, made.IP, "its address is free");
      });

      test("everything is told, in order", async () => {
        await scene.response();
        const made = await scene.server();
        await scene.act(made.ID, { Type: "PowerOff" });
        await scene.remove(made.ID);
        const events = (await scene.response()).filter(
          ({ Resource }) => Resource === "server" || Resource === "action",
        );
        const types = typesOf(events);
        const making = "server.created action.created action.ended";
        const wanted = `${making} action.created action.ended action.created action.ended server.deleted`;
        assert.equal(types.filter((type) => !type.endsWith(".changed")).join(" "), wanted);
        const states = events.flatMap(({ Type, Data }) => (Type === "server.changed" ? [(Data as Server).State] : []));
        assert.deepEqual([...new Set(states)], ["New", "Active", "Deleting"]);
        assert.ok(events.every(({ TokenID }) => TokenID === 1 || TokenID === null));
      });
    });
  },
  {
    machines: { images: [tiny, windows, debian].map(({ name }) => name), offered: [tiny, windows, debian] },
  },
);
