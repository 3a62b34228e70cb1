/** Tables that grow with use are limited by number and age, in small transactions, and a wrong clock makes no row old. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { auditRows } from "../../service/src/account/table.ts";
import { defaultKeep } from "../../service/src/config/retention.ts";
import { pastClaims } from "../../service/src/dns/claimtable.ts";
import { historyPruner } from "../../service/src/dns/reconciler.ts";
import { retiredZones } from "../../service/src/dns/table.ts";
import { countRows, endedTasks, type Prunable, prune } from "../../service/src/engine/prune.ts";
import { createPruneTime } from "../../service/src/engine/prunetime.ts";
import { storedKeys } from "../../service/src/http/idempotency.ts";
import { retiredRows } from "../../service/src/server/orphantable.ts";
import type { Store } from "../../service/src/store/db.ts";
import { endedDeliveries } from "../../service/src/webhook/table.ts";
import { startDatabase } from "../support/databases.ts";
import { invariant } from "../support/enginefixture.ts";
import { findScans } from "../support/scans.ts";
import { createTestService } from "../support/testservice.ts";
import { waitUntil } from "../support/waituntil.ts";
import { insertEvent } from "../support/writer.ts";

const day = 86_400_000;
const hour = day / 24;
const now = Date.UTC(2026, 10, 20);

const insertAudit = (store: Store, count: number, date: (row: number) => number, status = 200): Promise<unknown> =>
  store.write(async (tx) => {
    const row = { project_id: 1, token_id: 1, token_name: "t", address: "", operation: "x", request_id: "r", status };
    for (let from = 0; from < count; from += 500)
      await tx
        .insertInto("audit")
        .values(Array.from({ length: Math.min(500, count - from) }, (_, i) => ({ ...row, date: date(from + i) })))
        .execute();
  });

const countOf = async (store: Store, { table, where = "1 = 1" }: Pick<Prunable, "table" | "where">) => {
  const counted = sql<{ count: number }>`select count(*) as count from ${sql.table(table)} where ${sql.raw(where)}`;
  return Number((await counted.execute(store.read)).rows[0]?.count);
};

const [granted, refused] = auditRows;

invariant("the oldest rows are deleted by age and by number, in small transactions", async (store) => {
  let writes = 0;
  const counting: Store = {
    ...store,
    write: (work) => {
      writes++;
      return store.write(work);
    },
  };
  await insertAudit(store, 1200, () => now - 400 * day);
  await insertAudit(store, 900, (row) => now - row);
  await insertAudit(store, 700, () => now, 403);
  assert.equal(await prune(counting, granted, { days: 365, count: 300 }, now), 1800);
  assert.equal(writes, 5, "three for those of age, two for the others");
  assert.equal(await countOf(store, granted), 300);
  assert.equal(await countOf(store, refused), 700, "refusals have a number of their own");
  const oldest = await store.read
    .selectFrom("audit")
    .select("date")
    .where("status", "=", 200)
    .orderBy("date")
    .execute();
  assert.equal(oldest[0]?.date, now - 299);
  writes = 0;
  assert.equal(await prune(counting, granted, { days: 365, count: 300 }, now), 0);
  assert.equal(writes, 0, "nothing to delete is no write");
});

invariant("rows are counted in short reads, and exactly", async (store) => {
  // More than one read, and many of one date, also across the end of a read.
  await insertAudit(store, 12_000, (row) => now - Math.floor(row / 4000));
  await insertAudit(store, 3, () => now, 403);
  let turns = 0;
  let isRunning = true;
  const count = (): void => {
    turns += 1;
    if (isRunning) setImmediate(count);
  };
  setImmediate(count);
  assert.equal(await countRows(store.read, granted), 12_000);
  isRunning = false;
  assert.ok(turns >= 3, `others had ${turns} turns`);
  assert.equal(await countRows(store.read, refused), 3);
  assert.equal(await prune(store, granted, { days: 365, count: 11_999 }, now), 1);
});

invariant("every rule is valid SQL on each database", async (store) => {
  const rules = [...auditRows, storedKeys, endedTasks, retiredZones, ...pastClaims, endedDeliveries, retiredRows];
  assert.deepEqual(
    new Set([...rules.map(({ name }) => name), "event", "version"]),
    new Set(Object.keys(defaultKeep)),
    "what has a setting has a rule",
  );
  await store.write(async (tx) => {
    await tx
      .insertInto("retired_zone")
      .values({ ascii: "a.test", serial: now / 1000 - 2 * 86_400 })
      .execute();
    await tx
      .insertInto("retired_zone")
      .values({ ascii: "b.test", serial: now / 1000 })
      .execute();
    for (const kind of ["Server", "Image"] as const)
      await tx.insertInto("retired").values({ kind, name: "1", uuid: "", date: now }).execute();
  });
  for (const rule of rules) await prune(store, rule, { days: 1, count: 1 }, now);
  const left = await store.read.selectFrom("retired_zone").select("ascii").execute();
  assert.deepEqual(left, [{ ascii: "b.test" }]);
  assert.equal(await countOf(store, retiredRows), 1);
});

invariant("ended tasks are deleted, and running ones and reconcilers stay", async (store) => {
  const row = { subject: "sample", steps: "[]", input: "null", facts: "{}", start_date: 0, announced_at: 0, tries: 0 };
  const more = { ...row, wake: 0, served: 0, name: "sample" };
  await store.write(async (tx) => {
    for (let id = 1; id <= 5; id++)
      await tx
        .insertInto("task")
        .values({ ...more, subject_id: id, state: "Completed", progress: 100, end_date: now - id })
        .execute();
    const going = { ...more, progress: 0, due_at: 1, subject_id: 9 };
    await tx
      .insertInto("task")
      .values([
        { ...going, state: "InProgress" },
        { ...going, state: "Keeping" },
      ])
      .execute();
  });
  assert.equal(await prune(store, endedTasks, { days: 1, count: 2 }, now), 3);
  const left = await store.read.selectFrom("task").select(["state", "subject_id"]).orderBy("id").execute();
  assert.deepEqual(
    left.map(({ state, subject_id }) => `${state} ${subject_id}`),
    ["Completed 1", "Completed 2", "InProgress 9", "Keeping 9"],
  );
});

invariant("a domain has a limited number of versions of any age", async (store) => {
  await store.write(async (tx) => {
    const common = { project_id: 1, record_count: 0, is_delegate: 0, created: 0, labels: "{}", version: 1 };
    await tx
      .insertInto("project")
      .values({ id: 1, name: "p", is_blocked: 0, quotas: "{}", created: 0, labels: "{}", version: 1 })
      .execute();
    for (const [id, name] of [
      [1, "a.test"],
      [2, "b.test"],
    ] as const)
      await tx
        .insertInto("domain")
        .values({ ...common, id, name, ascii: name, subtree: name, serial: 1 })
        .execute();
    const rows = Array.from({ length: 230 }, (_, i) => ({ domain_id: 1, serial: i + 1, date: now, changes: "[]" }));
    await tx.insertInto("domain_version").values(rows).execute();
    await tx.insertInto("domain_version").values({ domain_id: 2, serial: 1, date: now, changes: "[]" }).execute();
  });
  const time = { read: async () => now, save: async () => {} };
  const reconciler = historyPruner(store, { time, cap: { days: 90, count: 20 }, period: hour });
  await reconciler.run({ subject: 0, attempt: 1, signal: new AbortController().signal });
  const left = await store.read
    .selectFrom("domain_version")
    .select(["domain_id", "serial"])
    .orderBy("serial")
    .execute();
  assert.deepEqual(
    left.map(({ domain_id, serial }) => `${domain_id} ${serial}`),
    ["2 1", ...Array.from({ length: 20 }, (_, i) => `1 ${i + 211}`)],
  );
});

test("the search for versions to delete reads the oldest and the last kept one of each domain", async () => {
  const database = await startDatabase("sqlite");
  try {
    const { store } = database;
    const time = { read: async () => now, save: async () => {} };
    const reconciler = historyPruner(store, { time, cap: { days: 90, count: 20 }, period: hour });
    const run = () => reconciler.run({ subject: 0, attempt: 1, signal: new AbortController().signal });
    assert.deepEqual(await findScans(store.read, ["domain_version"], run), []);
  } finally {
    await database.close();
  }
});

invariant("a steady clock with fractions of a millisecond gives whole dates", async (store) => {
  let steady = 0.25;
  const time = createPruneTime(store, { now: () => now + Math.floor(steady), steady: () => steady });
  await time.read();
  steady += 1000.5;
  assert.ok(Number.isInteger(await time.read()));
  await time.save();
  assert.ok(Number.isInteger(await createPruneTime(store, { now: () => now + day, steady: () => steady }).read()));
});

invariant("a clock that is years ahead expires no row, also after a restart", async (store) => {
  let offset = 0;
  let passed = 0;
  const clock = { now: () => now + offset + passed, steady: () => passed };
  const read = async (time = createPruneTime(store, clock)): Promise<number> => {
    const found = await time.read();
    await time.save();
    return found;
  };
  const time = createPruneTime(store, clock);
  assert.equal(await read(time), now);
  offset = 10 * 365 * day;
  passed += hour;
  assert.equal(await read(time), now + 2 * hour, "the time continues, at most at twice the speed");
  await insertAudit(store, 3, () => now);
  await store.write((tx) => insertEvent(tx, 1));
  assert.equal(await prune(store, granted, { days: 30, count: 100 }, await read(time)), 0);
  assert.equal(await read(), now + 2 * hour, "a restart does not believe the clock either");
  offset = 0;
  const next = createPruneTime(store, clock);
  assert.equal(await read(next), now + hour, "never ahead of the clock");
  passed += 5 * hour;
  assert.equal(await read(next), now + 6 * hour);
  offset = 20 * hour;
  await read(next);
  passed += 30 * hour;
  assert.equal(await read(next), now + 56 * hour, "after a rest it catches up with the clock");
});

test("the file stays small over many creations and deletions", { timeout: 300_000 }, async (context) => {
  const small = { days: 30, count: 100 };
  const caps = Object.fromEntries(Object.keys(defaultKeep).map((name) => [name, small])) as typeof defaultKeep;
  const brume = await createTestService("sqlite", { keep: { caps, period: 200 } });
  try {
    const { client, store } = brume;
    const rules = [...auditRows, storedKeys, endedTasks, retiredZones, ...pastClaims, endedDeliveries, retiredRows];
    const pages = async (): Promise<number> =>
      (await sql<{ page_count: number }>`pragma page_count`.execute(store.read)).rows[0]?.page_count ?? 0;
    let most = 0;
    for (let round = 0; round < 2; round++) {
      for (let each = 0; each < 110; each++) {
        const made = await client.createDomain(
          { body: { Name: `d${each}-${round}.test`, Ip: "192.0.2.1" } },
          { idempotencyKey: `k${each}-${round}` },
        );
        const Text = "x".repeat(3000);
        await client.createRecordTXT({ body: { DomainId: made.ID, Name: "t", Text } });
        await client.deleteDomain({ path: { id: made.ID } });
      }
      await store.write(async (tx) => {
        for (let row = 0; row < 600; row++) await insertEvent(tx, row, "x".repeat(10_000));
      });
      const peak = await pages();
      assert.ok(peak > 1200, `the file has grown: ${peak} pages`);
      most = Math.max(most, peak);
      const readCounts = () => Promise.all([...rules, { table: "event" as const }].map((rule) => countOf(store, rule)));
      await waitUntil(
        "few rows in each table",
        readCounts,
        (counts) => counts.every((count) => count <= small.count),
        50,
      );
      await waitUntil("a small file", pages, (count) => count <= 700, 50);
    }
    context.diagnostic(`${most} pages at most, ${await pages()} at the end`);
  } finally {
    await brume.close();
  }
});
