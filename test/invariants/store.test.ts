/** Invariants of the store that features rely on, on both databases. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import type { Reader, Store, Tx } from "../../service/src/store/db.ts";
import { flushJournals, journal, lock, prepare, StorageError } from "../../service/src/store/db.ts";
import type { DatabaseKind } from "../../service/src/store/session.ts";
import type { Database } from "../support/databases.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

/** Defines one test for each kind of database. */
function storeInvariant(
  name: string,
  prove: (store: Store, database: Database) => Promise<void>,
  kinds = databases,
): void {
  for (const kind of kinds) {
    test(`${kind}: ${name}`, async () => {
      const database = await startDatabase(kind);
      try {
        await prove(database.store, database);
      } finally {
        await database.close();
      }
    });
  }
}

const readSubjects = async (db: Reader): Promise<number[]> =>
  (await db.selectFrom("event").select("resource_id").orderBy("resource_id").execute()).map((row) => row.resource_id);

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

storeInvariant("a write returns its result, and a failed one undoes only its own part", async (store) => {
  const outcomes = await Promise.allSettled(
    range(40).map((i) =>
      store.write(async (tx) => {
        await insertEvent(tx, i);
        if (i % 2 === 1) throw new RangeError(`no ${i}`);
        return i;
      }),
    ),
  );
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.status === "fulfilled") assert.equal(outcome.value, i);
    else assert.deepEqual(outcome.reason, new RangeError(`no ${i}`));
    assert.equal(outcome.status, i % 2 === 1 ? "rejected" : "fulfilled");
  }
  assert.deepEqual(
    await readSubjects(store.read),
    range(40).filter((i) => i % 2 === 0),
  );
});

storeInvariant("a reader sees only committed state, and waits for no writer", async (store) => {
  await store.write(async (tx) => {
    await insertEvent(tx, 1);
    assert.deepEqual(await readSubjects(tx), [1]);
    assert.deepEqual(await readSubjects(store.read), []);
  });
  assert.deepEqual(await readSubjects(store.read), [1]);
});

storeInvariant("a reader cannot write", async (store) => {
  await assert.rejects(insertEvent(store.read as Tx, 1), /read-?only/);
  assert.deepEqual(await readSubjects(store.read), []);
});

storeInvariant("a failed statement fails its transaction, also if the error is caught", async (store) => {
  const failing = store.write(async (tx) => {
    const { id } = await insertEvent(tx, 1);
    await tx
      .insertInto("event")
      .values({ id, type: "", date: 0, project_id: 1, resource: "", resource_id: 2 })
      .execute()
      .catch(() => {});
    await insertEvent(tx, 3).catch(() => {});
  });
  await assert.rejects(failing, /unique/i);
  const inserted = await Promise.all([
    store.write((tx) => insertEvent(tx, 4)),
    store.write((tx) => insertEvent(tx, 5)),
  ]);
  assert.equal(new Set(inserted.map(({ id }) => id)).size, 2);
  assert.deepEqual(await readSubjects(store.read), [4, 5]);
});

storeInvariant("a transaction that has ended rejects statements", async (store) => {
  const kept: Tx[] = [];
  await store.write(async (tx) => {
    kept.push(tx);
  });
  const [tx] = kept as [Tx];
  await assert.rejects(
    store.write(() => insertEvent(tx, 1)),
    /has ended/,
  );
  await assert.rejects(insertEvent(tx, 2), /has ended/);
  assert.deepEqual(await readSubjects(store.read), []);
});

storeInvariant("a write inside a write is rejected, because it would wait for itself", async (store) => {
  await assert.rejects(
    store.write(async () => {
      await store.write(async () => {});
    }),
    /inside a write/,
  );
  await assert.rejects(
    store.write((tx) => tx.transaction().execute(async () => {})),
    /store\.write/,
  );
  // Work that a write starts may write after that write has ended.
  let later: Promise<unknown> | undefined;
  await store.write(async () => {
    later = sleep(50).then(() => store.write((tx) => insertEvent(tx, 1)));
  });
  await later;
  assert.deepEqual(await readSubjects(store.read), [1]);
});

const note = journal("event", ["type", "date", "project_id", "resource", "resource_id", "data"]);
const entry = (resource_id: number, data = "") =>
  ({ type: "test", date: 0, project_id: 1, resource: "test", resource_id, data }) as Parameters<typeof note>[1];

storeInvariant(
  "rows for a journal are stored with the rest of their write or not at all, in the order of commits",
  async (store) => {
    const outcomes = await Promise.allSettled(
      range(50).map((i) =>
        store.write(async (tx) => {
          note(tx, entry(i));
          note(tx, entry(100 + i));
          assert.equal((await readSubjects(tx)).includes(i), false, "a write does not see its own journal rows");
          note(tx, entry(200 + i));
          if (i % 10 === 9) throw new RangeError(`no ${i}`);
        }),
      ),
    );
    assert.equal(outcomes.filter(({ status }) => status === "rejected").length, 5);
    const rows = await store.read.selectFrom("event").select(["id", "resource_id"]).orderBy("id").execute();
    const subjects = rows.map((row) => row.resource_id);
    assert.deepEqual(
      subjects.toSorted((a, b) => a - b),
      range(300).filter((i) => i < 250 && i % 100 < 50 && i % 10 !== 9),
    );
    for (let at = 0; at < subjects.length; at += 3) {
      const first = subjects[at] ?? -1;
      assert.deepEqual(subjects.slice(at, at + 3), [first, first + 100, first + 200]);
    }
  },
);

