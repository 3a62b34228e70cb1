/**
 * Samples the metrics of all servers every ten seconds and stores them. The counters come from the VM processes and the networks, so guests
 * need no agent. The current five minutes are in memory, and are written when they are over or when the service stops.
 */
import { type SqlBool, sql } from "kysely";
import type { Clock } from "../base/clock.ts";
import { createMemo } from "../base/memo.ts";
import { forEachInTurns, readPages, turn } from "../base/turn.ts";
import type { NetworkStatus, RouterStatus } from "../drivers/router/interface.ts";
import { hideCommit, type ObservedStore } from "../engine/commit.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import { allowLoss, prepare, type Reader, type Tx } from "../store/db.ts";
import type { MachineStatusCache, ObservedMachine } from "./machinestatus.ts";
import {
  type Counters,
  coarsen,
  decode,
  emptyFigures,
  encode,
  type Figures,
  merge,
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
  readonly store: ObservedStore;
  readonly clock: Clock;
  /** Source of the time up to which ages are counted. */
  readonly pruneTime: PruneTime;
  /** The reconciler of servers observes all VMs every 5 s. */
  readonly machines: Pick<MachineStatusCache, "recent" | "all">;
  readonly networks: { observe(): Promise<RouterStatus> };
}

/** What was measured of one server in the last sample. It changes in place. */
export interface ServerSample extends Counters {
  readonly isUp: boolean;
  /** Memory in use as the guest reports it, else memory of the VM on the host, in MB; null: neither it nor the counters were measured. */
  readonly memory: number | null;
}

/** Measures all running servers periodically. */
export interface Sampler {
  readonly reconciler: Reconciler;
  /** Returns the rows between two times (ms), stored ones and the current one, in order. */
  rows(db: Reader, server: number, from: number, to: number): Promise<Row[]>;
  /** Returns the last sample, by id of the server. */
  last(): ReadonlyMap<number, ServerSample>;
  /** Writes the current rows. */
  flush(): Promise<void>;
}

/** Rows of five minutes from `start`, by id of the server. */
interface CurrentRows {
  readonly start: number;
  readonly of: Map<number, Figures>;
}

/** Creates the sampler. The engine runs its reconciler. */
export function createSampler({ store, clock, pruneTime, machines, networks }: SamplerOptions): Sampler {
  const samples = new Map<number, ServerSample>();
  let current: CurrentRows | null = null;
  /** Rows of earlier five minutes that are not stored yet, in order. Those that a write could not store stay for the next one. */
  let leaving: readonly CurrentRows[] = [];
  /** Start of the first row since the start of the service: an earlier run may have stored some of its points. */
  let first: number | null = null;

  /** Ids of the servers by ids of their links, read again only after a commit. */
  const links = createMemo<ReadonlyMap<number, number>>(store.position, Infinity, () => 1);

  async function readLinks(): Promise<ReadonlyMap<number, number>> {
    const serverOf = new Map<number, number>();
    for await (const page of readPages(pageRows, (after) => pageLinks.all(store.read, { after, limit: pageRows })))
      for (const { id, server_id } of page) serverOf.set(id, server_id);
    return serverOf;
  }

  async function sample(): Promise<void> {
    const [, router] = await Promise.all([machines.recent(), networks.observe().catch(() => null)]);
    const at = clock.now();
    const start = rowStart(at);
    const traffic = await trafficOf(router?.networks ?? [], await links.get("all", () => readLinks()));
    if (current !== null && current.start !== start) await flush();
    current ??= { start, of: new Map<number, Figures>() };
    const { of: rows } = current;
    first ??= start;
    const seen = new Set<number>();
    await forEachInTurns(machines.all(), (machine) => {
      const { id } = machine.state;
      const sample = sampleOf(machine, traffic.get(id));
      const before = samples.get(id);
      seen.add(id);
      if (sample.memory !== null) {
        const figures = rows.get(id) ?? emptyFigures();
        rows.set(id, figures);
        put(figures, at, pointOf(before?.memory === null ? undefined : before, sample, sample.memory));
      }
      if (before === undefined) samples.set(id, sample);
      else Object.assign(before, sample);
    });
    await forEachInTurns(samples.keys(), (id) => {
      if (!seen.has(id)) samples.delete(id);
    });
  }

  /** Writes the current rows in short transactions, so that other writers run in between. */
  async function flush(): Promise<void> {
    if (current !== null) leaving = [...leaving, current].slice(-mostLeaving);
    current = null;
    if (leaving.length === 0) return;
    const now = await pruneTime.read();
    for (const part of leaving) {
      await write(part);
      leaving = leaving.filter((each) => each !== part);
    }
    for (let done = 0; done < mostThinned; ) {
      const count = await store.write((tx) => thin(tx, now));
      done += count;
      if (count < thinnedTogether) break;
    }
  }

  /** Writes the rows of five minutes. */
  async function write({ start, of: all }: CurrentRows): Promise<void> {
    const rows = [...all].sort(([one], [other]) => one - other);
    for (let from = 0; from < rows.length; from += savedTogether) {
      const part = rows.slice(from, from + savedTogether);
      const ids = { first: part[0]?.[0] ?? 0, last: part.at(-1)?.[0] ?? 0 };
      await store.write(async (tx) => {
        hideCommit(tx);
        allowLoss(tx);
        const servers = new Set((await serversBetween.all(tx, ids)).map(({ id }) => id));
        const before = start === first ? await storedBetween.all(tx, { start, ...ids }) : [];
        const storedOf = new Map(before.map(({ server_id, figures }) => [server_id, figures]));
        await Promise.all(
          part
            .filter(([server]) => servers.has(server))
            .map(([server, figures]) => {
              const stored = storedOf.get(server);
              const all = stored === undefined ? figures : merge(decode(stored), figures);
              return save.run(tx, { server, start, points: rowTime / pointTime, figures: encode(all) });
            }),
        );
      });
      if (turn.isOver()) await turn.next();
    }
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
      const rows = new Map(stored.map(({ start, figures }) => [start, decode(figures)]));
      for (const each of current === null ? leaving : [...leaving, current]) {
        const figures = each.of.get(server);
        if (figures === undefined) continue;
        const before = rows.get(each.start);
        rows.set(each.start, before === undefined ? figures : merge(before, figures));
      }
      return [...rows].map(([start, figures]) => ({ start, figures }));
    },
    last: () => samples,
    flush,
  };
}

