/**
 * Actions of servers (docs/spec.md#action, #server-states, #action-states): allowed actions per state, their order, and their results.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { type Action, actionVerdicts, type RequestType, requestTypes } from "@brume/api/action.ts";
import type { Server } from "@brume/api/server.ts";
import { onSqliteFirst, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";
import { createServerApiFixture, pass, type ServerApiFixture, stepsOf } from "../support/serverapifixture.ts";

const clock = createMovableClock();
const path = ({ ID }: { readonly ID: number }) => ({ id: ID });

onSqliteFirst(
  "actions",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });

    /** Advances the clock until the action has ended. */
    async function waitForEnd(action: Action, seconds = 40): Promise<Action> {
      for (;;) {
        const now = await harness.client.readAction({ path: { id: action.ServerID, actionID: action.ID } });
        if (now.EndDate !== null) return now;
        await pass(harness, clock, seconds);
      }
    }
    const power = async (id: number) =>
      (await harness.brume.machines.observe()).machines.find((machine) => machine.id === id)?.power;

    describe("in every state", () => {
      let server: Server;
      let other: number;
      before(async () => {
        server = await fixture.server();
        other = (await harness.client.createNetwork({ body: { Name: "other" } }, { wait: 60 })).ID;
      });
      const fields: Partial<Record<RequestType, object>> = {
        EditNetworkBandwidth: { Bandwidth: 10 },
      };

      for (const state of ["on", "off"] as const)
        for (const type of requestTypes) {
          const verdict = actionVerdicts[type][state];
          test(`${type} while ${state}: ${verdict}`, async () => {
            await fixture.act(server.ID, { Type: state === "on" ? "PowerOn" : "PowerOff" });
            const NetworkID = type === "EditNetworkBandwidth" ? server.LinkedNetworks[0]?.NetworkID : other;
            const body = {
              Type: type,
              ...(type.endsWith("work") || fields[type] ? { NetworkID } : {}),
              ...fields[type],
            };
            const requested = fixture.act(server.ID, body as { Type: RequestType });
            if (verdict === "no") {
              await refused(requested, "action_not_allowed");
              return;
            }
            const was = (await fixture.read(server.ID)).IsPowerOn;
            const action = await requested;
            assert.deepEqual([action.State, action.Error], ["Completed", null]);
            if (verdict === "same") assert.equal((await fixture.read(server.ID)).IsPowerOn, was);
          });
        }

      test("a server that failed or is being deleted accepts no action", async () => {
        const gone = await fixture.server();
        const release = harness.brume.machines.hold("remove");
        await harness.client.deleteServer({ path: path(gone) });
        for (const type of ["PowerOn", "PowerOff"] as const)
          await refused(fixture.order(gone.ID, { Type: type }), "action_not_allowed");
        await refused(harness.client.copyServer({ path: path(gone), body: {} }), "action_not_allowed");
        await refused(harness.client.rebuildServer({ path: path(gone), body: {} }), "action_not_allowed");
        await refused(harness.client.createImage({ body: { Name: "x", ServerID: gone.ID } }), "action_not_allowed");
        release();
        await fixture.gone(gone.ID);
      });
    });

    describe("one at a time", () => {
      test("actions are queued in order, and each is validated after the earlier ones", async () => {
        const release = harness.brume.machines.hold("ensureDisk");
        const made = await harness.client.createServer({ body: { Name: "busy" } });
        const types = ["PowerOff", "PowerOn", "PowerReboot", "ShutDownGuestOS"] as const;
        const waiting: Action[] = [];
        for (const type of types) waiting.push(await fixture.order(made.ID, { Type: type }));
        assert.deepEqual(
          waiting.map(({ State, Steps }) => [State, Steps.every((step) => step.State === "Pending")]),
          types.map(() => ["Postponed", true]),
        );
        await refused(fixture.order(made.ID, { Type: "RebootGuestOS" }), "action_not_allowed");
        await refused(fixture.order(made.ID, { Type: "PowerOn", OnBusy: "Fail" }), "server_busy");
        release();
        for (const action of waiting) assert.equal((await fixture.ended(action)).State, "Completed");
        const ended = await fixture.actions(made.ID);
        assert.deepEqual(
          ended.map(({ Type }) => Type),
          [...types].reverse().concat("Create" as never),
        );
        const dates = ended.map(({ EndDate }) => EndDate ?? "");
        assert.deepEqual([...dates].sort().reverse(), dates);
        assert.equal((await fixture.read(made.ID)).IsPowerOn, false);
      });

      test("twenty actions can wait, and immediate changes need no queue", async () => {
        harness.brume.router.says = null;
        const made = await harness.client.createServer({ body: { Name: "long queue", WaitFor: "Ssh" } });
        for (let waiting = 0; waiting < 20; waiting++) await fixture.order(made.ID, { Type: "PowerReboot" });
        const edit = (body: object) => harness.client.updateServer({ path: path(made), body });
        await refused(fixture.order(made.ID, { Type: "PowerReboot" }), "queue_full");
        await refused(edit({ CPU: 2 }), "queue_full");
        const renamed = await edit({ Name: "renamed", CPU: made.CPU });
        assert.deepEqual([renamed.State, renamed.Steps], ["Completed", []]);
        const { Name, State } = await fixture.read(made.ID);
        assert.deepEqual([Name, State], ["renamed", "New"], "nothing was waited for");
        harness.brume.router.says = "SSH-2.0-simulated";
        await fixture.remove(made.ID);
      });

      test("lists have pages, newest first, and filters", async () => {
        const made = await fixture.server();
        for (const type of ["PowerOff", "PowerOn"] as const) await fixture.act(made.ID, { Type: type });
        const list = async (query: object) =>
          (await harness.client.listActions({ path: path(made), query })).map(({ Type }) => Type);
        assert.deepEqual(await list({ type: "poweroff,create" }), ["PowerOff", "Create"]);
        assert.deepEqual(await list({ state: "Failed" }), []);
        const seen: string[] = [];
        for await (const page of harness.client.pages("listActions", { path: path(made), query: { limit: 2 } }))
          seen.push(...page.map(({ Type }) => Type));
        assert.deepEqual(seen, ["PowerOn", "PowerOff", "Create"]);
      });

      test("an action belongs to its server", async () => {
        const [one, other] = [await fixture.server(), await fixture.server()];
        const [action] = await fixture.actions(one.ID);
        const at = { id: other.ID, actionID: action?.ID ?? 0 };
        await refused(harness.client.readAction({ path: at }), "action_not_found");
        await refused(harness.client.cancelAction({ path: at }), "action_not_found");
      });
    });

    describe("canceled", () => {
      test("a waiting action ends at once, a completed one does not change", async () => {
        const release = harness.brume.machines.hold("ensureDisk");
        const made = await harness.client.createServer({ body: { Name: "undecided" } });
        const waiting = await fixture.order(made.ID, { Type: "PowerOff" });
        const at = { id: made.ID, actionID: waiting.ID };
        const dry = await harness.client.cancelAction({ path: at }, { dryRun: true });
        assert.equal(dry.State, "Canceled");
        assert.equal((await harness.client.readAction({ path: at })).State, "Postponed");
        const canceled = await harness.client.cancelAction({ path: at });
        release();
        assert.deepEqual([canceled.State, canceled.Error?.code], ["Canceled", "superseded"]);
        await refused(harness.client.cancelAction({ path: at }), "action_not_allowed");
        assert.equal((await fixture.read(made.ID, ({ State }) => State === "Active")).IsPowerOn, true);
      });

      test("a deletion that waits for another action is final", async () => {
        const made = await fixture.server();
        const release = harness.brume.machines.hold("ensureStopped");
        await fixture.order(made.ID, { Type: "PowerOff" });
        await harness.client.deleteServer({ path: path(made) });
        const [deletion] = await fixture.actions(made.ID);
        assert.deepEqual([deletion?.Type, deletion?.State], ["Delete", "Postponed"]);
        const at = { id: made.ID, actionID: deletion?.ID ?? 0 };
        await refused(harness.client.cancelAction({ path: at }), "action_not_allowed");
        release();
        await fixture.gone(made.ID);
      });

      test("a running action is undone", async () => {
        const made = await fixture.server();
        harness.brume.machines.deafen(made.ID, true);
        const release = harness.brume.machines.hold("apply");
        const resize = await harness.client.updateServer({ path: path(made), body: { HDD: 20, CPU: 2 } });
        assert.equal(resize.State, "InProgress");
        const at = { id: made.ID, actionID: resize.ID };
        await harness.client.cancelAction({ path: at });
        release();
        const canceled = await fixture.ended(resize);
        harness.brume.machines.deafen(made.ID, false);
        assert.equal(canceled.State, "Canceled", JSON.stringify(canceled));
        const { CPU, HDD, IsPowerOn } = await fixture.read(made.ID);
        assert.deepEqual([CPU, HDD, IsPowerOn], [1, 10, true]);
        assert.equal((await harness.client.readOwnProject()).Usage.Servers > 0, true);
      });
    });

    describe("that depend on the guest", () => {
      test("a guest that ignores the power button fails the action, unless Force is set", async () => {
        const made = await fixture.server();
        harness.brume.machines.deafen(made.ID, true);
        const shutdown = await fixture.act(made.ID, { Type: "ShutDownGuestOS", Timeout: 1 });
        assert.deepEqual(
          [shutdown.State, shutdown.Error?.code, shutdown.Error?.step],
          ["Failed", "guest_did_not_respond", "Shutdown"],
        );
        assert.match(shutdown.Steps[0]?.Detail ?? "", /no reaction to the power button within 1 s/);
        assert.equal((await fixture.read(made.ID)).IsPowerOn, true);
        const forced = await fixture.act(made.ID, { Type: "ShutDownGuestOS", Timeout: 1, Force: true });
        assert.deepEqual([forced.State, await power(made.ID)], ["Completed", "off"]);
        harness.brume.machines.deafen(made.ID, false);
        await fixture.act(made.ID, { Type: "PowerOn" });
        assert.deepEqual(stepsOf(await fixture.act(made.ID, { Type: "RebootGuestOS" })), [
          "Shutdown Completed",
          "Boot Completed",
        ]);
      });

      test("WaitFor returns when the guest is ready", async () => {
        const ssh = await fixture.server({ WaitFor: "Ssh" });
        const [create] = await fixture.actions(ssh.ID);
        assert.deepEqual(create && stepsOf(create).slice(-2), ["Boot Completed", "Ssh Completed"]);
        const guest = await fixture.act(ssh.ID, { Type: "PowerReboot", WaitFor: "Guest" });
        assert.deepEqual(stepsOf(guest), ["Reset Completed", "Guest Completed"]);
      });

      test("a server whose guest is never ready does not change", async () => {
        const { router } = harness.brume;
        const { readBanner } = router;
        // Each read of the banner takes 20 s of the test clock; otherwise the ten minutes would need a thousand reads.
        router.readBanner = async () => {
          clock.pass(20);
          return null;
        };
        const made = await harness.client.createServer({ body: { Name: "mute", WaitFor: "Ssh" } });
        const [create] = await fixture.actions(made.ID);
        assert.ok(create);
        const isWaitingForSsh = ({ Steps }: Action): boolean =>
          Steps.some(({ Name, State }) => Name === "Ssh" && State === "InProgress");
        const at = { id: made.ID, actionID: create.ID };
        await harness.client.waitFor("readAction", { path: at }, { until: isWaitingForSsh, timeout: 120_000 });
        const ended = await waitForEnd(create, 1);
        router.readBanner = readBanner;
        assert.deepEqual([ended.State, ended.Error?.code, ended.Error?.step], ["Failed", "ssh_not_ready", "Ssh"]);
        assert.match(ended.Error?.log ?? "", /simulated/);
        const { State, IsPowerOn } = await fixture.read(made.ID);
        assert.deepEqual([State, IsPowerOn], ["Active", true]);
      });

      test("a server that powers itself off stays off, a crashed one is restarted", async () => {
        const made = await fixture.server();
        harness.brume.machines.switchOff(made.ID);
        await fixture.read(made.ID, ({ IsPowerOn }) => !IsPowerOn);
        await pass(harness, clock, 10);
        assert.equal(await power(made.ID), "off");
        await fixture.act(made.ID, { Type: "PowerOn" });
        harness.brume.machines.kill(made.ID);
        await fixture.read(made.ID, ({ IsPowerOn }) => IsPowerOn);
        assert.equal(await power(made.ID), "running");
      });
    });

    describe("that fail", () => {
      test("a start is attempted five times, and the error contains the VM's output", async () => {
        const made = await fixture.server();
        await fixture.act(made.ID, { Type: "PowerOff" });
        harness.brume.machines.fail("ensureRunning", 100);
        const ended = await waitForEnd(await fixture.order(made.ID, { Type: "PowerOn" }));
        harness.brume.machines.fail("ensureRunning", 0);
        assert.deepEqual([ended.State, ended.Error?.code, ended.Error?.step], ["Failed", "boot_failed", "Boot"]);
        assert.equal((await fixture.act(made.ID, { Type: "PowerOn" })).State, "Completed");
      });

      test("a resize whose start fails leaves the disk as it was", async () => {
        const made = await fixture.server({ HDD: 10 });
        const disk = async () =>
          (await harness.brume.machines.observe()).machines.find(({ id }) => id === made.ID)?.disks.map(({ gb }) => gb);
        // A comparison with the host may start the server too, so the failures are not counted.
        harness.brume.machines.fail("ensureRunning", 100, "before", made.ID);
        const resize = await harness.client.updateServer({ path: { id: made.ID }, body: { CPU: 8, HDD: 20 } });
        assert.deepEqual(
          resize.Steps.map(({ Name }) => Name),
          ["Stop", "Cpu", "Start", "Disk"],
        );
        const isFailed = ({ Steps, EndDate }: Action): boolean =>
          EndDate !== null || Steps.some(({ Name, State }) => Name === "Start" && State === "Failed");
        const read = () => harness.client.readAction({ path: { id: made.ID, actionID: resize.ID } });
        while (!isFailed(await read())) await pass(harness, clock, 40);
        harness.brume.machines.fail("ensureRunning", 0);
        const ended = await waitForEnd(resize);
        assert.deepEqual([ended.State, ended.Error?.step], ["Failed", "Start"]);
        assert.deepEqual(await disk(), [10]);
        const { CPU, HDD, IsPowerOn } = await fixture.read(made.ID);
        assert.deepEqual([CPU, HDD, IsPowerOn], [1, 10, true]);
      });

      test("a failed create leaves only its error, and waiting actions end", async () => {
        harness.brume.machines.fail("ensureRunning", 100);
        const made = await harness.client.createServer({ body: { Name: "never" } });
        const [create] = await fixture.actions(made.ID);
        const waiting = await fixture.order(made.ID, { Type: "PowerOff" });
        assert.ok(create);
        const ended = await waitForEnd(create);
        harness.brume.machines.fail("ensureRunning", 0);
        assert.deepEqual(stepsOf(ended), ["Reserve Undone", "Disk Undone", "Network Undone", "Boot Failed"]);
        const { State, Error, LinkedNetworks, IP } = await fixture.read(made.ID, (one) => one.State !== "New");
        assert.deepEqual([State, Error?.code, LinkedNetworks, IP], ["Failed", "boot_failed", [], ""]);
        assert.equal((await fixture.ended(waiting)).State, "Canceled");
        const { machines } = await harness.brume.machines.observe();
        await fixture.remove(made.ID);
        assert.ok(machines.every(({ id, power: state }) => id !== made.ID || state === "off"));
      });
    });

    describe("of networks", () => {
      test("a NIC is attached, limited and detached, and its address does not change", async () => {
        const made = await fixture.server();
        const { Id } = await harness.client.createPublicNetwork({ body: { Name: "dmz" } }, { wait: 60 });
        const added = await fixture.act(made.ID, { Type: "AddNetwork", NetworkID: Id, Bandwidth: 50, IP: "10.64.0.4" });
        assert.deepEqual(
          added.Steps.map(({ Name, State, Detail }) => [Name, State, Detail]),
          [
            ["Reserve", "Completed", `10.64.0.4 on network ${Id}`],
            ["Plug", "Completed", ""],
          ],
        );
        const link = (await fixture.read(made.ID)).LinkedNetworks[1];
        assert.ok(link);
        assert.deepEqual(
          [link.LinkState, link.NetworkType, link.IP, link.Bandwidth],
          ["Active", "PublicClient", "10.64.0.4", 50],
        );
        const { LinkedServers } = await harness.client.readPublicNetwork({ path: { id: Id } });
        assert.deepEqual(
          LinkedServers.map(({ ServerID, MAC }) => [ServerID, MAC]),
          [[made.ID, link.MAC]],
        );
        await fixture.act(made.ID, { Type: "EditNetworkBandwidth", NetworkLinkID: link.LinkID, Bandwidth: 7 });
        const shaped = (await fixture.read(made.ID)).LinkedNetworks[1];
        assert.deepEqual(shaped, { ...link, Bandwidth: 7 });
        await refused(harness.client.deletePublicNetwork({ path: { id: Id } }), "network_in_use");
        await refused(fixture.order(made.ID, { Type: "AddNetwork", NetworkID: Id }), "already_linked");
        const removed = await fixture.act(made.ID, { Type: "RemoveNetwork", NetworkLinkID: link.LinkID });
        assert.deepEqual(stepsOf(removed), ["Unplug Completed", "Release Completed"]);
        await refused(fixture.order(made.ID, { Type: "RemoveNetwork", NetworkID: Id }), "not_linked");
        await harness.client.deletePublicNetwork({ path: { id: Id } }, { wait: 60 });
        assert.equal((await fixture.read(made.ID)).LinkedNetworks.length, 1);
      });

      test("fields are validated for the action type", async () => {
        const made = await fixture.server();
        const order = (body: object) => fixture.order(made.ID, body as never);
        await refused(order({}), "validation_failed", { "/Type": "field_required" });
        await refused(order({ Type: "Create" }), "validation_failed", { "/Type": "value_not_allowed" });
        await refused(order({ Type: "AddNetwork" }), "validation_failed", { "/NetworkID": "field_required" });
        await refused(order({ Type: "EditNetworkBandwidth" }), "validation_failed", {
          "/NetworkID": "field_required",
          "/Bandwidth": "field_required",
        });
        await refused(order({ Type: "AddNetwork", NetworkID: 99 }), "validation_failed", {
          "/NetworkID": "unknown_reference",
        });
        const theirs = await harness.neighbour();
        const foreign = await theirs.client.createNetwork({ body: { Name: "theirs" } });
        await refused(order({ Type: "AddNetwork", NetworkID: foreign.ID }), "validation_failed", {
          "/NetworkID": "unknown_reference",
        });
      });
    });
  },
  { clock },
);
