/**
 * The server feature on simulated drivers, without HTTP: for invariants that make flows fail or crash at each step. Each fixture has its
 * own simulated host and location, so several can share a database. Tests that run one flow only apply networks with `applyNetworks`.
 */
import { randomBytes } from "node:crypto";
import { ensureFirst } from "../../service/src/account/first.ts";
import type { Drivers } from "../../service/src/agent/contract/contract.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { type ImageRow, insertImage, listImages } from "../../service/src/catalog/table.ts";
import { createUploads } from "../../service/src/drivers/content/uploads.ts";
import {
  createSim as createMachines,
  type SimOptions,
  type SimulatedMachines,
} from "../../service/src/drivers/machine/sim/sim.ts";
import { createSim as createRouter, type SimulatedRouter } from "../../service/src/drivers/router/sim/sim.ts";
import type { Flow, Run } from "../../service/src/engine/flow.ts";
import { find, type Task } from "../../service/src/engine/task.ts";
import { listLinksOfServer } from "../../service/src/network/linktable.ts";
import { renderNetworkSpec } from "../../service/src/network/model/networkspec.ts";
import type { NetworkReconciler } from "../../service/src/network/portchanges.ts";
import { networkReconciler } from "../../service/src/network/reconciler.ts";
import { createNetworkStatusCache } from "../../service/src/network/statuscache.ts";
import { insertNetwork, type NetworkRow } from "../../service/src/network/table.ts";
import type { ServerSpec } from "../../service/src/server/model/plan.ts";
import { createServers, type Servers } from "../../service/src/server/servers.ts";
import { findAnyServer, type ServerRow } from "../../service/src/server/table.ts";
import type { Reader, Store, Tx } from "../../service/src/store/db.ts";
import { imageRow, networkRow, serverSpec } from "./rows.ts";

/** The server feature with its drivers, and helpers that run its flows. */
export interface ServerFixture {
  readonly servers: Servers;
  readonly machines: SimulatedMachines;
  readonly router: SimulatedRouter;
  /** Networks of the fixture's location; the first is the shared network. */
  readonly networks: readonly NetworkRow[];
  /** The reconciler of networks. */
  readonly apply: NetworkReconciler;
  /** Returns true if port 22 of the guests sends an SSH banner. */
  sendsBanner: () => boolean;
  /** Returns the spec of a small server, with these fields replaced. */
  spec(more?: Partial<ServerSpec>): ServerSpec;
  /** Returns the flow of this name; throws if there is none. */
  flow(name: string): Flow;
  /** Applies the stored state of all networks to the router. */
  applyNetworks(): Promise<void>;
  /** Starts a flow and runs all its steps, without an engine. */
  perform(begin: (tx: Tx) => Promise<Task>): Promise<Task>;
  /** Creates a server and waits until it runs. */
  makeServer(more?: Partial<ServerSpec>): Promise<ServerRow>;
  /** Returns the stored row; throws if there is none. */
  row(id: number): Promise<ServerRow>;
  /** Returns everything of the location, in rows and on the host, without ids. `sizes` adds CPUs and memory of running VMs. */
  observe(options?: { readonly sizes?: boolean }): Promise<unknown>;
  close(): Promise<void>;
}

/** Lists the backups of all projects. */
export const listBackups = (db: Reader): Promise<ImageRow[]> =>
  db.selectFrom("image").selectAll().where("type", "=", "Backup").orderBy("id").execute();

let fixtures = 0;

/** The simulated drivers of a fixture. */
export interface SimulatedDrivers {
  readonly machines: SimulatedMachines;
  readonly router: SimulatedRouter;
}
/** What the features call instead of the simulated drivers. */
export interface CarriedDrivers extends Pick<Drivers, "machines" | "images" | "consoles" | "router"> {
  close(): Promise<void>;
}

export interface ServerFixtureOptions extends Pick<SimOptions, "boots" | "bootTime"> {
  /** Puts something between the features and the drivers; the fixture itself uses the drivers. */
  readonly carry?: (drivers: SimulatedDrivers) => Promise<CarriedDrivers>;
}

