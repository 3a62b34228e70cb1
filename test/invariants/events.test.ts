import assert from "node:assert/strict";
import type { ObservedStore } from "../../service/src/engine/commit.ts";
import { observeCommits } from "../../service/src/engine/commit.ts";
import type { Feed, FeedOptions, NewEvent } from "../../service/src/engine/event.ts";
import { append, createFeed, eventPruner } from "../../service/src/engine/event.ts";
import { createFixtureEngine, createTestAlarm, invariant, turn } from "../support/enginefixture.ts";

const day = 24 * 3600 * 1000;

function event(more: Partial<NewEvent> = {}): NewEvent {
  return { type: "server.changed", date: 0, project: 1, resource: "server", id: 1, data: null, ...more };
}

function add(store: ObservedStore, ...events: NewEvent[]): Promise<void> {
  return store.write((tx) => append(tx, events));
}

function open(store: ObservedStore, more: Partial<FeedOptions> = {}): Feed {
  const alarm = createTestAlarm();
  return createFeed({ store, clock: alarm, alarm, log: () => {}, ...more });
}

invariant("events are stored with their change or not at all, in order", async (store) => {
  const feed = open(store);
  assert.deepEqual([await feed.oldest(), await feed.newest()], [0, 0]);
  await store.write(async (tx) => {
    await append(tx, [event({ id: 1 }), event({ id: 2 })]);
    await append(tx, []);
    await append(tx, [
      event({ id: 3, data: JSON.stringify({ ID: 3, Name: "Zürich \u2603" }), token: 7, request: "abc", parent: 9 }),
    ]);
  });
  const refused = store.write(async (tx) => {
    await append(tx, [event({ id: 4 })]);
    throw new Error("refused");
  });
  await assert.rejects(refused, /refused/);
  const rows = await feed.find({ project: 1 }, { after: 0 }, 10);
  assert.deepEqual(
    rows.map((row) => row.resource_id),
    [1, 2, 3],
  );
  assert.deepEqual(
    { ...rows[2], id: 0 },
    {
      id: 0,
      type: "server.changed",
      date: 0,
      project_id: 1,
      resource: "server",
      resource_id: 3,
      parent_id: 9,
      token_id: 7,
      request_id: "abc",
      data: '{"ID":3,"Name":"Zürich \u2603"}',
    },
  );
  assert.equal(await feed.newest(), rows[2]?.id);
  assert.equal(await feed.oldest(), rows[0]?.id);
  feed.close();
});

invariant("after an id has been read, no smaller id appears", async (store, database) => {
  const stores = [store];
  while (stores.length < 3) stores.push(database.kind === "sqlite" ? store : observeCommits(await database.open()));
  const feed = open(store);
  const seen: number[] = [];
  let writing = true;
  const read = async () => {
    while (writing) {
      for (const row of await feed.find({ project: 1 }, { after: seen.at(-1) ?? 0 }, 1000)) seen.push(row.id);
      await turn();
    }
  };
  const write = async (writer: number) => {
    for (let n = 0; n < 60; n++) {
      await stores[writer % stores.length]
        ?.write(async (tx) => {
          await append(tx, [event({ id: writer })]);
          // Other writes run in between, and roll back.
          await tx.selectFrom("event").select("id").limit(writer).execute();
          await append(tx, [event({ id: writer })]);
          if (n % 10 === 9) throw new Error("refused");
        })
        .catch((error: unknown) => assert.match(String(error), /refused/));
    }
  };
  const reading = read();
  await Promise.all(Array.from({ length: 9 }, (_, writer) => write(writer)));
  writing = false;
  await reading;
  for (const row of await feed.find({ project: 1 }, { after: seen.at(-1) ?? 0 }, 1000)) seen.push(row.id);
  const all = await store.read.selectFrom("event").select("id").orderBy("id").execute();
  assert.equal(all.length, 9 * 54 * 2);
  assert.deepEqual(
    seen,
    all.map((row) => row.id),
  );
  feed.close();
});

invariant("appending an event before other writes blocks no other transaction", async (store) => {
  const project = (name: string) => ({ name, is_blocked: 0, quotas: "{}", created: 0, labels: "{}", version: 1 });
  const { id } = await store.write((tx) =>
    tx.insertInto("project").values(project("one")).returning("id").executeTakeFirstOrThrow(),
  );
  let runs = 0;
  const rename = (name: string) => (tx: Parameters<Parameters<ObservedStore["write"]>[0]>[0]) => {
    runs++;
    return tx.updateTable("project").set({ name }).where("id", "=", id).execute();
  };
  const writers = Array.from({ length: 20 }, (_, n) =>
    store.write(async (tx) => {
      if (n % 2 === 0) await append(tx, [event({ id: n })]);
      await rename(`n${n}`)(tx);
      if (n % 2 === 1) await append(tx, [event({ id: n })]);
    }),
  );
  await Promise.all(writers);
  assert.equal(runs, 20, "no transaction had to be run again");
});

