/**
 * Either side of the agent's socket is killed in each call of flows and reconcilers: the agent before or after the effect, the control
 * plane before it has the result. The work then ends as if nothing had happened: nothing is lost, and nothing exists twice.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseAddresses } from "../../service/src/base/address.ts";
import { createSim as createMachines } from "../../service/src/drivers/machine/sim/sim.ts";
import type { NetworkSpec } from "../../service/src/drivers/router/interface.ts";
import { createSim as createRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { StepError } from "../../service/src/engine/flow.ts";
import type { NetworkAggregate } from "../../service/src/network/aggregate.ts";
import { renderNetworkSpec } from "../../service/src/network/model/networkspec.ts";
import { pack, storedBlock } from "../../service/src/network/model/plan.ts";
import { networkReconciler } from "../../service/src/network/reconciler.ts";
import { findNetwork, insertNetwork, newNetworkRow, updateNetwork } from "../../service/src/network/table.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { type CrashLab, createCrashLab, deaths } from "../support/agentcrash.ts";
import { type Database, startDatabase } from "../support/databases.ts";
import { type FlowTrial, openTrial } from "../support/flowfixture.ts";
import { runsOf } from "../support/random.ts";
import { serverFlowCases } from "../support/serverflowcases.ts";
import { ipsecTunnel, wireguardTunnel } from "../support/tunnelspec.ts";
import { openReconcile, type ReconcilerTrial } from "./reconciler-invariants.ts";

let database: Database;
/** The reconciler of networks applies all networks of its database, so networks have one of their own. */
let networks: Database;
before(async () => {
  [database, networks] = [await startDatabase("sqlite"), await startDatabase("sqlite")];
});
after(() => Promise.all([database.close(), networks.close()]));

/** One piece of work with its lab. */
interface Trial {
  readonly lab: CrashLab;
  kill(): void;
  /** Runs the work to its end. */
  run(): Promise<void>;
  observe(): Promise<unknown>;
  close(): Promise<void>;
}

/** Calls of one verb in one work that are tried: a work that waits repeats its last call. */
const mostOfVerb = runsOf(2, 1);

/** Runs the work once without a crash, and then with each kind of death in each of its calls. Returns the number of calls tried. */
async function sweep(open: () => Promise<Trial>): Promise<number> {
  const model = await open();
  model.lab.crashAt("none", 1, "agent before", () => {});
  await model.run();
  const { verbs } = model.lab.disarm();
  const expected = await model.observe();
  await model.close();
  const most = (verb: string): number => Math.min(mostOfVerb, verbs.filter((each) => each === verb).length);
  const calls = [...new Set(verbs)].flatMap((verb) => Array.from({ length: most(verb) }, (_, at) => ({ verb, at })));
  for (const { verb, at } of calls)
    for (const death of deaths) {
      const trial = await open();
      try {
        trial.lab.crashAt(verb, at + 1, death, trial.kill);
        await trial.run();
        const where = `${death} ${verb}, call ${at + 1} of it`;
        assert.ok(trial.lab.disarm().hasCrashed, where);
        assert.deepEqual(await trial.observe(), expected, where);
      } finally {
        await trial.close();
      }
    }
  return calls.length;
}

async function openFlow(open: (typeof serverFlowCases)[number]["open"], fails: string | null): Promise<Trial> {
  let lab: CrashLab | undefined;
  const carry: NonNullable<Parameters<typeof open>[1]>["carry"] = async (drivers) => {
    lab = await createCrashLab(drivers);
    return lab.drivers;
  };
  const trial: FlowTrial = await openTrial(
    database.store,
    (store) => open(store, { carry }),
    async ({ step, way, original }) => {
      const result = await original();
      if (step === fails && way === "do")
        throw new StepError("boot_failed", "It failed.", "On purpose.", { final: true });
      return result;
    },
  );
  return {
    lab: lab ?? assert.fail(),
    kill: () => trial.process.kill(),
    async run() {
      const { state, error } = await trial.finish();
      assert.equal(state, fails === null ? "Completed" : "Failed", JSON.stringify(error));
    },
    async observe() {
      const state = await trial.fixture.observe();
      if (fails !== null) assert.deepEqual(state, trial.before, "the failed flow left something");
      return state;
    },
    close: async () => trial.fixture.close?.(),
  };
}

