/**
 * Drift of networks (docs/spec.md#host-equals-database): another program changes or removes them, connections reach their limit, and the
 * service restarts.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import { createPlain } from "../../service/src/agent/plain.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { onSqliteFirst } from "../support/harness.ts";
import { createMovableClock, isApplied, outside, tcp, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();

onSqliteFirst(
  "networks on a host",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const imageOf = (id: number) => harness.brume.router.images().find((image) => image.id === id);
    const specOf = async (id: number) =>
      (await harness.brume.router.observe()).networks.find((network) => network.id === id)?.complete;
    const until = async (is: () => Promise<boolean>) => {
      const end = Date.now() + 120_000;
      while (!(await is())) {
        assert.ok(Date.now() < end, "it did not become so");
        await harness.client.readBalance();
      }
    };

    test("that reach their connection limit are reported once per period", async () => {
      const { id } = await fixture.networkWithServers();
      const { router } = harness.brume;
      /** When a second poll has begun, the first one is complete. */
      const checkDrift = async () => {
        for (let left = 2; left > 0; left--) {
          const { observations } = router;
          await fixture.pollHost();
          await until(async () => router.observations > observations);
        }
        const limited = (await fixture.newEvents()).filter(({ Type }) => Type === "publicnetwork.limited");
        return limited.map(({ ResourceID }) => ResourceID);
      };
      assert.deepEqual(await checkDrift(), []);
      harness.brume.router.crowd(id);
      assert.deepEqual([await checkDrift(), await checkDrift()], [[id], []]);
      harness.brume.router.crowd(id);
      assert.deepEqual(await checkDrift(), []);
      await fixture.pass(600);
      harness.brume.router.crowd(id);
      assert.deepEqual(await checkDrift(), [id]);
    });

    test("with drift are reported and repaired", async () => {
      const { id, one, send } = await fixture.networkWithServers();
      const rules = { Rules: [{ Action: "Allow" as const, Protocol: "Tcp" as const, DestinationPort: "80" }] };
      await harness.client.configureFirewall({ path: { id }, body: rules });
      await fixture.newEvents();
      harness.brume.router.damage(id, "firewall");
      await fixture.pollHost();
      await fixture.untilEvent(({ Type, ResourceID }) => Type === "publicnetwork.applied" && ResourceID === id);
      const driftEvents = (await fixture.newEvents()).filter(
        ({ ResourceID, Resource }) => ResourceID === id && Resource === "publicnetwork",
      );
      assert.deepEqual(
        driftEvents.map(({ Type, Data }) => [Type, (Data as PublicNetwork).Error?.code]),
        [
          ["publicnetwork.changed", "apply_failed"],
          ["publicnetwork.applied", undefined],
        ],
      );
      assert.match((driftEvents[0]?.Data as PublicNetwork | undefined)?.Error?.detail ?? "", /firewall/);
      assert.ok(isApplied(await fixture.read(id)));
      assert.deepEqual(
        [await specOf(id), send(tcp(outside, one.address)), send(tcp(outside, one.address, 22))],
        [true, true, false],
      );
      await fixture.pollHost();
      await fixture.pollHost();
      assert.deepEqual(
        (await fixture.newEvents()).filter(({ ResourceID }) => ResourceID === id),
        [],
        "the event is emitted once",
      );
    });

    test("that cannot be repaired report the reason once", async () => {
      const { id } = await fixture.networkWithServers();
      const { router } = harness.brume;
      const { apply } = router;
      const errorOf = async () => (await harness.client.readPublicNetwork({ path: { id } })).Error?.detail ?? "";
      // As the host agent sends it: the cause in plain words, with the id of the request.
      let attempts = 0;
      const plain = createPlain(silentLog);
      router.apply = async (image, tell) => {
        if (image.id !== id) return apply(image, tell);
        attempts++;
        throw plain.error(new Error("dnsmasq: failed to bind socket: Address in use"), "router.apply", randomUUID());
      };
      try {
        router.damage(id, "dhcp");
        await fixture.pollHost();
        await until(async () =>
          /could not be applied.*another program uses its port \(request \w+\)/.test(await errorOf()),
        );
        await fixture.newEvents();
        const [{ observations }, before] = [router, attempts];
        for (let round = 1; round <= 3; round++) {
          await fixture.pollHost();
          await until(async () => router.observations >= observations + round);
        }
        // The retry pauses are at most 30 seconds. When the third attempt begins, the error of the second is stored.
        await until(async () => {
          await fixture.pass(30);
          return attempts >= before + 3;
        });
        assert.deepEqual(
          (await fixture.newEvents()).filter(({ ResourceID }) => ResourceID === id),
          [],
        );
        assert.match(await errorOf(), /another program uses its port/);
      } finally {
        router.apply = apply;
      }
      await fixture.pollHost();
      await fixture.untilApplied(id);
    });

    test("that are being changed are not reported as drift", async () => {
      const { id } = await fixture.networkWithServers();
      await fixture.newEvents();
      const { router } = harness.brume;
      const { apply } = router;
      const begun = Promise.withResolvers<void>();
      const end = Promise.withResolvers<void>();
      router.apply = async (image, tell) => {
        if (image.id !== id) return apply(image, tell);
        router.damage(id, "firewall");
        begun.resolve();
        await end.promise;
        return apply(image, tell);
      };
      try {
        await harness.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 60 } }, { wait: 0 });
        await begun.promise;
        const { observations } = router;
        await fixture.pollHost();
        await until(async () => router.observations > observations);
        await fixture.pollHost();
        await until(async () => router.observations > observations + 1);
      } finally {
        router.apply = apply;
        end.resolve();
      }
      await fixture.untilApplied(id);
      const networkEvents = (await fixture.newEvents()).filter(({ ResourceID }) => ResourceID === id);
      assert.deepEqual(
        networkEvents.map(({ Type, Data }) => [Type, (Data as PublicNetwork).Error]),
        [
          ["publicnetwork.changed", null],
          ["publicnetwork.applied", null],
        ],
      );
    });

    test("that are missing are created again", async () => {
      const made = await fixture.network();
      const inner = await harness.client.createNetwork({ body: { Name: "inner" } }, { wait: 60 });
      for (const id of [made.Id, inner.ID]) await harness.brume.router.remove(id);
      await fixture.newEvents();
      await fixture.pollHost();
      await until(async () => imageOf(made.Id) !== undefined && imageOf(inner.ID) !== undefined);
      await fixture.untilApplied(made.Id);
      await until(async () => (await harness.client.readNetwork({ path: { id: inner.ID } })).Error === null);
      const events = (await fixture.newEvents()).map(({ Type, ResourceID, Data }) => [
        Type,
        ResourceID,
        (Data as Network).Error?.code,
      ]);
      assert.deepEqual(
        events.filter(([, id]) => id === made.Id),
        [
          ["publicnetwork.changed", made.Id, "apply_failed"],
          ["publicnetwork.applied", made.Id, undefined],
        ],
      );
      assert.deepEqual(
        events.filter(([, id]) => id === inner.ID),
        [
          ["network.changed", inner.ID, "apply_failed"],
          ["network.changed", inner.ID, undefined],
        ],
      );
    });

    test("that are not in the database are removed", async () => {
      const { Id: id } = await fixture.network();
      const image = imageOf(id);
      assert.ok(image);
      await harness.brume.router.apply({ ...image, id: 4711 });
      await fixture.pollHost();
      await until(async () => imageOf(4711) === undefined);
      assert.ok(imageOf(id) && isApplied(await fixture.read(id)));
    });

    test("with a newer generation than the database get the state of the database", async () => {
      const { Id: id, Generation } = await fixture.network();
      const image = imageOf(id);
      assert.ok(image);
      // As after a restore: the host has changes that the database does not contain.
      await harness.brume.router.apply({ ...image, generation: Generation + 5, bandwidth: 9999 });
      await harness.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 55 } });
      const { Bandwidth } = await fixture.untilApplied(id);
      assert.deepEqual([Bandwidth, imageOf(id)?.bandwidth], [55, 55]);
    });

    test("keep working over a restart, and are not created again", async () => {
      const { id, one, send } = await fixture.networkWithServers();
      await harness.client.configureFirewall({ path: { id }, body: { Rules: [{ Action: "Allow", Protocol: "Tcp" }] } });
      const live = tcp(outside, one.address);
      send(live);
      const shown = await harness.client.listPublicNetworks();
      const counted = await fixture.read(id);
      await fixture.newEvents();
      await harness.brume.restart();
      await fixture.pollHost();
      assert.deepEqual(await harness.client.listPublicNetworks(), shown);
      assert.deepEqual(await fixture.read(id), counted);
      assert.equal(send(live), true);
      assert.deepEqual(await fixture.newEvents(), []);
    });

    test("that were requested, changed and deleted just before the end are completed after the restart", async () => {
      const edited = await fixture.network();
      const deleted = await fixture.network();
      const hidden = await harness.client.createNetwork({ body: { Name: "hidden" } }, { wait: 60 });
      harness.brume.router.broken = true;
      const late = await harness.client.createPublicNetwork({ body: { Name: "late" } }, { wait: 0 });
      await harness.client.updatePublicNetwork({ path: { id: edited.Id }, body: { Bandwidth: 77 } }, { wait: 0 });
      await harness.client.deletePublicNetwork({ path: { id: deleted.Id } }, { wait: 0 });
      await harness.client.deleteNetwork({ path: { id: hidden.ID } }, { wait: 0 });
      await harness.brume.restart();
      harness.brume.router.broken = false;
      await fixture.untilApplied(late.Id);
      assert.equal((await fixture.untilApplied(edited.Id)).Bandwidth, 77);
      await until(async () => imageOf(deleted.Id) === undefined && imageOf(hidden.ID) === undefined);
      await until(async () => !(await harness.client.listPublicNetworks()).some(({ Id }) => Id === deleted.Id));
      assert.equal(imageOf(edited.Id)?.bandwidth, 77);
    });
  },
  { clock },
);
