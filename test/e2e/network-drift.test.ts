/**
 * What becomes of a machine that somebody else changes, that forgets, or that has too much (docs/spec.md#host-equals-database), and of
 * networks while no service runs.
 */
import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import { onEveryDatabase } from "../support/harness.ts";
import { calm, createMovableClock, createScene, outside, type Scene, tcp } from "../support/networkfixture.ts";

const clock = createMovableClock();

onEveryDatabase(
  "networks on a machine",
  (stage) => {
    let scene: Scene;
    before(() => {
      scene = createScene(stage, clock);
    });
    afterEach(() => {
      stage.world.router.broken = false;
    });
    const imageOf = (id: number) => stage.world.router.images().find((image) => image.id === id);
    const wholeOf = async (id: number) =>
      (await stage.world.router.observe()).networks.find((network) => network.id === id)?.complete;
    const until = async (is: () => Promise<boolean>) => {
      const end = Date.now() + 20_000;
      while (!(await is())) {
        assert.ok(Date.now() < end, "it did not become so");
        await stage.client.readBalance();
      }
    };

    test("that have as many connections as they may are told of once in a while", async () => {
      const { id } = await scene.place();
      const { router } = stage.world;
      /** When a second look has begun, the first is over. */
      const look = async () => {
        for (let left = 2; left > 0; left--) {
          const { looks } = router;
          await scene.look();
          await until(async () => router.looks > looks);
        }
        const limited = (await scene.response()).filter(({ Type }) => Type === "publicnetwork.limited");
        return limited.map(({ ResourceID }) => ResourceID);
      };
      assert.deepEqual(await look(), []);
      stage.world.router.crowd(id);
      assert.deepEqual([await look(), await look()], [[id], []]);
      stage.world.router.crowd(id);
      assert.deepEqual(await look(), []);
      await scene.pass(600);
      stage.world.router.crowd(id);
      assert.deepEqual(await look(), [id]);
    });

    test("that were damaged are told of and repaired", async () => {
      const { id, one, send } = await scene.place();
      const rules = { Rules: [{ Action: "Allow" as const, Protocol: "Tcp" as const, DestinationPort: "80" }] };
      await stage.client.configureFirewall({ path: { id }, body: rules });
      await scene.response();
      stage.world.router.damage(id, "firewall");
      await scene.look();
      await scene.hears(({ Type, ResourceID }) => Type === "publicnetwork.applied" && ResourceID === id);
      const told = (await scene.response()).filter(
        ({ ResourceID, Resource }) => ResourceID === id && Resource === "publicnetwork",
      );
      assert.deepEqual(
        told.map(({ Type, Data }) => [Type, (Data as PublicNetwork).Error?.code]),
        [
          ["publicnetwork.changed", "apply_failed"],
          ["publicnetwork.applied", undefined],
        ],
      );
      assert.match((told[0]?.Data as PublicNetwork | undefined)?.Error?.detail ?? "", /firewall/);
      assert.ok(calm(await scene.read(id)));
      assert.deepEqual(
        [await wholeOf(id), send(tcp(outside, one.address)), send(tcp(outside, one.address, 22))],
        [true, true, false],
      );
      await scene.look();
      await scene.look();
      assert.deepEqual(
        (await scene.response()).filter(({ ResourceID }) => ResourceID === id),
        [],
        "it is told once",
      );
    });

    test("that cannot be repaired say why, and once", async () => {
      const { id } = await scene.place();
      const { router } = stage.world;
      const { apply } = router;
      const errorOf = async () => (await stage.client.readPublicNetwork({ path: { id } })).Error?.detail ?? "";
      router.apply = async (image, tell) => {
        if (image.id === id) throw new Error("dnsmasq: the port is taken");
        return apply(image, tell);
      };
      try {
        router.damage(id, "dhcp");
        await scene.look();
        await until(async () => /could not be applied.*dnsmasq: the port is taken/.test(await errorOf()));
        await scene.response();
        const { looks } = router;
        for (let look = 1; look <= 3; look++) {
          await scene.look();
          await until(async () => router.looks >= looks + look);
        }
        assert.deepEqual(
          (await scene.response()).filter(({ ResourceID }) => ResourceID === id),
          [],
        );
        assert.match(await errorOf(), /the port is taken/);
      } finally {
        router.apply = apply;
      }
      await scene.look();
      await scene.settled(id);
    });

    test("that are just being changed are not called damaged", async () => {
      const { id } = await scene.place();
      await scene.response();
      const { router } = stage.world;
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
        await stage.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 60 } }, { wait: 0 });
        await begun.promise;
        const { looks } = router;
        await scene.look();
        await until(async () => router.looks > looks);
        await scene.look();
        await until(async () => router.looks > looks + 1);
      } finally {
        router.apply = apply;
        end.resolve();
      }
      await scene.settled(id);
      const told = (await scene.response()).filter(({ ResourceID }) => ResourceID === id);
      assert.deepEqual(
        told.map(({ Type, Data }) => [Type, (Data as PublicNetwork).Error]),
        [
          ["publicnetwork.changed", null],
          ["publicnetwork.applied", null],
        ],
      );
    });

    test("that it has forgotten are made again", async () => {
      const made = await scene.network();
      const inner = await stage.client.createNetwork({ body: { Name: "inner" } }, { wait: 20 });
      for (const id of [made.Id, inner.ID]) await stage.world.router.remove(id);
      await scene.response();
      await scene.look();
      await until(async () => imageOf(made.Id) !== undefined && imageOf(inner.ID) !== undefined);
      await scene.settled(made.Id);
      await until(async () => (await stage.client.readNetwork({ path: { id: inner.ID } })).Error === null);
      const told = (await scene.response()).map(({ Type, ResourceID, Data }) => [
        Type,
        ResourceID,
        (Data as Network).Error?.code,
      ]);
      assert.deepEqual(
        told.filter(([, id]) => id === made.Id),
        [
          ["publicnetwork.changed", made.Id, "apply_failed"],
          ["publicnetwork.applied", made.Id, undefined],
        ],
      );
      assert.deepEqual(
        told.filter(([, id]) => id === inner.ID),
        [
          ["network.changed", inner.ID, "apply_failed"],
          ["network.changed", inner.ID, undefined],
        ],
      );
    });

    test("that nobody wishes are taken away", async () => {
      const { Id: id } = await scene.network();
      const image = imageOf(id);
      assert.ok(image);
      await stage.world.router.apply({ ...image, id: 4711 });
      await scene.look();
      await until(async () => imageOf(4711) === undefined);
      assert.ok(imageOf(id) && calm(await scene.read(id)));
    });

    test("that stand further than the database knows are brought to what it says", async () => {
      const { Id: id, Generation } = await scene.network();
      const image = imageOf(id);
      assert.ok(image);
      // As after a backup was played back: the machine has seen changes of which nobody here knows.
      await stage.world.router.apply({ ...image, generation: Generation + 5, bandwidth: 9999 });
      await stage.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 55 } });
      const { Bandwidth } = await scene.settled(id);
      assert.deepEqual([Bandwidth, imageOf(id)?.bandwidth], [55, 55]);
    });

    test("go on through a restart, and nothing of them is made anew", async () => {
      const { id, one, send } = await scene.place();
      await stage.client.configureFirewall({ path: { id }, body: { Rules: [{ Action: "Allow", Protocol: "Tcp" }] } });
      const live = tcp(outside, one.address);
      send(live);
      const shown = await stage.client.listPublicNetworks();
      const counted = await scene.read(id);
      await scene.response();
      await stage.world.restart();
      await scene.look();
      assert.deepEqual(await stage.client.listPublicNetworks(), shown);
      assert.deepEqual(await scene.read(id), counted);
      assert.equal(send(live), true);
      assert.deepEqual(await scene.response(), []);
    });

    test("that were wished, changed and deleted just before the end are done after it", async () => {
      const edited = await scene.network();
      const doomed = await scene.network();
      const hidden = await stage.client.createNetwork({ body: { Name: "hidden" } }, { wait: 20 });
      stage.world.router.broken = true;
      const late = await stage.client.createPublicNetwork({ body: { Name: "late" } }, { wait: 0 });
      await stage.client.updatePublicNetwork({ path: { id: edited.Id }, body: { Bandwidth: 77 } }, { wait: 0 });
      await stage.client.deletePublicNetwork({ path: { id: doomed.Id } }, { wait: 0 });
      await stage.client.deleteNetwork({ path: { id: hidden.ID } }, { wait: 0 });
      await stage.world.restart();
      stage.world.router.broken = false;
      await scene.settled(late.Id);
      assert.equal((await scene.settled(edited.Id)).Bandwidth, 77);
      await until(async () => imageOf(doomed.Id) === undefined && imageOf(hidden.ID) === undefined);
      await until(async () => !(await stage.client.listPublicNetworks()).some(({ Id }) => Id === doomed.Id));
      assert.equal(imageOf(edited.Id)?.bandwidth, 77);
    });
  },
  { clock },
);
