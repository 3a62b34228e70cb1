/**
 * The life cycle of a server (docs/spec.md#server-states, #server-endpoints), part 2: copy, rebuild, deletion and events.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onSqlite, refused } from "../support/harness.ts";
import {
  createServerApiFixture,
  debian,
  type ServerApiFixture,
  stepsOf,
  tracesOf,
  typesOf,
  windows,
} from "../support/serverapifixture.ts";
import { tiny } from "../support/testservice.ts";

const path = ({ ID }: { readonly ID: number }) => ({ id: ID });

onSqlite(
  "servers",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });

    describe("copied and rebuilt", () => {
      test("a copy is a new server with the same disk", async () => {
        const source = await fixture.server({ Labels: { env: "prod" } });
        harness.brume.machines.write(source.ID, "what was written");
        const copy = await harness.client.copyServer({ path: path(source), body: { Name: "twin" } }, { wait: 60 });
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
        assert.equal(harness.brume.machines.read(copy.ID), "what was written");
        const [action] = await fixture.actions(copy.ID);
        assert.ok(action);
        assert.deepEqual(
          stepsOf(action),
          ["Reserve", "Snapshot", "Disk", "Identity", "Network", "Boot"].map((name) => `${name} Completed`),
        );
        assert.deepEqual(
          (await fixture.actions(source.ID)).map(({ Type }) => Type),
          ["Create"],
        );
        await fixture.remove(source.ID);
        assert.equal(harness.brume.machines.read(copy.ID), "what was written");
      });

      test("a copy waits for earlier actions of its source", async () => {
        const source = await fixture.server();
        const release = harness.brume.machines.hold("ensureStopped");
        const stop = await fixture.order(source.ID, { Type: "PowerOff" });
        const { ID } = await harness.client.copyServer({ path: path(source), body: {} });
        assert.equal((await fixture.read(ID)).State, "New");
        release();
        const copy = await fixture.read(ID, ({ State }) => State !== "New");
        assert.deepEqual([copy.State, copy.Name], ["Active", `${source.Name}-copy`]);
        assert.equal((await fixture.ended(stop)).State, "Completed");
      });

      test("a rebuild is the same server with a new disk", async () => {
        const made = await fixture.server();
        harness.brume.machines.write(made.ID, "secret");
        const built = await harness.client.rebuildServer(
          { path: path(made), body: { ImageId: debian.name } },
          { wait: 60 },
        );
        const { AdminPassword, Image, ImageID, ...rest } = made;
        const { AdminPassword: password, Image: image, ImageID: _, ...now } = built;
        assert.deepEqual(now, rest);
        assert.deepEqual([image, password === AdminPassword], [debian.name, false]);
        assert.ok(Image && ImageID);
        assert.equal(harness.brume.machines.read(made.ID), "");
        const [action] = await fixture.actions(made.ID);
        assert.ok(action);
        assert.deepEqual(
          [action.Type, ...stepsOf(action)],
          ["Rebuild", "Stop Completed", "Disk Completed", "Boot Completed"],
        );
        await refused(
          harness.client.rebuildServer({ path: path(made), body: { ImageId: "windows" } }),
          "validation_failed",
          { "/ImageId": "out_of_range" },
        );
      });
    });

    describe("deleted", () => {
      test("nothing is left, and running actions are canceled", async () => {
        const made = await fixture.server();
        const release = harness.brume.machines.hold("apply");
        const running = await harness.client.updateServer({ path: path(made), body: { HDD: 40 } });
        const waiting = await fixture.order(made.ID, { Type: "PowerOff" });
        assert.deepEqual([running.State, waiting.State], ["InProgress", "Postponed"]);
        await harness.client.deleteServer({ path: path(made) });
        assert.equal((await fixture.read(made.ID)).State, "Deleting");
        const state = async (id: number) =>
          (await harness.client.readAction({ path: { id: made.ID, actionID: id } })).State;
        assert.equal(await state(waiting.ID), "Canceled");
        await refused(harness.client.updateServer({ path: path(made), body: { Name: "x" } }), "action_not_allowed");
        release();
        // A second deletion has no effect.
        await fixture.remove(made.ID);
        await refused(harness.client.readServer({ path: path(made) }), "server_not_found");
        await refused(harness.client.deleteServer({ path: path(made) }), "server_not_found");
        await refused(harness.client.listActions({ path: path(made) }), "server_not_found");
        assert.deepEqual(await tracesOf(harness, made.ID), []);
        const next = await fixture.server();
        assert.equal(next.IP, made.IP, "its address is free");
      });

      test("events are emitted in order", async () => {
        await fixture.newEvents();
        const made = await fixture.server();
        await fixture.act(made.ID, { Type: "PowerOff" });
        await fixture.remove(made.ID);
        const events = (await fixture.newEvents()).filter(
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
