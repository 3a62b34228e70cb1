/** Writes of a batch: one that fails undoes only its own part, and statements whose results are not awaited fail their commit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Batch, inBatch, prepare, reserveIds, type Store } from "../../service/src/store/db.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { listSent } from "../support/roundtrips.ts";
import { insertEvent } from "../support/writer.ts";

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

const put = prepare<{ id: number; of: number }>()((db, p) =>
  db
    .insertInto("event")
    .values({ id: p("id"), type: "test", date: 0, project_id: 1, resource: "test", resource_id: p("of"), data: null }),
);

/** Stores an event for each input, except for those above 90, which their writes store themselves. */
const events: Batch<number, string> = {
  async run(tx, inputs) {
    const ids = await reserveIds(tx, "event", inputs.length);
    return inputs.map((of, index) => {
      if (of > 90) return undefined;
      put.send(tx, { id: ids[index] ?? 0, of });
      return `batch ${of}`;
    });
  },
};

const writeOne = (store: Store, of: number, fails = false): Promise<string> =>
  store.write(
    async (tx, output?: string) => {
      if (output === undefined) await insertEvent(tx, of, null);
      if (fails) throw new RangeError(`no ${of}`);
      return output ?? `alone ${of}`;
    },
    inBatch(events, of),
  );

const stored = async (store: Store): Promise<number[]> =>
  (await store.read.selectFrom("event").select("resource_id").orderBy("resource_id").execute()).map(
    (row) => row.resource_id,
  );

for (const kind of databases) {
  const prove = (name: string, act: (store: Store) => Promise<void>) =>
    void test(`${kind}: ${name}`, async () => {
      const database = await startDatabase(kind);
      try {
        await act(database.store);
      } finally {
        await database.close();
      }
    });

  prove("all writes of a batch are stored once, with or without its output", async (store) => {
    const of = [...range(30), 91, 92];
    const results = await Promise.all(of.map((each) => writeOne(store, each)));
    assert.deepEqual(
      results.map((result) => Number(result.split(" ")[1])),
      of,
    );
    assert.deepEqual(results.slice(-2), ["alone 91", "alone 92"]);
    if (kind === "postgres") assert.ok(results.includes("batch 29"));
    assert.deepEqual(await stored(store), of);
  });

  prove("a write that fails after its batch undoes only itself", async (store) => {
    const results = await Promise.allSettled(range(20).map((of) => writeOne(store, of, of === 7)));
    for (const [of, result] of results.entries()) {
      if (of === 7) assert.deepEqual(result, { status: "rejected", reason: new RangeError("no 7") });
      else assert.equal(result.status, "fulfilled");
    }
    assert.deepEqual(
      await stored(store),
      range(20).filter((of) => of !== 7),
    );
  });

  prove("a batch that fails is not stored, and each write runs by itself", async (store) => {
    const broken: Batch<number, string> = {
      async run(tx, inputs) {
        await events.run(tx, inputs);
        throw new RangeError("broken");
      },
    };
    const write = (of: number) =>
      store.write(
        async (tx, output?: string) => {
          if (output === undefined) await insertEvent(tx, of, null);
        },
        inBatch(broken, of),
      );
    await Promise.all(range(5).map(write));
    assert.deepEqual(await stored(store), range(5));
  });

  prove("a statement that is not awaited fails its write, and no other one", async (store) => {
    await writeOne(store, 0);
    const [row] = await store.read.selectFrom("event").select("id").execute();
    const clash = () => store.write(async (tx) => put.send(tx, { id: row?.id ?? 0, of: 50 }));
    await assert.rejects(clash(), /unique|duplicate/i);
    const results = await Promise.allSettled([writeOne(store, 1), clash(), writeOne(store, 2)]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    assert.deepEqual(await stored(store), [0, 1, 2]);
  });

  prove("writes that follow each other closely are stored in their order", async (store) => {
    const ended: number[] = [];
    const write = async (of: number) => {
      // One of them fails, perhaps before the last one starts.
      await writeOne(store, of, of === 11).then(
        () => ended.push(of),
        () => {},
      );
    };
    const all: Promise<void>[] = [];
    for (const of of range(30)) {
      all.push(write(of));
      await new Promise((resolve) => void setImmediate(resolve));
    }
    await Promise.all(all);
    assert.deepEqual(
      ended,
      range(30).filter((of) => of !== 11),
    );
    assert.deepEqual(await stored(store), ended);
  });
}

test("postgres: the round trips of a commit do not grow with the writes of a batch", async () => {
  const database = await startDatabase("postgres");
  try {
    const sent = await listSent("event", () => Promise.all(range(40).map((of) => writeOne(database.store, of))));
    for (const { trips, texts } of sent) assert.ok(trips <= 2, `${trips} round trips: ${texts.join("; ")}`);
  } finally {
    await database.close();
  }
});
