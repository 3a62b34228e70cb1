/** Reconciler invariants for the reconcilers of networks: apply, removal, and revert of an unconfirmed firewall. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { parseAddresses } from "../../service/src/base/address.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import type { NetworkSpec, Port } from "../../service/src/drivers/router/interface.ts";
import { createSim, type SimulatedRouter } from "../../service/src/drivers/router/sim/sim.ts";
import {
  type NetworkAggregate,
  readAggregate,
  readLargeAggregate,
  specsOf,
} from "../../service/src/network/aggregate.ts";
import { raiseGeneration } from "../../service/src/network/change.ts";
import { driftReconciler } from "../../service/src/network/drift.ts";
import { addLink, listLinksOfServer } from "../../service/src/network/linktable.ts";
import { defaultFirewall } from "../../service/src/network/model/firewall/firewall.ts";
import { renderNetworkSpec } from "../../service/src/network/model/networkspec.ts";
import { pack, storedBlock } from "../../service/src/network/model/plan.ts";
import { confirmReconciler, networkReconciler } from "../../service/src/network/reconciler.ts";
import { createNetworkStatusCache } from "../../service/src/network/statuscache.ts";
import {
  deleteNetwork,
  findNetwork,
  insertNetwork,
  type NetworkRow,
  newNetworkRow,
  updateNetwork,
} from "../../service/src/network/table.ts";
import { joinNetwork, leaveNetworks, shapeLink } from "../../service/src/server/flow/network.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { withSeed } from "../support/random.ts";
import { type ReconcilerFixture, testReconciler } from "./reconciler-invariants.ts";

const sealer = createSealer(randomBytes(32));
const render = (whole: NetworkAggregate): NetworkSpec =>
  renderNetworkSpec(whole.network, whole.links, specsOf(whole, sealer), null, {
    deviceOf: (link) => `tap${link}`,
    resolvers: [],
    forwarders: [],
    nat: "always",
    closed: [],
  });
const locate = async () => null;

/** Later than the simulated clock ever gets, in ms since 1970. */
const clock = { now: () => Date.UTC(2030, 0, 1) };

/** A router that counts its changes. */
function createCounted(): { readonly router: SimulatedRouter; changes(): number } {
  const router = createSim(clock.now);
  let changes = 0;
  const { apply, remove } = router;
  const held = () => JSON.stringify(router.images());
  const counting = async <T>(act: () => Promise<T>): Promise<T> => {
    const before = held();
    const result = await act();
    if (held() !== before) changes += 1;
    return result;
  };
  router.apply = (image, tell) => counting(() => apply(image, tell));
  router.remove = (id) => counting(() => remove(id));
  return { router, changes: () => changes };
}

const block = storedBlock(4, parseAddresses("172.16.0.0/24"));
const networkOf = (store: Store, more: Partial<NetworkRow> = {}): Promise<NetworkRow> =>
  store.write((tx) =>
    insertNetwork(tx, {
      ...newNetworkRow({
        ...block,
        project_id: null,
        kind: "public",
        name: "sample",
        location: "Local",
        gateway: pack(4, parseAddresses("172.16.0.1").first),
        edge: pack(4, parseAddresses("10.64.255.2").first),
        first6: null,
        is_dhcp: 1,
        bandwidth: 100,
        created: 0,
      }),
      ...more,
    }),
  );

/** Returns the row and the state of the router, without ids. */
async function observe(store: Store, { images }: SimulatedRouter, subject: number): Promise<unknown> {
  const row = await findNetwork(store.read, subject);
  const image = images().find(({ id }) => id === subject);
  return [row && { ...row, id: 0 }, image && { ...image, id: 0 }];
}

testReconciler("a network to create", async (store): Promise<ReconcilerFixture> => {
  const { router, changes } = createCounted();
  const { id } = await networkOf(store);
  return {
    reconciler: networkReconciler({ store, clock, router, render, locate }),
    subject: id,
    spec: (tx: Tx) => updateNetwork(tx, id, { bandwidth: 200, generation: 2 }),
    observe: () => observe(store, router, id),
    changes,
  };
});

testReconciler("a network to delete", async (store): Promise<ReconcilerFixture> => {
  const { router, changes } = createCounted();
  const row = await networkOf(store, { state: "Active", applied: 1 });
  await router.apply(render({ network: row, links: [], tunnels: [] }));
  return {
    reconciler: networkReconciler({ store, clock, router, render, locate }),
    subject: row.id,
    spec: (tx: Tx) => updateNetwork(tx, row.id, { state: "Deleting" }),
    observe: () => observe(store, router, row.id),
    changes,
  };
});

testReconciler("a private network without a row", async (store): Promise<ReconcilerFixture> => {
  const { router, changes } = createCounted();
  const row = await networkOf(store, { kind: "private", state: "Active", edge: null, gateway: null, applied: 1 });
  await router.apply(render({ network: row, links: [], tunnels: [] }));
  return {
    reconciler: networkReconciler({ store, clock, router, render, locate }),
    subject: row.id,
    spec: (tx: Tx) => deleteNetwork(tx, row, 0),
    observe: () => observe(store, router, row.id),
    changes,
  };
});