invariant("listeners are called once for several commits, and only for new events", async (store) => {
  const feed = open(store);
  let calls = 0;
  const stop = feed.subscribe(() => calls++);
  await Promise.all([add(store, event()), add(store, event()), add(store, event())]);
  await turn();
  await turn();
  assert.ok(calls >= 1 && calls <= 3);
  const before = calls;
  await assert.rejects(
    store.write(async (tx) => {
      await append(tx, [event()]);
      throw new Error("refused");
    }),
  );
  await store.write((tx) => tx.selectFrom("event").select("id").execute());
  await turn();
  assert.equal(calls, before);
  stop();
  await add(store, event());
  await turn();
  assert.equal(calls, before);
  feed.close();
});

invariant("events of another process are found by polling", async (store) => {
  const alarm = createTestAlarm();
  const feed = createFeed({ store, clock: alarm, alarm, log: () => {}, poll: 1_000 });
  const response = Promise.withResolvers<void>();
  feed.subscribe(response.resolve);
  await store.write((tx) => tx.insertInto("event").values(rowOf(event())).execute());
  alarm.pass(1_000);
  await response.promise;
  feed.close();
  assert.equal(alarm.step(), false);
});

function rowOf({ type, date, project, resource, id }: NewEvent) {
  return { type, date, project_id: project, resource, resource_id: id };
}

invariant("old events are deleted by age and by number, and ids are never used again", async (store) => {
  const now = 100 * day;
  const feed = open(store, { count: 50 });
  const dates = [...Array(30).keys()].map((n) => event({ date: n * day, id: n }));
  await add(store, ...dates, ...Array.from({ length: 40 }, (_, n) => event({ date: now - day, id: 100 + n })));
  assert.equal(await feed.prune(now), 30);
  const oldest = await feed.oldest();
  const rows = await feed.find({ project: 1 }, { after: 0 }, 1000);
  assert.deepEqual([rows.length, rows[0]?.id, rows[0]?.resource_id], [40, oldest, 100]);
  assert.equal(await feed.prune(now), 0);
  await add(store, ...Array.from({ length: 30 }, () => event({ date: now })));
  assert.equal(await feed.prune(now), 20);
  assert.equal((await feed.find({ project: 1 }, { after: 0 }, 1000)).length, 50);
  const newest = await feed.newest();
  assert.equal(await feed.prune(now + 365 * day), 49);
  assert.deepEqual([await feed.oldest(), await feed.newest()], [newest, newest]);
  await add(store, event({ date: now }));
  assert.ok((await feed.newest()) > newest);
  feed.close();
});

invariant("a reconciler deletes many old events in small transactions", async (store) => {
  const alarm = createTestAlarm();
  let writes = 0;
  const counting: ObservedStore = {
    ...store,
    write: (work) => {
      writes++;
      return store.write(work);
    },
  };
  const feed = createFeed({ store: counting, clock: alarm, alarm, log: () => {} });
  await add(store, ...Array.from({ length: 1_250 }, () => event()), event({ date: alarm.now() }));
  const engine = createFixtureEngine(store, alarm, {
    reconcilers: [eventPruner(feed, { read: async () => alarm.now() }, 60_000)],
  });
  engine.run();
  await engine.idle();
  assert.equal(writes, 3);
  assert.equal((await feed.find({ project: 1 }, { after: 0 }, 10)).length, 1);
  await engine.drain();
  feed.close();
});

invariant("events that are still needed are kept, up to twice the number", async (store) => {
  await add(store, ...Array.from({ length: 30 }, (_, id) => event({ id })));
  const ids = (await store.read.selectFrom("event").select("id").orderBy("id").execute()).map(({ id }) => id);
  let taken: number | null = ids[14] ?? 0;
  const feed = open(store, { count: 10, taken: async () => taken });
  const left = async () => (await store.read.selectFrom("event").select("id").execute()).length;
  await feed.prune(0);
  assert.equal(await left(), 15, "all behind the last that was taken");
  taken = ids[2] ?? 0;
  await feed.prune(0);
  assert.equal(await left(), 15);
  await add(store, ...Array.from({ length: 10 }, (_, id) => event({ id })));
  await feed.prune(0);
  assert.equal(await left(), 20, "twice as many as may be kept");
  taken = null;
  await feed.prune(0);
  assert.equal(await left(), 10);
  feed.close();
});
