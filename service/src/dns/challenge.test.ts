/** When challenges count as served: which secondaries are waited for, and what the signal of an order ends. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { type Database, startDatabase } from "../../../test/support/databases.ts";
import { ensureFirst } from "../account/first.ts";
import type { SecondaryStatus } from "../drivers/nameserver/interface.ts";
import { type ChallengeOptions, createChallengeRecords } from "./challenge.ts";

const clock = { now: () => 1, steady: () => 1 };
const challenges = ["a", "b"].map((name) => ({ name: `${name}.proven.test`, value: name }));

let database: Database;
beforeEach(async () => {
  database = await startDatabase("sqlite");
  await ensureFirst(database.store, clock, "0".repeat(64));
  await database.store.write(async (tx) => {
    const name = { name: "proven.test", ascii: "proven.test", subtree: "test.proven." };
    const counters = { serial: 1, record_count: 0, version: 1, is_delegate: 0, created: 0 };
    await tx
      .insertInto("domain")
      .values({ id: 1, project_id: 1, labels: "{}", ...name, ...counters })
      .execute();
  });
});
afterEach(() => database.close());

/** Creates the presenter. `observe` returns the secondaries; `published` is called with each serial. */
function create(observe: () => readonly SecondaryStatus[], published: (serial: number) => void = () => {}) {
  let served = 0;
  const zones: ChallengeOptions["zones"] = {
    served: () => served,
    async publish({ serial }) {
      served = serial;
      published(serial);
    },
  };
  const status = { ready: true, address: "", detail: "", zones: [], p99: 0 };
  const nameserver = { observe: async () => ({ ...status, secondaries: observe() }) };
  return createChallengeRecords({ store: database.store, clock, zones, nameserver, nameServers: ["ns.test"] });
}

const secondary = (more: Partial<SecondaryStatus>): SecondaryStatus => ({
  address: "192.0.2.1:53",
  reachable: true,
  behind: 0,
  lag: 0,
  serials: new Map(),
  ...more,
});

const countRecords = async (): Promise<number> =>
  (await database.store.read.selectFrom("record").select("id").execute()).length;

test("a secondary that does not get the zone is not waited for", async () => {
  let observed = 0;
  const { present } = create(() => {
    observed += 1;
    return [secondary({})];
  });
  await present(challenges, new AbortController().signal);
  assert.deepEqual([observed, await countRecords()], [1, 2]);
});

test("a secondary that is behind is waited for once, after all records are created", async () => {
  let last = 0;
  const counts: number[] = [];
  const { present } = create(
    () => {
      counts.push(last);
      // The first observation finds it behind.
      return [
        secondary(counts.length === 1 ? { behind: 1 } : { behind: 1, serials: new Map([["proven.test", last]]) }),
      ];
    },
    (serial) => {
      last = serial;
    },
  );
  await present(challenges, new AbortController().signal);
  assert.deepEqual(counts, [last, last]);
});

test("after its signal, an order creates no further record and no longer waits", async () => {
  const order = new AbortController();
  const { present, remove } = create(
    () => [secondary({ behind: 1 })],
    () => order.abort(),
  );
  await assert.rejects(present(challenges, order.signal), { name: "AbortError" });
  assert.equal(await countRecords(), 1);
  await remove(challenges.map(({ name }) => name));
  assert.equal(await countRecords(), 0);

  const waiting = new AbortController();
  const other = create(() => {
    waiting.abort();
    return [secondary({ behind: 1 })];
  });
  await assert.rejects(other.present(challenges, waiting.signal), { name: "AbortError" });
});
