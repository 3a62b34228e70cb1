/**
 * Samples the metrics of all servers every ten seconds and stores them. The counters come from the VM processes and the networks, so guests
 * need no agent. The current five minutes are in memory, and are written when they are over or when the service stops.
 */
import { type SqlBool, sql } from "kysely";
import { type Clock, steadyOf } from "../base/clock.ts";
import { createMemo } from "../base/memo.ts";
import { forEachInTurns, readPages, turn } from "../base/turn.ts";
import type { MachineStatus, MachinesStatus } from "../drivers/machine/interface.ts";
import type { NetworkStatus, RouterStatus } from "../drivers/router/interface.ts";
import { hideCommit, type ObservedStore } from "../engine/commit.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import { allowLoss, prepare, type Reader, type Tx } from "../store/db.ts";
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
  /** Observed status of the VMs and of the networks. */
  readonly machines: { observe(): Promise<MachinesStatus> };
  readonly networks: { observe(): Promise<RouterStatus> };
}

/** Status and counters of one server in the last sample. */
export interface ServerSample {
  readonly status: MachineStatus;
  readonly counters: Counters | null;
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

interface CurrentRow {
  readonly start: number;
  readonly figures: Figures;
}

/** Creates the sampler. The engine runs its reconciler. */
export function createSampler({ store, clock, pruneTime, machines, networks }: SamplerOptions): Sampler {
  let samples: ReadonlyMap<number, ServerSample> = new Map();
  let current = new Map<number, CurrentRow>();
  /** Rows of earlier five minutes that are not stored yet, in order. Those that a write could not store stay for the next one. */
  let leaving: readonly ReadonlyMap<number, CurrentRow>[] = [];
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
    const [{ machines: all }, router] = await Promise.all([machines.observe(), networks.observe().catch(() => null)]);
    const at = clock.now();
    const measured = steadyOf(clock);
    const start = rowStart(at);
    const traffic = await trafficOf(router?.networks ?? [], await links.get("all", () => readLinks()));
    for (const row of current.values()) {
      if (row.start !== start) await flush();
      break;
    }
    first ??= start;
    const now = new Map<number, ServerSample>();
    await forEachInTurns(all, (status) => {
      const { id, usage, since } = status;
      const { netIn = 0, netOut = 0 } = traffic.get(id) ?? {};
      const counters = usage === null ? null : { at: measured, since: since ?? 0, ...usage, netIn, netOut };
      now.set(id, { status, counters });
      if (usage === null || counters === null) return;
      const before = samples.get(id)?.counters ?? undefined;
      const row = current.get(id) ?? { start, figures: emptyFigures() };
      current.set(id, row);
      put(row.figures, at, pointOf(before, counters, usage.memory ?? usage.resident));
    });
    samples = now;
  }

  /** Writes the current rows in short transactions, so that other writers run in between. */
  async function flush(): Promise<void> {
    if (current.size > 0) leaving = [...leaving, current].slice(-mostLeaving);
    current = new Map();
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
  async function write(all: ReadonlyMap<number, CurrentRow>): Promise<void> {
    const rows = [...all].sort(([one], [other]) => one - other);
    for (let from = 0; from < rows.length; from += savedTogether) {
      const part = rows.slice(from, from + savedTogether);
      const ids = { first: part[0]?.[0] ?? 0, last: part.at(-1)?.[0] ?? 0 };
      await store.write(async (tx) => {
        hideCommit(tx);
        allowLoss(tx);
        const servers = new Set((await serversBetween.all(tx, ids)).map(({ id }) => id));
        const start = part[0]?.[1].start ?? 0;
        const before = start === first ? await storedBetween.all(tx, { start, ...ids }) : [];
        const storedOf = new Map(before.map(({ server_id, figures }) => [server_id, figures]));
        await Promise.all(
          part
            .filter(([server]) => servers.has(server))
            .map(([server, { figures }]) => {
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
      for (const row of [...leaving, current].map((each) => each.get(server))) {
        if (row === undefined) continue;
        const before = rows.get(row.start);
        rows.set(row.start, before === undefined ? row.figures : merge(before, row.figures));
      }
      return [...rows].map(([start, figures]) => ({ start, figures }));
    },
    last: () => samples,
    flush,
  };
}

/**
 * Returns the bytes into and out of each server over all its NICs. Bytes that a NIC sends count as out. `serverOf`: ids of the servers by ids
 * of their links.
 */
async function trafficOf(
  networks: readonly NetworkStatus[],
  serverOf: ReadonlyMap<number, number>,
): Promise<Map<number, { netIn: number; netOut: number }>> {
  const traffic = new Map<number, { netIn: number; netOut: number }>();
  for (const { ports } of networks)
    await forEachInTurns(ports, ({ id, sent, received }) => {
      const server = serverOf.get(id);
      if (server === undefined) return;
      const { netIn, netOut } = traffic.get(server) ?? { netIn: 0, netOut: 0 };
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
