/**
 * Samples the metrics of all servers every ten seconds and stores them. The counters come from the VM processes and the networks, so guests
 * need no agent. The current five minutes are in memory, and are written when they are over or when the service stops.
 */
import { type SqlBool, sql } from "kysely";
import { type Clock, steadyOf } from "../base/clock.ts";
import type { MachineStatus, MachinesStatus } from "../drivers/machine/interface.ts";
import type { NetworkStatus, RouterStatus } from "../drivers/router/interface.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import { prepare, type Reader, type Store, type Tx } from "../store/db.ts";
import {
  type Counters,
  coarsen,
  decode,
  emptyFigures,
  encode,
  type Figures,
  pointLife,
  pointOf,
  pointTime,
  put,
  type Row,
  rowLife,
  rowStart,
  rowTime,
} from "./model/samples.ts";

/** Dependencies of `createSampler`. */
export interface SamplerOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** Source of the time up to which ages are counted. */
  readonly pruneTime: PruneTime;
  /** Observed status of the VMs and of the networks. */
  readonly machines: { look(): Promise<MachinesStatus> };
  readonly networks: { observe(): Promise<RouterStatus> };
}

/** Status and counters of one server in the last sample. */
export interface ServerSample {
  readonly status: MachineStatus;
  readonly counters: Counters | null;
}

/** The sampler. */
export interface Sampler {
  readonly reconciler: Reconciler;
  /** Returns the rows between two times (ms), stored ones and the current one, in order. */
  rows(db: Reader, server: number, from: number, to: number): Promise<Row[]>;
  /** Returns the last sample, by id of the server. */
  last(): ReadonlyMap<number, ServerSample>;
  /** Writes the current rows. */
  flush(): Promise<void>;
}

interface CurrentRow {
  readonly start: number;
  readonly figures: Figures;
}

/** Creates the sampler. The engine runs its reconciler. */
export function createSampler({ store, clock, pruneTime, machines, networks }: SamplerOptions): Sampler {
  let samples: ReadonlyMap<number, ServerSample> = new Map();
  let current = new Map<number, CurrentRow>();

  async function sample(): Promise<void> {
    const [{ machines: all }, router] = await Promise.all([machines.look(), networks.observe().catch(() => null)]);
    const at = clock.now();
    const measured = steadyOf(clock);
    const links = await store.read.selectFrom("link").select(["id", "server_id"]).execute();
    const traffic = trafficOf(router?.networks ?? [], links);
    if ([...current.values()].some(({ start }) => start !== rowStart(at))) await flush();
    const now = new Map<number, ServerSample>();
    for (const status of all) {
      const { id, usage, since } = status;
      const { netIn = 0, netOut = 0 } = traffic.get(id) ?? {};
      const counters = usage === null ? null : { at: measured, since: since ?? 0, ...usage, netIn, netOut };
      now.set(id, { status, counters });
      if (usage === null || counters === null) continue;
      const before = samples.get(id)?.counters ?? undefined;
      put(
        (await currentRowOf(id, rowStart(at))).figures,
        at,
        pointOf(before, counters, usage.memory ?? usage.resident),
      );
    }
    samples = now;
  }

  /** Returns the current row of a server. After a restart, its first points are stored already. */
  async function currentRowOf(server: number, start: number): Promise<CurrentRow> {
    const known = current.get(server);
    if (known !== undefined) return known;
    const [stored] = await listRows.all(store.read, { server, from: start, to: start });
    const own = { start, figures: stored === undefined ? emptyFigures() : decode(stored.figures) };
    current.set(server, own);
    return own;
  }

  async function flush(): Promise<void> {
    if (current.size === 0) return;
    const rows = current;
    current = new Map();
    const now = await pruneTime.read();
    await store.write(async (tx) => {
      const servers = new Set((await tx.selectFrom("server").select("id").execute()).map(({ id }) => id));
      for (const [server, { start, figures }] of rows) if (servers.has(server)) await save(tx, server, start, figures);
      await thin(tx, now);
    });
  }

  return {
    reconciler: defineReconciler({
      name: "server.sample",
      subject: "servers",
      single: true,
      period: pointTime,
      pause: { first: pointTime, factor: 1, most: pointTime },
      run: sample,
    }),
    async rows(db, server, from, to) {
      const stored = await listRows.all(db, { server, from: rowStart(from), to });
      const rows = stored.map(({ start, figures }) => ({ start, figures: decode(figures) }));
      const own = current.get(server);
      if (own === undefined) return rows;
      return [...rows.filter(({ start }) => start !== own.start), own];
    },
    last: () => samples,
    flush,
  };
}

/** Returns the bytes into and out of each server over all its NICs. Bytes that a NIC sends count as out. */
function trafficOf(
  networks: readonly NetworkStatus[],
  links: readonly { readonly id: number; readonly server_id: number }[],
): Map<number, { netIn: number; netOut: number }> {
  const serverOf = new Map(links.map(({ id, server_id }) => [id, server_id]));
  const traffic = new Map<number, { netIn: number; netOut: number }>();
  for (const { id, sent, received } of networks.flatMap(({ ports }) => ports)) {
    const server = serverOf.get(id);
    if (server === undefined) continue;
    const { netIn, netOut } = traffic.get(server) ?? { netIn: 0, netOut: 0 };
    traffic.set(server, { netIn: netIn + received.bytes, netOut: netOut + sent.bytes });
  }
  return traffic;
}

const listRows = prepare<{ server: number; from: number; to: number }>()((db, p) =>
  db
    .selectFrom("sample")
    .select(["start", "figures"])
    .where("server_id", "=", p("server"))
    .where("start", ">=", p("from"))
    .where("start", "<=", p("to"))
    .orderBy("start"),
);

/** Inserts or replaces a row. */
async function save(tx: Tx, server: number, start: number, figures: Figures): Promise<void> {
  const values = { points: rowTime / pointTime, figures: encode(figures) };
  await tx
    .insertInto("sample")
    .values({ server_id: server, start, ...values })
    .onConflict((conflict) => conflict.columns(["server_id", "start"]).doUpdateSet(values))
    .execute();
}

/** Most rows that one run averages or deletes: more than reach the age in five minutes, so a backlog is reduced too. */
const mostThinned = 1000;

/** Deletes rows that are too old, and reduces rows of more than a day to one point. */
async function thin(tx: Tx, now: number): Promise<void> {
  await sql`delete from sample where (server_id, start) in
    (select server_id, start from sample where start < ${now - rowLife} order by start limit ${sql.lit(mostThinned)})`.execute(
    tx,
  );
  const old = await tx
    .selectFrom("sample")
    .select(["server_id", "start", "figures"])
    .where(sql<SqlBool>`points > 1`)
    .where("start", "<", now - pointLife)
    .orderBy("start")
    .limit(mostThinned)
    .execute();
  for (const { server_id, start, figures } of old)
    await tx
      .updateTable("sample")
      .set({ points: 1, figures: encode(coarsen(decode(figures))) })
      .where("server_id", "=", server_id)
      .where("start", "=", start)
      .execute();
}