storeInvariant("a row that cannot be inserted into a journal fails its own write only", async (store) => {
  const outcomes = await Promise.allSettled(
    range(20).map((i) =>
      store.write(async (tx) => {
        await insertEvent(tx, 1000 + i);
        note(tx, i === 7 ? { ...entry(i), type: null as unknown as string } : entry(i));
      }),
    ),
  );
  const refused = outcomes.flatMap((outcome, i) => (outcome.status === "rejected" ? [i] : []));
  assert.deepEqual(refused, [7]);
  const stored = range(20).filter((i) => i !== 7);
  assert.deepEqual(await readSubjects(store.read), [...stored, ...stored.map((i) => 1000 + i)]);
});

storeInvariant("a write that flushes the journals sees the rows of earlier writes", async (store) => {
  const seen = await Promise.all(
    range(30).map((i) =>
      store.write(async (tx) => {
        if (i % 10 === 9) await flushJournals(tx);
        const subjects = i % 10 === 9 ? await readSubjects(tx) : null;
        note(tx, entry(i));
        if (i === 9) await flushJournals(tx);
        return subjects;
      }),
    ),
  );
  if (store.kind === "sqlite") assert.deepEqual(seen[9], range(9), "they share a commit");
  for (const subjects of seen)
    if (subjects !== null) assert.equal(new Set(subjects).size, subjects.length, "no row is written twice");
  assert.deepEqual(await readSubjects(store.read), range(30));
  await assert.rejects(async () => flushJournals(store.read as Tx), /in a write transaction/);
});

storeInvariant("flushed rows are rolled back with their failed write", async (store) => {
  const outcomes = await Promise.allSettled(
    range(20).map((i) =>
      store.write(async (tx) => {
        note(tx, entry(i));
        if (i === 12) await flushJournals(tx);
        if (i % 7 === 5) throw new RangeError(`no ${i}`);
      }),
    ),
  );
  assert.equal(outcomes.filter(({ status }) => status === "rejected").length, 3);
  assert.deepEqual(
    await readSubjects(store.read),
    range(20).filter((i) => i % 7 !== 5),
  );
});

storeInvariant("a journal rejects rows outside of a write", async (store) => {
  assert.throws(() => note(store.read as Tx, entry(1)), /in a write transaction/);
  let kept: Tx | undefined;
  await store.write(async (tx) => {
    kept = tx;
  });
  assert.throws(() => note(kept as Tx, entry(2)), /has ended/);
  assert.deepEqual(await readSubjects(store.read), []);
});

storeInvariant("a write that waits for other work does not affect other writes", async (store) => {
  const slow = store.write(async (tx) => {
    await insertEvent(tx, 0);
    await sleep(30);
    await insertEvent(tx, 100);
    throw new Error("canceled");
  });
  // The handler is attached at once: the write may fail before the others are read.
  const refused = assert.rejects(slow, /canceled/);
  const others = range(20).map((i) => store.write((tx) => insertEvent(tx, i + 1)));
  await sleep(10);
  others.push(...range(20).map((i) => store.write((tx) => insertEvent(tx, i + 21))));
  assert.deepEqual((await readSubjects(store.read)).includes(0), false);
  await refused;
  await Promise.all(others);
  assert.deepEqual(
    await readSubjects(store.read),
    range(40).map((i) => i + 1),
  );
});

storeInvariant("writers with the same lock run one after the other", async (store, { kind, open }) => {
  const { id } = await store.write((tx) => insertEvent(tx, 0));
  const stores = kind === "sqlite" ? [store] : [store, await open()];
  const add = (at: Store): Promise<unknown> =>
    at.write(async (tx) => {
      await lock(tx, "counter");
      const { resource_id } = await tx.selectFrom("event").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
      await tx
        .updateTable("event")
        .set({ resource_id: resource_id + 1 })
        .where("id", "=", id)
        .execute();
    });
  await Promise.all(stores.flatMap((at) => range(30).map(() => add(at))));
  assert.deepEqual(await readSubjects(store.read), [stores.length * 30]);
});

storeInvariant("row locks have one notation and no effect in a store with a single writer", async (store) => {
  await store.write((tx) => insertEvent(tx, 7));
  const claimed = await store.write((tx) =>
    tx.selectFrom("event").select("resource_id").forUpdate().skipLocked().limit(1).execute(),
  );
  assert.deepEqual(claimed, [{ resource_id: 7 }]);
});