/** Bytes into and out of one server over all its NICs. */
interface Traffic {
  readonly netIn: number;
  readonly netOut: number;
}

function sampleOf({ state, usage, at }: ObservedMachine, { netIn, netOut }: Traffic = noTraffic): ServerSample {
  const { cpuTime, diskRead, diskWritten } = usage ?? noUsage;
  const memory = usage === null ? null : (usage.memory ?? usage.resident);
  const isUp = state.power === "running";
  return { isUp, memory, at, since: state.since ?? 0, cpuTime, diskRead, diskWritten, netIn, netOut };
}

const noTraffic: Traffic = { netIn: 0, netOut: 0 };
const noUsage = { cpuTime: 0, diskRead: 0, diskWritten: 0 };

/**
 * Returns the bytes into and out of each server over all its NICs. Bytes that a NIC sends count as out. `serverOf`: ids of the servers by ids
 * of their links.
 */
async function trafficOf(
  networks: readonly NetworkStatus[],
  serverOf: ReadonlyMap<number, number>,
): Promise<Map<number, Traffic>> {
  const traffic = new Map<number, Traffic>();
  for (const { ports } of networks)
    await forEachInTurns(ports, ({ id, sent, received }) => {
      const server = serverOf.get(id);
      if (server === undefined) return;
      const { netIn, netOut } = traffic.get(server) ?? noTraffic;
      traffic.set(server, { netIn: netIn + received.bytes, netOut: netOut + sent.bytes });
    });
  return traffic;
}

/** Rows of one query: few enough that it takes less than a slice. */
const pageRows = 1000;

const pageLinks = prepare<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom("link").select(["id", "server_id"]).where("id", ">", p("after")).orderBy("id").limit(p("limit")),
);

const serversBetween = prepare<{ first: number; last: number }>()((db, p) =>
  db.selectFrom("server").select("id").where("id", ">=", p("first")).where("id", "<=", p("last")),
);

const listRows = prepare<{ server: number; from: number; to: number }>()((db, p) =>
  db
    .selectFrom("sample")
    .select(["start", "figures"])
    .where("server_id", "=", p("server"))
    .where("start", ">=", p("from"))
    .where("start", "<=", p("to"))
    .orderBy("start"),
);

const storedBetween = prepare<{ start: number; first: number; last: number }>()((db, p) =>
  db
    .selectFrom("sample")
    .select(["server_id", "figures"])
    .where("start", "=", p("start"))
    .where("server_id", ">=", p("first"))
    .where("server_id", "<=", p("last")),
);

/** Most sets of rows that wait for the database: those of an hour. */
const mostLeaving = 12;

/** Rows of one transaction. */
const savedTogether = 100;

/** Inserts or replaces a row. */
const save = prepare<{ server: number; start: number; points: number; figures: Uint8Array }>()((db, p) =>
  db
    .insertInto("sample")
    .values({ server_id: p("server"), start: p("start"), points: p("points"), figures: p("figures") })
    .onConflict((conflict) =>
      conflict
        .columns(["server_id", "start"])
        .doUpdateSet((row) => ({ points: row.ref("excluded.points"), figures: row.ref("excluded.figures") })),
    ),
);

/** Most rows that one run averages or deletes, and those of one transaction. */
const mostThinned = 100_000;
const thinnedTogether = 200;

/** Deletes some rows that are too old, and reduces some rows of more than a day to one point. Resolves to the larger number of both. */
async function thin(tx: Tx, now: number): Promise<number> {
  hideCommit(tx);
  allowLoss(tx);
  const { numAffectedRows = 0n } = await sql`delete from sample where (server_id, start) in
    (select server_id, start from sample where start < ${now - rowLife} order by start
      limit ${sql.lit(thinnedTogether)})`.execute(tx);
  const old = await tx
    .selectFrom("sample")
    .select(["server_id", "start", "figures"])
    .where(sql<SqlBool>`points > 1`)
    .where("start", "<", now - pointLife)
    .orderBy("start")
    .limit(thinnedTogether)
    .execute();
  for (const { server_id, start, figures } of old)
    await reduce.run(tx, { server: server_id, start, figures: encode(coarsen(decode(figures))) });
  return Math.max(Number(numAffectedRows), old.length);
}

const reduce = prepare<{ server: number; start: number; figures: Uint8Array }>()((db, p) =>
  db
    .updateTable("sample")
    .set({ points: 1, figures: p("figures") })
    .where("server_id", "=", p("server"))
    .where("start", "=", p("start")),
);
