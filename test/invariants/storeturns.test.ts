/** Writes leave turns of the event loop to reads, on both databases. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { journal, type Reader, rest, type Store } from "../../service/src/store/db.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { waitUntil } from "../support/waituntil.ts";
import { insertEvent } from "../support/writer.ts";

function turnInvariant(name: string, prove: (store: Store) => Promise<void>): void {
  for (const kind of databases)
    test(`${kind}: ${name}`, async () => {
      const database = await startDatabase(kind);
      try {
        await prove(database.store);
      } finally {
        await database.close();
      }
    });
}

const readSubjects = async (db: Reader): Promise<number[]> =>
  (await db.selectFrom("event").select("resource_id").orderBy("resource_id").execute()).map((row) => row.resource_id);

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Keeps the thread busy for more than half of a slice. */
function work(): void {
  for (const until = performance.now() + 3; performance.now() < until; );
}

turnInvariant("many writes leave turns of the event loop to reads", async (store) => {
  let written = 0;
  let most = 0;
  let isOver = false;
  const count = (): void => {
    most = Math.max(most, written);
    written = 0;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(
    range(20).map((i) =>
      store.write(async (tx) => {
        await insertEvent(tx, i);
        work();
        written += 1;
      }),
    ),
  );
  isOver = true;
  assert.ok(most <= 3, `${most} writes in one turn`);
  assert.deepEqual(await readSubjects(store.read), range(20));
});

turnInvariant("a long write that rests leaves turns to reads, which see nothing of it", async (store) => {
  const seen: number[][] = [];
  let isOver = false;
  const reading = (async () => {
    for (; !isOver; await new Promise((resolve) => void setImmediate(resolve)))
      seen.push(await readSubjects(store.read));
  })();
  await store.write(async (tx) => {
    for (const i of range(10)) {
      await insertEvent(tx, i);
      work();
      await rest(tx);
    }
    // A read from PostgreSQL takes as long as its process needs.
    if (store.kind === "postgres")
      await waitUntil(
        "four reads",
        () => seen,
        ({ length }) => length > 3,
      );
    isOver = true;
  });
  await reading;
  assert.ok(seen.length > 3, `${seen.length} reads`);
  assert.ok(seen.slice(0, -1).every((subjects) => subjects.length === 0));
  assert.deepEqual(await readSubjects(store.read), range(10));
});

test("sqlite: the journal rows of a long write leave turns to reads", async () => {
  const database = await startDatabase("sqlite");
  const put = journal("event", ["type", "date", "project_id", "resource", "resource_id", "data"]);
  const row = { type: "test", date: 0, project_id: 1, resource: "test", data: "x".repeat(2000) };
  const others = { parent_id: null, token_id: null, request_id: null };
  try {
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    await database.store.write(async (tx) => {
      for (const resource_id of range(20_000)) put(tx, { ...row, ...others, resource_id });
      setImmediate(count);
    });
    isOver = true;
    // The commit itself waits for the disk in other turns, but SQLite writes 40 MB before it.
    const rows = await readSubjects(database.store.read);
    assert.equal(rows.length, 20_000);
    assert.ok(turns > 5, `${turns} turns`);
  } finally {
    await database.close();
  }
});