storeInvariant("values are read as they were written", async (store) => {
  const data = `"é" 𝄞 \\ ' $1 ? \n`;
  await store.write(async (tx) => {
    await insertEvent(tx, Number.MAX_SAFE_INTEGER, data);
    await insertEvent(tx, Number.MIN_SAFE_INTEGER, null);
    const key = { project_id: 1, key: "k", date: 0 };
    await tx
      .insertInto("idempotency")
      .values({ ...key, sealed: Uint8Array.of(0, 255, 10) })
      .execute();
  });
  const rows = await store.read
    .selectFrom("event")
    .select(["resource_id", "data", "parent_id"])
    .orderBy("id")
    .execute();
  assert.deepEqual(rows, [
    { resource_id: Number.MAX_SAFE_INTEGER, data, parent_id: null },
    { resource_id: Number.MIN_SAFE_INTEGER, data: null, parent_id: null },
  ]);
  assert.deepEqual(await store.read.selectFrom("idempotency").select("sealed").execute(), [
    { sealed: Uint8Array.of(0, 255, 10) },
  ]);
  const sums = await store.read
    .selectFrom("event")
    .select(({ fn, exists, selectFrom }) => [
      fn.countAll<number>().as("count"),
      fn.sum<number>("resource_id").as("sum"),
      exists(selectFrom("event").select("id")).as("some"),
    ])
    .executeTakeFirst();
  assert.deepEqual(sums, { count: 2, sum: 0, some: 1 });
});

storeInvariant("the number of changed rows is returned", async (store) => {
  const deleted = await store.write(async (tx) => {
    for (const i of range(3)) await insertEvent(tx, i);
    return tx.deleteFrom("event").where("resource_id", ">", 0).executeTakeFirst();
  });
  assert.equal(deleted.numDeletedRows, 2n);
});

const find = prepare<{ id: number; most: number }>()((db, p) =>
  db
    .selectFrom("event")
    .selectAll()
    .where("id", ">=", p("id"))
    .where("type", "=", "test")
    .orderBy("id")
    .limit(p("most")),
);
const add = prepare<{ data: string | null; subject: number }>()((db, p) =>
  db
    .insertInto("event")
    .values({ type: "test", date: 5, project_id: 1, resource: "r", resource_id: p("subject"), data: p("data") })
    .returning("id"),
);
const move = prepare<{ from: number; to: number }>()((db, p) =>
  db
    .updateTable("event")
    .set({ resource_id: p("to") })
    .where("resource_id", "=", p("from")),
);

const put = prepare<{ subject: number }>()((db, p) =>
  db
    .insertInto("event")
    .values({ type: "test", date: 0, project_id: 1, resource: "test", resource_id: p("subject"), data: "" }),
);

storeInvariant("a prepared query uses the values of each call", async (store) => {
  const ids = await store.write(async (tx) => [
    await add.first(tx, { subject: 1, data: "one" }),
    await add.first(tx, { data: null, subject: 2 }),
  ]);
  assert.deepEqual(ids, [{ id: 1 }, { id: 2 }]);
  assert.equal(await store.write((tx) => move.run(tx, { from: 2, to: 3 })), 1);
  assert.equal(await store.write((tx) => move.run(tx, { from: 2, to: 3 })), 0);
  const fluent = await store.read.selectFrom("event").selectAll().orderBy("id").execute();
  assert.deepEqual(await find.all(store.read, { id: 1, most: 9 }), fluent);
  assert.deepEqual(await find.all(store.read, { id: 1, most: 1 }), fluent.slice(0, 1));
  assert.deepEqual(await find.first(store.read, { id: 2, most: 1 }), fluent[1]);
  assert.equal(await find.first(store.read, { id: 3, most: 1 }), undefined);
  assert.deepEqual(
    await store.write(async (tx) => [await put.insert(tx, { subject: 5 }), await put.run(tx, { subject: 6 })]),
    [3, 1],
  );
});

storeInvariant("a closed store rejects writes and completes those that it accepted", async (store, { open }) => {
  const last = range(20).map((i) => store.write((tx) => insertEvent(tx, i)));
  await store.close();
  await Promise.all(last);
  await assert.rejects(
    store.write(async () => {}),
    /closed/,
  );
  assert.deepEqual(await readSubjects((await open()).read), range(20));
});

const onlyPostgres: readonly DatabaseKind[] = ["postgres"];

storeInvariant(
  "a lost connection is a StorageError, and the next write has a new one",
  async (store) => {
    const lost = store.write(async (tx) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
      await insertEvent(tx, 1);
      await store.read.selectNoFrom(sql`pg_terminate_backend(${rows[0]?.pid}::int)`.as("done")).execute();
      await insertEvent(tx, 2);
    });
    await assert.rejects(lost, StorageError);
    await store.write((tx) => insertEvent(tx, 3));
    assert.deepEqual(await readSubjects(store.read), [3]);
  },
  onlyPostgres,
);