const isAll = runsOf(1, 0) === 1;
/** Flows that a commit tries, and those that it also lets fail; `TEST_RUNS=all` tries every flow. */
const tried = ["Create", "Copy", "Rebuild", "Resize with a restart", "Delete", "an image"];
const failing = isAll ? ["server.Create", "server.Copy", "image.make"] : ["server.Create"];

describe("flows of servers", () => {
  // "a turn" only waits for another task and calls no driver.
  const flows = serverFlowCases.filter(({ title }) => (isAll && title !== "a turn") || tried.includes(title));
  for (const { title, open } of flows)
    test(`${title}: either side is killed in each call`, async () => {
      assert.ok((await sweep(() => openFlow(open, null))) > 0, "no call was made");
    });
  for (const name of failing)
    test(`${name} fails at its last step, and either side is killed in each call, also while it is undone`, async () => {
      const found = serverFlowCases.find((one) => one.name === name) ?? assert.fail();
      const model = await found.open(database.store);
      const last = model.flow.steps.findLast((step) => step.do !== undefined && !step.keeps)?.name;
      await model.close?.();
      assert.ok((await sweep(() => openFlow(found.open, last ?? assert.fail()))) > 0);
    });
});

const block = storedBlock(4, parseAddresses("172.16.0.0/24"));

/** A network in the store. Its tunnels exist while its bandwidth is 300. */
async function openNetwork(isThere: boolean, change: (tx: Tx, id: number) => Promise<unknown>): Promise<Trial> {
  const clock = { now: () => Date.UTC(2030, 0, 1) };
  const router = createRouter(clock.now);
  const machines = createMachines({ now: clock.now, images: null });
  const lab = await createCrashLab({ machines, router });
  const render = (whole: Omit<NetworkAggregate, "tunnels">): NetworkSpec => {
    const { network, links } = whole;
    const hasTunnels = network.bandwidth === 300;
    const spec = renderNetworkSpec(network, links, [], null, {
      deviceOf: (link) => `tap${link}`,
      resolvers: [],
      forwarders: [],
      nat: "always",
      closed: [],
    });
    if (!hasTunnels) return spec;
    const wireguard = { privateKey: Buffer.alloc(32, 2).toString("base64"), listenPort: 51_820 };
    const localSubnets = ["172.16.0.0/24"];
    return { ...spec, wireguard, tunnels: [ipsecTunnel({ localSubnets }), wireguardTunnel({ localSubnets })] };
  };
  const open = async (store: Store) => {
    const row = newNetworkRow({
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
    });
    const network = await store.write((tx) =>
      insertNetwork(tx, isThere ? { ...row, state: "Active", applied: 1 } : row),
    );
    const others = router.images().length;
    if (isThere) await router.apply(render({ network, links: [] }));
    return {
      reconciler: networkReconciler({ store, clock, router: lab.drivers.router, render, locate: async () => null }),
      subject: network.id,
      spec: async (tx: Tx) => void (await change(tx, network.id)),
      async observe() {
        const stored = await findNetwork(store.read, network.id);
        return [
          stored && { ...stored, id: 0 },
          router
            .images()
            .filter(({ id }) => id === network.id)
            .map((image) => ({ ...image, id: 0 })),
          router.images().length - others,
        ];
      },
      changes: () => 0,
    };
  };
  const trial: ReconcilerTrial = await openReconcile(networks.store, open);
  return {
    lab,
    kill: () => trial.process.kill(),
    run: async () => void (await trial.settle()),
    observe: () => trial.fixture.observe(),
    close: () => lab.drivers.close(),
  };
}

describe("networks", () => {
  const raise = (tx: Tx, id: number, bandwidth: number) => updateNetwork(tx, id, { bandwidth, generation: 2 });
  const cases: [string, boolean, (tx: Tx, id: number) => Promise<unknown>][] = [
    ["create", false, (tx, id) => raise(tx, id, 200)],
    ["change", true, (tx, id) => raise(tx, id, 200)],
    ["configure tunnels", true, (tx, id) => raise(tx, id, 300)],
    ["delete", true, (tx, id) => updateNetwork(tx, id, { state: "Deleting" })],
  ];
  for (const [name, isThere, change] of cases)
    test(`${name}: either side is killed in each call`, async () => {
      assert.ok((await sweep(() => openNetwork(isThere, change))) > 0, "no call was made");
    });
});
