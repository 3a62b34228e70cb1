/** Reconciler invariants for the reconcilers of networks: apply, removal, and revert of an unconfirmed firewall. */
import { randomBytes } from "node:crypto";
import { parseAddresses } from "../../service/src/base/address.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import type { NetworkSpec } from "../../service/src/drivers/router/interface.ts";
import { createSim, type SimulatedRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { type NetworkAggregate, specsOf } from "../../service/src/network/aggregate.ts";
import { driftReconciler } from "../../service/src/network/drift.ts";
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
import type { Store, Tx } from "../../service/src/store/db.ts";
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