testReconciler("an unconfirmed firewall", async (store): Promise<ReconcilerFixture> => {
  const { router } = createCounted();
  const { id } = await networkOf(store, { state: "Active", applied: 1 });
  const apply = networkReconciler({ store, clock, router, render, locate });
  const confirm = confirmReconciler({ store, clock, apply });
  let changes = 0;
  return {
    reconciler: {
      ...confirm,
      async run(run) {
        const kept = await confirm.run(run);
        const save = kept?.save;
        if (kept === undefined || save === undefined) return kept;
        return { ...kept, save: async (tx) => void (await save(tx), (changes += 1)) };
      },
    },
    subject: id,
    spec: (tx: Tx, now) =>
      updateNetwork(tx, id, {
        firewall: JSON.stringify({ ...defaultFirewall, Enabled: true }),
        fallback: JSON.stringify(defaultFirewall),
        confirm_by: now,
        generation: 2,
      }),
    observe: () => observe(store, router, id),
    changes: () => changes,
  };
});

for (const kind of databases)
  test(`${kind}: after any changes of links the router has the same ports as after a complete apply`, async () => {
    const database = await startDatabase(kind);
    const { store } = database;
    const router = createSim(clock.now);
    const { id } = await networkOf(store);
    const apply = networkReconciler({ store, clock, router, render, locate });
    const context = { clock, networks: { apply, live: createNetworkStatusCache(router) } };
    let complete = 0;
    const applyCompletely = router.apply;
    router.apply = (spec, onRepair) => {
      complete += 1;
      return applyCompletely(spec, onRepair);
    };
    const reconcile = async () => {
      const run = { subject: id, attempt: 1, signal: new AbortController().signal };
      const kept = await apply.run(run);
      await store.write(async (tx) => kept?.save?.(tx));
    };
    /** Changes the links in a transaction, which is rolled back if `undone`. */
    const change = (act: (tx: Tx) => Promise<unknown>, undone: boolean) =>
      store
        .write(async (tx) => {
          await act(tx);
          if (undone) throw new Error("undone");
        })
        .catch((error: unknown) => assert.match(String(error), /undone/));
    try {
      await reconcile();
      await withSeed(async ({ below, chance }) => {
        for (let round = 0; round < 60; round++) {
          const server = 1 + below(10);
          const undone = chance(20);
          const [link] = await listLinksOfServer(store.read, server);
          const join = { server, hostName: `host-${round}`, now: 0, pointer: "/IP" };
          if (link === undefined) await change((tx) => joinNetwork(context, tx, id, join), undone);
          else if (chance(50)) await change((tx) => leaveNetworks(context, tx, server), undone);
          else await change((tx) => shapeLink(context, tx, server, link.id, 1 + below(1000)), undone);
          // Another change of the network, which no list of ports describes.
          if (chance(5))
            await change(async (tx) => {
              const row = await findNetwork(tx, id);
              const bandwidth = 1 + below(1000);
              if (row) await raiseGeneration(tx, apply, row, { bandwidth }, { by: "service", now: 0 });
            }, chance(50));
          if (chance(50)) await reconcile();
        }
        await reconcile();
        const aggregate = await readAggregate(store.read, await findNetwork(store.read, id));
        const [image] = router.images();
        assert.ok(aggregate !== undefined && image !== undefined);
        const byId = (one: Port, other: Port) => one.id - other.id;
        assert.deepEqual({ ...image, ports: [...image.ports].sort(byId) }, render(aggregate));
        assert.ok(complete < 20, `${complete} complete applies`);
      });
    } finally {
      await database.close();
    }
  });

testReconciler("a network on the host without a row", async (store): Promise<ReconcilerFixture> => {
  const { router, changes } = createCounted();
  const { id } = await networkOf(store, { state: "Active", applied: 1 });
  const apply = networkReconciler({ store, clock, router, render, locate });
  const row = await findNetwork(store.read, id);
  const foreign = row && { ...row, id: 1_000_000 };
  return {
    reconciler: driftReconciler({
      store,
      clock,
      log: () => {},
      router,
      live: createNetworkStatusCache(router),
      apply,
      nat: "always",
    }),
    subject: 0,
    spec: async () => void (foreign && (await router.apply(render({ network: foreign, links: [], tunnels: [] })))),
    observe: async () => router.images(),
    changes,
  };
});

for (const kind of databases)
  test(`a network of several pages of links is read in slices as at once on ${kind}`, async () => {
    const database = await startDatabase(kind);
    try {
      const { store } = database;
      const network = await networkOf(store);
      const stored = { network_id: network.id, bandwidth: 1, state: "Active" as const, created: 0 };
      // Addresses in another order than ids, and an end of a page.
      for (const count of [999, 1, 1, 999, 1]) {
        const before = (await readAggregate(store.read, network))?.links.length ?? 0;
        await store.write(async (tx) => {
          for (let index = before; index < before + count; index++) {
            const ip = ((index * 7919) % 65_536).toString(16).padStart(8, "0");
            addLink(tx, { ...stored, id: index + 1, server_id: index + 1, host_name: `h${index}`, ip });
          }
        });
        const all = await readAggregate(store.read, network);
        assert.equal(all?.links.length, before + count);
        assert.deepEqual(await readLargeAggregate(store, network), all);
      }
      assert.equal(await readLargeAggregate(store, { ...network, id: network.id + 1 }), undefined);
    } finally {
      await database.close();
    }
  });
