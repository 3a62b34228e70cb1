/** The zone publisher alone, on both databases: what it serves after changes of this process and of other processes. */
import assert from "node:assert/strict";
import { ensureFirst } from "../../service/src/account/first.ts";
import { type Log, silentLog } from "../../service/src/base/log.ts";
import { fullZone } from "../../service/src/dns/apply.ts";
import { createZonePublisher, type ZonePublisherOptions } from "../../service/src/dns/publisher.ts";
import { findByNames } from "../../service/src/dns/table.ts";
import { readAllZones } from "../../service/src/dns/zonesource.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { createSim } from "../../service/src/drivers/nameserver/sim/sim.ts";
import { append } from "../../service/src/engine/event.ts";
import { StorageError, type Store } from "../../service/src/store/db.ts";
import { sessionOf } from "../../service/src/store/session.ts";
import { invariant } from "../support/enginefixture.ts";

const clock = { now: () => Date.UTC(2026, 10, 20) };
const nameServers = ["ns1.brume.internal"];
/** Longer than any test: the publisher compares zones only when the test calls it. */
const never = { all: 3_600_000, changed: 3_600_000, retry: 3_600_000 };

/** Creates the commits of another process, of which the publisher is not notified. */
function createOther(store: Store) {
  const eventOf = (type: string, id: number) => ({
    type,
    date: clock.now(),
    project: 1,
    resource: "domain",
    id,
    data: null,
  });
  return {
    create: (ascii: string, isTold = true): Promise<number> =>
      store.write(async (tx) => {
        const values = { name: ascii, ascii, subtree: `${ascii.split(".").reverse().join(".")}.` };
        const { id } = await tx
          .insertInto("domain")
          .values({
            ...values,
            project_id: 1,
            serial: 1,
            record_count: 0,
            is_delegate: 0,
            created: 0,
            labels: "{}",
            version: 1,
          })
          .returning("id")
          .executeTakeFirstOrThrow();
        if (isTold) await append(tx, [eventOf("domain.created", id)]);
        return id;
      }),
    raise: (id: number, serial: number, isTold = true): Promise<void> =>
      store.write(async (tx) => {
        await tx.updateTable("domain").set({ serial }).where("id", "=", id).execute();
        const event = { ...eventOf("record.created", 1), resource: "record", parent: id };
        if (isTold) await append(tx, [event]);
      }),
    remove: (id: number): Promise<void> =>
      store.write(async (tx) => {
        await tx.deleteFrom("domain").where("id", "=", id).execute();
        await append(tx, [eventOf("domain.deleted", id)]);
      }),
  };
}

