/**
 * Firewall changes that must be confirmed (docs/spec.md#firewall, #public-network-endpoints, #unconfirmed-firewalls-are-reverted): a
 * client that locks itself out gets access again, also after restarts and failures.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FirewallRuleInput } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import { onSqliteFirst, refused } from "../support/harness.ts";
import { createMovableClock, isApplied, outside, tcp, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();
const allow = (port: number): FirewallRuleInput => ({
  Action: "Allow",
  Protocol: "Tcp",
  DestinationPort: String(port),
});

onSqliteFirst(
  "an unconfirmed firewall",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const set = fixture.configureFirewall;
    /** Port 22 is allowed and confirmed, port 80 is unconfirmed. */
    async function onTrial(ConfirmWithin = 60) {
      const place = await fixture.networkWithServers();
      await set(place.id, { Rules: [allow(22)] });
      const trial = await set(place.id, { Rules: [allow(80)], ConfirmWithin });
      const passes = () => [22, 80].filter((port) => place.send(tcp(outside, place.one.address, port)));
      return { ...place, trial, passes };
    }
    const portsOf = ({ Firewall }: PublicNetwork) => Firewall.Rules.map(({ DestinationPort }) => DestinationPort);
    const isBack = (network: PublicNetwork) => network.Firewall.ConfirmBy === null && isApplied(network);

    test("applies at once, and stays if it is confirmed", async () => {
      const { id, trial, passes } = await onTrial(60);
      const by = Date.parse(trial.Firewall.ConfirmBy ?? "");
      assert.ok(Math.abs(by - clock.now() - 60_000) < 5000, String(trial.Firewall.ConfirmBy));
      assert.equal(trial.AppliedGeneration, trial.Generation);
      assert.deepEqual(passes(), [80]);
      await fixture.newEvents();
      const kept = await set(id, { Confirm: true });
      assert.deepEqual([kept.Firewall.ConfirmBy, kept.Generation, portsOf(kept)], [null, trial.Generation, ["80"]]);
      assert.deepEqual(
        (await fixture.newEvents()).map(({ Type }) => Type),
        ["publicnetwork.changed"],
      );
      await fixture.pass(120);
      assert.deepEqual([portsOf(await fixture.untilApplied(id)), passes()], [["80"], [80]]);
      await refused(set(id, { Confirm: true }), "nothing_to_confirm");
    });

    test("needs a confirmation only if requested, and is confirmed separately", async () => {
      const { Id: id } = await fixture.network();
      await refused(set(id, { Confirm: true }), "nothing_to_confirm");
      await refused(set(id, { Confirm: true }, { dryRun: true }), "nothing_to_confirm");
      await set(id, { Rules: [allow(1)], ConfirmWithin: 10 });
      await refused(set(id, { Confirm: true, Rules: [] }), "validation_failed", { "/Confirm": "fields_conflict" });
      await refused(set(id, { Confirm: true, ConfirmWithin: 20 }), "validation_failed", {
        "/Confirm": "fields_conflict",
      });
      await refused(set(id, { Confirm: false }), "validation_failed", { "/Confirm": "value_not_allowed" });
      for (const [ConfirmWithin, code] of [
        [9, "out_of_range"],
        [3601, "out_of_range"],
        [10.5, "type_mismatch"],
      ] as const)
        await refused(set(id, { ConfirmWithin }), "validation_failed", { "/ConfirmWithin": code });
      const dry = await set(id, { Confirm: true }, { dryRun: true });
      assert.equal(dry.Firewall.ConfirmBy, null);
      assert.notEqual((await fixture.read(id)).Firewall.ConfirmBy, null);
      const form = await harness.request(`PUT /publicnetwork/${id}/firewall`, "confirm=true");
      assert.equal((form.json as PublicNetwork).Firewall.ConfirmBy, null);
    });

    test("is reverted if it is not confirmed, with an event", async () => {
      const { id, trial, passes } = await onTrial(10);
      await fixture.newEvents();
      await fixture.pass(8);
      assert.deepEqual([portsOf(await fixture.read(id)), passes()], [["80"], [80]]);
      await fixture.pass(2);
      const back = await fixture.read(id, isBack);
      assert.deepEqual([portsOf(back), back.Generation, passes()], [["22"], trial.Generation + 1, [22]]);
      await refused(set(id, { Confirm: true }), "nothing_to_confirm");
      const events = (await fixture.newEvents()).map(({ Type, RequestID, TokenID, Data }) => {
        const { Firewall, Generation, AppliedGeneration } = Data as PublicNetwork;
        return [Type, RequestID, TokenID, Firewall.ConfirmBy, Firewall.Rules.length, Generation - AppliedGeneration];
      });
      assert.deepEqual(events, [
        ["publicnetwork.changed", null, null, null, 1, 1],
        ["publicnetwork.applied", null, null, null, 1, 0],
      ]);
    });

    test("cannot be confirmed after its time, even before the revert", async () => {
      const { id } = await onTrial(10);
      clock.pass(10);
      await refused(set(id, { Confirm: true }), "nothing_to_confirm");
      await fixture.pass(0);
      assert.deepEqual(portsOf(await fixture.read(id, isBack)), ["22"]);
    });

    test("is reverted after the service was stopped meanwhile", async () => {
      const { id, passes } = await onTrial(10);
      await harness.brume.restart();
      assert.deepEqual(passes(), [80]);
      assert.notEqual((await fixture.read(id)).Firewall.ConfirmBy, null);
      const closed = harness.brume.restart();
      clock.pass(3600);
      await closed;
      assert.deepEqual([portsOf(await fixture.read(id, isBack)), passes()], [["22"], [22]]);
    });

    test("that is replaced is reverted to the last confirmed firewall", async () => {
      const { id, passes } = await onTrial(60);
      const second = await set(id, { Rules: [allow(80), allow(443)], ConfirmWithin: 10 });
      assert.ok(Date.parse(second.Firewall.ConfirmBy ?? "") - clock.now() <= 10_000);
      await harness.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 5 } });
      await fixture.pass(10);
      const back = await fixture.read(id, isBack);
      assert.deepEqual([portsOf(back), passes(), back.Bandwidth], [["22"], [22], 5]);
      await set(id, { Rules: [allow(80)], ConfirmWithin: 10 });
      const sure = await set(id, { Rules: [allow(81)] });
      assert.equal(sure.Firewall.ConfirmBy, null);
      await fixture.pass(60);
      assert.deepEqual([portsOf(await fixture.untilApplied(id)), passes()], [["81"], []]);
    });

    test("is confirmed if the same rules are sent again", async () => {
      const { id, trial, passes } = await onTrial(20);
      await fixture.newEvents();
      const { Rules, ...shown } = (await fixture.read(id)).Firewall;
      const put = () => harness.request(`PUT /publicnetwork/${id}/firewall`, { ...shown, Rules });
      const { Firewall, Generation } = (await put()).json as PublicNetwork;
      assert.deepEqual([Firewall.ConfirmBy, Generation], [null, trial.Generation]);
      assert.deepEqual(
        (await fixture.newEvents()).map(({ Type }) => Type),
        ["publicnetwork.changed"],
      );
      await put();
      assert.deepEqual(await fixture.newEvents(), [], "again it changes nothing");
      await fixture.pass(20);
      assert.deepEqual([portsOf(await fixture.untilApplied(id)), passes()], [["80"], [80]]);
      await refused(set(id, { Confirm: true }), "nothing_to_confirm");
    });

    test("is kept after its time if the same rules are sent again before the revert", async () => {
      const { id } = await onTrial(10);
      clock.pass(10);
      const kept = await set(id, { Rules: [allow(80)] });
      assert.deepEqual([kept.Firewall.ConfirmBy, portsOf(kept)], [null, ["80"]]);
      await fixture.pass(0);
      assert.deepEqual(portsOf(await fixture.untilApplied(id)), ["80"]);
    });

    test("can be prolonged, and the time starts again", async () => {
      const { id } = await onTrial(10);
      await fixture.pass(8);
      await set(id, { Rules: [allow(80)], ConfirmWithin: 20 });
      await fixture.pass(12);
      assert.deepEqual(portsOf(await fixture.untilApplied(id)), ["80"]);
      await fixture.pass(8);
      assert.deepEqual(portsOf(await fixture.read(id, isBack)), ["22"]);
    });

    test("is reverted in time even if the router failed meanwhile", async () => {
      const { id, trial, passes } = await onTrial(600);
      const by = Date.parse(trial.Firewall.ConfirmBy ?? "");
      const tries = async () => {
        const task = harness.brume.store.read.selectFrom("task").select("tries").where("name", "=", "network.apply");
        return (await task.where("subject_id", "=", id).executeTakeFirstOrThrow()).tries;
      };
      harness.brume.router.broken = true;
      await harness.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 5 } }, { wait: 1 });
      // Each failure doubles the pause before the next attempt, up to 30 s. The last failure is just before the end.
      for (const before of [550, 500, 450, 400, 350, 300, 200, 100, 3]) {
        const count = await tries();
        await fixture.pass((by - clock.now()) / 1000 - before);
        for (let now = count; now === count; now = await tries()) await harness.client.readBalance();
      }
      harness.brume.router.broken = false;
      await fixture.pass(3);
      const back = await fixture.read(id, isBack);
      assert.deepEqual([portsOf(back), passes()], [["22"], [22]]);
    });

    test("does not prevent the deletion of its network", async () => {
      const { Id: id } = await fixture.network();
      await set(id, { Rules: [allow(80)], ConfirmWithin: 10 });
      await harness.client.deletePublicNetwork({ path: { id } }, { wait: 60 });
      await fixture.newEvents();
      await fixture.pass(20);
      await fixture.pollHost();
      assert.deepEqual(
        (await fixture.newEvents()).filter(({ ResourceID }) => ResourceID === id),
        [],
      );
    });
  },
  { clock },
);