export async function openServerFixture(
  store: Store,
  now: () => number,
  { carry, ...options }: ServerFixtureOptions = {},
): Promise<ServerFixture> {
  const location = `Place ${process.pid} ${++fixtures}`;
  const clock = { now };
  const sealer = createSealer(randomBytes(32));
  const machines = createMachines({ now, images: ["image-1", "image-2"], ...options });
  const router = createRouter(now);
  machines.onDevice(router.plug);
  const local = { machines, images: machines, consoles: machines, router, close: async () => {} };
  const carried = carry === undefined ? local : await carry({ machines, router });
  const context = {
    deviceOf: machines.deviceOf,
    resolvers: ["192.0.2.53"],
    forwarders: [],
    closed: [],
  };
  await ensureFirst(store, clock, "0".repeat(64));
  const networks = await store.write(async (tx) => {
    if ((await listImages(tx, 1)).length === 0)
      for (const id of [1, 2]) {
        const { id: _, ...image } = imageRow(id);
        await insertImage(tx, image);
      }
    const common = { location, wireguard: null, applied: 0, state: "New" as const };
    const add = (network: NetworkRow) => {
      const { id: _, ...row } = network;
      return insertNetwork(tx, row);
    };
    return [
      await add(
        networkRow(0, {
          ...common,
          project_id: null,
          kind: "shared",
          first: "0a3f0000",
          last: "0a3fffff",
          gateway: "0a3f0001",
          edge: "0a40fff0",
        }),
      ),
      await add(
        networkRow(0, { ...common, kind: "private", first: "ac100000", last: "ac1000ff", gateway: null, edge: null }),
      ),
    ];
  });

  const apply = networkReconciler({
    store,
    clock,
    router: carried.router,
    locate: async () => null,
    render: ({ network, links }) => renderNetworkSpec(network, links, [], null, { ...context, nat: "always" }),
  });
  const applyNetworks = async () => {
    const run = { attempt: 1, signal: new AbortController().signal };
    for (const { id } of networks) {
      const kept = await apply.run({ ...run, subject: id });
      await store.write(async (tx) => kept?.save?.(tx));
    }
  };
  const servers = createServers({
    store,
    clock,
    log: silentLog,
    sealer,
    random: randomBytes,
    machines: carried.machines,
    images: carried.images,
    uploads: createUploads({ folder: "/nonexistent", now: Date.now }),
    consoles: carried.consoles,
    networks: { live: createNetworkStatusCache(carried.router), apply },
    surroundings: context,
    sendsSshBanner: async () => fixture.sendsBanner(),
  });

  const fixture: ServerFixture = {
    servers,
    machines,
    router,
    networks,
    apply,
    sendsBanner: () => true,
    spec: (more = {}) => serverSpec({ location, ...more }),
    flow(name) {
      const flow = servers.flows.find((each) => each.name === name);
      if (flow === undefined) throw new Error(`flow ${name} does not exist`);
      return flow;
    },
    applyNetworks,
    perform: (begin) => perform(store, fixture, begin),
    async makeServer(more) {
      const spec = { project: 1, batch: null, spec: fixture.spec(more), by: null };
      const task = await fixture.perform(async (tx) => (await servers.commands.create(tx, spec)).task);
      return fixture.row(task.subject.id);
    },
    async row(id) {
      const row = await findAnyServer(store.read, id);
      if (row === undefined) throw new Error(`server ${id} does not exist`);
      return row;
    },
    async observe({ sizes = false } = {}) {
      await applyNetworks();
      const status = new Map((await machines.observe()).machines.map((each) => [each.id, each]));
      const here = store.read.selectFrom("server").selectAll().where("location", "=", location);
      const rows = await here.orderBy("id").execute();
      const images = (await listImages(store.read, 1)).filter(
        ({ server_id, state }) => state === "Active" && rows.some(({ id }) => id === server_id),
      );
      const seen = [];
      for (const row of rows.filter(({ state }) => state !== "Failed")) {
        const machine = status.get(row.id);
        const { name, state, is_on, image_name } = row;
        seen.push({
          name,
          state,
          is_on,
          image_name,
          numbers: [row.cpu, row.ram, row.hdd, row.held_cpu, row.held_ram, row.held_hdd, row.is_high_performance],
          version: row.disk_version,
          links: (await listLinksOfServer(store.read, row.id)).map(({ ip, bandwidth, state }) => ({
            ip,
            bandwidth,
            state,
          })),
          power: machine?.power,
          ...(sizes && { size: [machine?.cpus, machine?.memory] }),
          disks: machine?.disks.map(({ version }) => version),
          content: machines.read(row.id),
        });
      }
      return {
        servers: seen,
        machines: status.size,
        images: { rows: images.length, disks: machines.images() },
        ports: router.images().map(({ ports }) => ports.map(({ addresses, bandwidth }) => ({ addresses, bandwidth }))),
      };
    },
    async close() {
      servers.close();
      await carried.close();
    },
  };
  return fixture;
}

async function perform(store: Store, fixture: ServerFixture, begin: (tx: Tx) => Promise<Task>): Promise<Task> {
  const task = await store.write(begin);
  const flow = fixture.flow(task.name);
  let facts = task.facts as object;
  const runNow = (): Run => ({
    task: task.id,
    subject: task.subject.id,
    project: task.project,
    input: task.input,
    facts,
    attempt: 1,
    signal: new AbortController().signal,
  });
  for (const { name, state } of task.steps) {
    const step = flow.steps.find((each) => each.name === name);
    if (state === "Completed" || step === undefined) continue;
    for (let checks = 0; ; checks++) {
      const done = await step.do?.(runNow());
      if (done !== undefined && "wait" in done) {
        if (checks > 5) throw new Error(`${name} waits: ${done.detail}`);
        await fixture.applyNetworks();
        continue;
      }
      facts = { ...facts, ...done?.facts };
      break;
    }
    await store.write(async (tx) => step.save?.(tx, runNow()));
  }
  await store.write(async (tx) => {
    const over = { state: "Completed", progress: 100, due_at: null, end_date: 1 } as const;
    await tx.updateTable("task").set(over).where("id", "=", task.id).execute();
    await flow.ended?.(tx, runNow(), "Completed");
  });
  return (await find(store.read, task.id)) ?? task;
}

/** Returns the flow, with `beside` called before each attempt of a step, as if another engine worked at the same time. */
export function besideOthers(fixture: ServerFixture, name: string, beside: () => Promise<unknown>): Flow {
  const flow = fixture.flow(name);
  const steps = flow.steps.map((step) => ({
    ...step,
    ...(step.do && {
      async do(run: Run) {
        for (let checks = 0; ; checks++) {
          await beside();
          const done = await step.do?.(run);
          if (checks === 3 || done === undefined || !("wait" in done)) return done;
        }
      },
    }),
  }));
  return { ...flow, steps };
}