/** Calls `onQuery` with the values of each query of records. Returns the function that ends this. */
function watchRecords(store: Store, onQuery: (values: readonly unknown[]) => void): () => void {
  const session = sessionOf(store.read);
  const { all } = session;
  const watched: typeof all = (sql, values, name) => {
    if (/ from [`"]record[`"]/.test(sql)) onQuery(values);
    return all.call(session, sql, values, name);
  };
  Object.assign(session, { all: watched });
  return () => void Object.assign(session, { all });
}

async function open(store: Store, more: Partial<ZonePublisherOptions> = {}) {
  await ensureFirst(store, clock, "0".repeat(64));
  const nameserver = createSim(clock.now);
  const zones = createZonePublisher({ store, nameserver, nameServers, log: silentLog, periods: never, ...more });
  const close = async (): Promise<void> => {
    zones.close();
    await nameserver.close();
  };
  return { zones, nameserver, other: createOther(store), close };
}

invariant("all zones are served after the start", async (store) => {
  await ensureFirst(store, clock, "0".repeat(64));
  const other = createOther(store);
  for (let i = 0; i < 5; i++) await other.create(`z${i}.example`);
  const { zones, close } = await open(store);
  assert.notEqual(zones.loadProblem(), null);
  await zones.loaded;
  assert.equal(zones.loadProblem(), null);
  for (let i = 0; i < 5; i++) assert.equal(zones.served(`z${i}.example`), 1);
  await close();
});

invariant("changes of other processes are found by event ids, and no other zone is read", async (store) => {
  const { zones, other, close } = await open(store);
  await zones.loaded;
  const first = await other.create("first.example");
  const second = await other.create("second.example");
  const silent = await other.create("silent.example", false);
  await zones.reconcileChanged();
  const served = () => ["first", "second", "silent"].map((name) => zones.served(`${name}.example`));
  assert.deepEqual(served(), [1, 1, 0]);
  await other.raise(first, 7);
  await other.raise(silent, 7, false);
  await zones.reconcileChanged();
  assert.deepEqual(served(), [7, 1, 0]);
  await other.remove(second);
  await zones.reconcileChanged();
  assert.deepEqual(served(), [7, 0, 0]);
  const before = zones.revision();
  await zones.reconcileChanged();
  assert.equal(zones.revision(), before, "nothing has changed");
  await zones.reconcile();
  assert.deepEqual(served(), [7, 0, 7]);
  await close();
});

invariant("a domain that is deleted and created again is served as the new one", async (store) => {
  const { zones, other, close } = await open(store);
  await zones.loaded;
  await other.remove(await other.create("again.example"));
  await other.raise(await other.create("again.example"), 9);
  await zones.reconcileChanged();
  assert.equal(zones.served("again.example"), 9);
  await close();
});

invariant("an image read before a zone was withdrawn does not bring it back", async (store) => {
  const { zones, other, close } = await open(store);
  await zones.loaded;
  await other.create("gone.example");
  await zones.reconcileChanged();
  await zones.withdraw("gone.example", 1, 10_000);
  assert.equal(zones.served("gone.example"), 0);
  await zones.reconcile();
  assert.equal(zones.served("gone.example"), 0);
  await close();
});

invariant("a failed publication is retried until the zone is served", async (store) => {
  const sim = createSim(clock.now);
  let isBroken = false;
  let resolvePublished = (): void => {};
  const published = new Promise<void>((resolve) => {
    resolvePublished = resolve;
  });
  const nameserver: Nameserver = {
    ...sim,
    async publish(changes) {
      if (isBroken) {
        isBroken = false;
        throw new Error("the name server is not running: test");
      }
      const serials = await sim.publish(changes);
      if (changes.length > 0) resolvePublished();
      return serials;
    },
  };
  const { zones, other, close } = await open(store, { nameserver, periods: { ...never, retry: 1 } });
  await zones.loaded;
  await other.create("retry.example", false);
  const [domain] = await findByNames(store.read, ["retry.example"]);
  assert.ok(domain !== undefined);
  isBroken = true;
  await zones.publish(fullZone(domain, [], nameServers), 10_000);
  await published;
  await zones.reconcile();
  assert.equal(zones.served("retry.example"), 1);
  await close();
  await sim.close();
});

invariant("a publication that fails during a comparison is retried after it", async (store) => {
  const sim = createSim(clock.now);
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const published = Promise.withResolvers<void>();
  const broken = new Set(["slow.example", "retry.example"]);
  const nameserver: Nameserver = {
    ...sim,
    async publish(changes) {
      const [zone = ""] = changes.map((one) => one.zone);
      if (broken.delete(zone)) throw new Error("the name server is not running: test");
      if (zone === "slow.example") {
        begun.resolve();
        await end.promise;
      }
      const serials = await sim.publish(changes);
      if (zone === "retry.example") published.resolve();
      return serials;
    },
  };
  const { zones, other, close } = await open(store, { nameserver, periods: { ...never, retry: 1 } });
  const fail = async (name: string): Promise<void> => {
    await other.create(name, false);
    const [domain] = await findByNames(store.read, [name]);
    await zones.publish(fullZone(domain ?? assert.fail(), [], nameServers), 10_000);
  };
  await zones.loaded;
  // The first failure starts the comparison.
  await fail("slow.example");
  await begun.promise;
  await fail("retry.example");
  end.resolve();
  await published.promise;
  await close();
  await sim.close();
});

invariant("a zone that cannot be encoded does not prevent others from being served", async (store) => {
  await ensureFirst(store, clock, "0".repeat(64));
  const other = createOther(store);
  await other.create("one.example");
  const id = await other.create("two.example");
  await store.write(async (tx) => {
    const row = {
      type: "A",
      owner: "@",
      node: "",
      ttl: 60,
      value: "no address",
      serial: 1,
      created: 0,
      labels: "{}",
      version: 1,
    };
    await tx
      .insertInto("record")
      .values({ ...row, domain_id: id })
      .execute();
  });
  await other.create("three.example");
  const lines: string[] = [];
  const { zones, close } = await open(store, { log: (_level, message) => lines.push(message) });
  await zones.loaded;
  assert.deepEqual(
    ["one", "two", "three"].map((name) => zones.served(`${name}.example`)),
    [1, 0, 1],
  );
  assert.deepEqual(lines, ["Zone not served: it cannot be encoded."]);
  await close();
});

invariant("a zone whose records are damaged does not end a comparison, and is logged once", async (store) => {
  const lines: string[] = [];
  const log: Log = (level, message) => void lines.push(`${level}: ${message}`);
  const { zones, other, close } = await open(store, { log });
  await zones.loaded;
  const names = ["damaged.example", "later.example", "deleted.example"];
  const [damaged = 0, later = 0, deleted = 0] = await Promise.all(names.map((name) => other.create(name)));
  await zones.reconcile();
  await other.raise(damaged, 2);
  await other.raise(later, 2);
  await other.remove(deleted);
  const restore = watchRecords(store, (values) => {
    if (values.includes(damaged)) throw new StorageError("a page is damaged", { isDamage: true });
  });
  for (let times = 0; times < 2; times++) {
    await zones.reconcile();
    assert.deepEqual(names.map(zones.served), [1, 2, 0]);
  }
  assert.deepEqual(lines, ["error: A changed zone is not served: its records cannot be read."]);
  restore();
  await zones.reconcile();
  assert.equal(zones.served("damaged.example"), 2);
  await close();
});

invariant("records of zones that are left out are not read", async (store) => {
  await ensureFirst(store, clock, "0".repeat(64));
  const other = createOther(store);
  const ids: number[] = [];
  for (let i = 0; i < 5; i++) ids.push(await other.create(`z${i}.example`));
  const ranges: (readonly unknown[])[] = [];
  const restore = watchRecords(store, (values) => void ranges.push(values));
  const without = new Set([ids[1] ?? 0, ids[2] ?? 0]);
  const taken: string[] = [];
  await readAllZones(store.read, { nameServers, log: silentLog, without }, async (zones) => {
    taken.push(...zones.map(({ zone }) => zone));
  });
  restore();
  assert.deepEqual(taken, ["z0.example", "z3.example", "z4.example"]);
  assert.deepEqual(ranges, [
    [ids[0], ids[0]],
    [ids[3], ids[4]],
  ]);
});

invariant("a comparison reads no zone whose steps are under way", async (store) => {
  const read: string[] = [];
  const { zones, nameserver, other, close } = await open(store);
  await zones.loaded;
  const id = await other.create("busy.example");
  await zones.reconcile();
  const publish = nameserver.publish.bind(nameserver);
  nameserver.publish = (changes) => {
    for (const { zone, base } of changes) if (base === null) read.push(zone);
    return publish(changes);
  };
  const [domain] = await findByNames(store.read, ["busy.example"]);
  const whole = fullZone({ ...(domain ?? assert.fail()), id }, [], nameServers);
  let serial = 1;
  let isOver = false;
  const changing = (async () => {
    for (; !isOver; serial += 1) {
      await other.raise(id, serial + 1);
      await zones.publish({ ...whole, base: serial, serial: serial + 1, sets: [] }, 1000);
    }
  })();
  for (let times = 0; times < 10; times++) {
    await zones.reconcile();
    await zones.reconcileChanged();
  }
  isOver = true;
  await changing;
  assert.deepEqual(read, []);
  await other.raise(id, serial + 5);
  await zones.reconcile();
  assert.deepEqual(read, ["busy.example"], "a zone that is not served is read");
  await close();
});
