/**
 * Measures the overhead of the store over the bare database in one run, so that the ratios hold on any host: reads and inserts in the
 * three ways to write them, and durable writes per second with and without group commit, on a real disk.
 * `node bench/store.ts [FOLDER]`: folder of the databases, by default the system's temporary folder.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Store } from "../service/src/store/db.ts";
import { prepare } from "../service/src/store/db.ts";
import { migrate } from "../service/src/store/migrate.ts";
import { openSqlite } from "../service/src/store/sqlite.ts";

const rows = 20_000;
const event = { type: "server.update", date: 1, project_id: 1, resource: "server", resource_id: 1, data: "{}" };
const absent = { parent_id: null, token_id: null, request_id: null };

const findEvent = prepare<{ id: number }>()((db, p) => db.selectFrom("event").selectAll().where("id", "=", p("id")));
const insertEvent = prepare<{ resource_id: number }>()((db, p) =>
  db
    .insertInto("event")
    .values({ ...event, ...absent, resource_id: p("resource_id") })
    .returning("id"),
);

/** Returns the microseconds of one `act`: the best of three rounds, because other work uses the host too. */
async function measure(count: number, act: (i: number) => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const start = performance.now();
    for (let i = 0; i < count; i++) await act(i);
    best = Math.min(best, ((performance.now() - start) * 1000) / count);
  }
  return best;
}

/** Returns the durable writes per second of `writers` concurrent writers. */
async function rate(writers: number, milliseconds: number, write: () => Promise<unknown>): Promise<number> {
  let done = 0;
  const end = performance.now() + milliseconds;
  const start = performance.now();
  await Promise.all(
    Array.from({ length: writers }, async () => {
      for (; performance.now() < end; done++) await write();
    }),
  );
  return (done * 1000) / (performance.now() - start);
}

async function measureReads(store: Store, raw: DatabaseSync): Promise<object> {
  const text = raw.prepare("select * from event where id = ?");
  const bare = await measure(rows, (i) => text.get((i % rows) + 1));
  const prepared = await measure(rows, (i) => findEvent.first(store.read, { id: (i % rows) + 1 }));
  const fluent = await measure(rows, (i) =>
    store.read
      .selectFrom("event")
      .selectAll()
      .where("id", "=", (i % rows) + 1)
      .executeTakeFirst(),
  );
  return line("point read, µs", bare, prepared, fluent);
}

async function measureInserts(store: Store, raw: DatabaseSync): Promise<object> {
  const columns = Object.keys({ ...event, ...absent });
  const text = raw.prepare(
    `insert into event (${columns.join()}) values (${columns.map(() => "?").join()}) returning id`,
  );
  const values = Object.values({ ...event, ...absent });
  raw.exec("begin");
  const bare = await measure(rows, () => text.get(...values));
  raw.exec("commit");
  const inTransaction = (act: (tx: Parameters<Parameters<Store["write"]>[0]>[0]) => Promise<unknown>) =>
    store.write((tx) => measure(rows, () => act(tx)));
  const prepared = await inTransaction((tx) => insertEvent.first(tx, { resource_id: 1 }));
  const fluent = await inTransaction((tx) =>
    tx
      .insertInto("event")
      .values({ ...event, ...absent })
      .returning("id")
      .executeTakeFirstOrThrow(),
  );
  return line("insert, µs", bare, prepared, fluent);
}

const line = (what: string, bare: number, prepared: number, fluent: number): object => ({
  what,
  bare: bare.toFixed(1),
  prepared: prepared.toFixed(1),
  fluent: fluent.toFixed(1),
  "prepared / bare": (prepared / bare).toFixed(2),
  "fluent / bare": (fluent / bare).toFixed(2),
});

async function measureWrites(store: Store, raw: DatabaseSync): Promise<object[]> {
  const columns = Object.keys({ ...event, ...absent });
  const text = raw.prepare(`insert into event (${columns.join()}) values (${columns.map(() => "?").join()})`);
  const values = Object.values({ ...event, ...absent });
  const single = await rate(1, 1000, async () => {
    raw.exec("begin immediate");
    text.run(...values);
    raw.exec("commit");
  });
  const lines: object[] = [];
  for (const writers of [1, 16, 256]) {
    const { user, system } = process.cpuUsage();
    const before = process.cpuUsage({ user, system });
    const grouped = await rate(writers, 1000, () => store.write((tx) => insertEvent.first(tx, { resource_id: 1 })));
    const used = process.cpuUsage({ user, system });
    lines.push({
      writers,
      "one transaction each / s": Math.round(single),
      "group commit / s": Math.round(grouped),
      ratio: (grouped / single).toFixed(2),
      "CPU µs / write": ((used.user + used.system - before.user - before.system) / grouped).toFixed(1),
    });
  }
  return lines;
}

const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), "brume-bench-"));
try {
  const file = join(folder, "brume.db");
  const store = await openSqlite(file, { log: console.warn });
  await migrate(store);
  await store.write(async (tx) => {
    for (let i = 0; i < rows; i++) await insertEvent.first(tx, { resource_id: i });
  });
  // The bare database has the same tables and rows, and the same durability.
  const copy = join(folder, "bare.db");
  const source = new DatabaseSync(file, { readOnly: true });
  source.exec(`vacuum into '${copy}'`);
  source.close();
  const raw = new DatabaseSync(copy);
  raw.exec("pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -32000");
  console.table([await measureReads(store, raw), await measureInserts(store, raw)]);
  console.table(await measureWrites(store, raw));
  raw.close();
  await store.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
