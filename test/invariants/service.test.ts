/** Reconciler invariants for the reconcilers of the running service, and their names, which are stored in rows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { recordSpecs } from "@brume/api/record/types.ts";
import { ensureFirst } from "../../service/src/account/first.ts";
import { auditRows } from "../../service/src/account/table.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { claimReconciler } from "../../service/src/dns/claimreconciler.ts";
import { automaticSoa } from "../../service/src/dns/model/served.ts";
import { createZonePublisher } from "../../service/src/dns/publisher.ts";
import { delegationReconciler, historyPruner } from "../../service/src/dns/reconciler.ts";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import { createSim } from "../../service/src/drivers/nameserver/sim/sim.ts";
import type { Reconciler } from "../../service/src/engine/flow.ts";
import { pruneReconciler } from "../../service/src/engine/prune.ts";
import type { Store } from "../../service/src/store/db.ts";
import { testReconciler } from "./reconciler-invariants.ts";

const day = 86_400_000;
const clock = { now: () => Date.UTC(2026, 10, 20) };
const long = clock.now() - 400 * day;
const nameServers = ["ns1.brume.internal"];
let names = 0;

/** Counts the runs that wrote a row. */
function counted(reconciler: Reconciler, count: () => void): Reconciler {
  return {
    ...reconciler,
    async run(run) {
      const kept = await reconciler.run(run);
      if (kept?.save !== undefined) count();
      return kept;
    },
  };
}

async function insertDomain(store: Store): Promise<{ id: number; ascii: string }> {
  await ensureFirst(store, clock, "0".repeat(64));
  const ascii = `law-${++names}.example`;
  return store.write((tx) =>
    tx
      .insertInto("domain")
      .values({
        project_id: 1,
        name: ascii,
        ascii,
        subtree: `example.law-${names}.`,
        serial: 1,
        record_count: 0,
        is_delegate: 0,
        created: 0,
        labels: "{}",
        version: 1,
      })
      .returning(["id", "ascii"])
      .executeTakeFirstOrThrow(),
  );
}

testReconciler("dns.delegation", async (store) => {
  const domain = await insertDomain(store);
  // The parent, and for the resolver all that is above it.
  const parent = await createBuiltin({
    host: "127.0.0.1",
    port: 0,
    rateLimit: 0,
    transfer: { addresses: [], keys: [], notify: [] },
    log: silentLog,
  });
  const soa = automaticSoa("example", nameServers);
  const ns = (owner: string, target: string) => ({ owner, type: recordSpecs.NS, ttl: 60, data: [[target]] });
  const address = { owner: "ns.example", type: recordSpecs.A, ttl: 60, data: [["127.0.0.1"]] };
  const sets = [ns("example", "ns.example"), address, ns(domain.ascii, nameServers[0] as string)];
  await parent.publish([{ zone: "example", base: null, serial: 1, soa, sets }]);
  let changes = 0;
  const at = (await parent.observe()).address;
  const reconciler = delegationReconciler(store, clock, {
    nameServers,
    resolvers: [at],
    port: Number(at.split(":")[1]),
  });
  return {
    reconciler: counted(reconciler, () => {
      changes += 1;
    }),
    subject: domain.id,
    spec: async () => {},
    async observe() {
      const row = await store.read
        .selectFrom("domain")
        .select("is_delegate")
        .where("id", "=", domain.id)
        .executeTakeFirst();
      return row?.is_delegate;
    },
    changes: () => changes,
    close: () => parent.close(),
  };
});

testReconciler("dns.claim", async (store) => {
  const domain = await insertDomain(store);
  const secret = "0".repeat(32);
  const { id: project, claim } = await store.write(async (tx) => {
    const made = await tx
      .insertInto("project")
      .values({ name: `claims ${domain.ascii}`, is_blocked: 0, quotas: "{}", created: 0, labels: "{}", version: 1 })
      .returning("id")
      .executeTakeFirstOrThrow();
    await tx
      .insertInto("record")
      .values({
        domain_id: domain.id,
        type: "TXT",
        owner: "_brume-challenge",
        node: "_brume-challenge.",
        ttl: 60,
        value: `brume-claim=${secret}`,
        serial: 1,
        created: 0,
        labels: "{}",
        version: 1,
      })
      .execute();
    const inserted = await tx
      .insertInto("domain_claim")
      .values({
        project_id: made.id,
        token_id: 1,
        name: domain.ascii,
        ascii: domain.ascii,
        secret,
        state: "Pending",
        detail: "",
        created: 0,
        expires: clock.now() + day,
        labels: "{}",
        version: 1,
      })
      .returning("id")
      .executeTakeFirstOrThrow();
    return { id: made.id, claim: inserted.id };
  });
  const nameserver = createSim(clock.now);
  const zones = createZonePublisher({ store, nameserver, nameServers, log: silentLog });
  const delegation = delegationReconciler(store, clock, { nameServers, resolvers: [] });
  const reconciler = claimReconciler({ store, clock, zones, nameServers, resolvers: [], delegation });
  const state = async () => {
    const row = await store.read
      .selectFrom("domain_claim")
      .select("state")
      .where("id", "=", claim)
      .executeTakeFirstOrThrow();
    return row.state;
  };
  let changes = 0;
  return {
    reconciler: {
      ...reconciler,
      async run(run) {
        const before = await state();
        const kept = await reconciler.run(run);
        if ((await state()) !== before) changes += 1;
        return kept;
      },
    },
    subject: claim,
    spec: async () => {},
    async observe() {
      const owner = await store.read
        .selectFrom("domain")
        .select("project_id")
        .where("ascii", "=", domain.ascii)
        .executeTakeFirst();
      const lost = await store.read
        .selectFrom("withdrawn_domain")
        .select("record_count")
        .where("id", "=", domain.id)
        .execute();
      return { state: await state(), isMine: owner?.project_id === project, lost };
    },
    changes: () => changes,
    async close() {
      zones.close();
      await nameserver.close();
    },
  };
});

const time = { read: async () => clock.now(), save: async () => {} };
const caps = { audit: { days: 365, count: 1000 }, refusal: { days: 90, count: 1000 } };

testReconciler("dns.history", async (store) => {
  const domain = await insertDomain(store);
  const left = async (): Promise<number[]> => {
    const rows = await store.read
      .selectFrom("domain_version")
      .select("serial")
      .where("domain_id", "=", domain.id)
      .orderBy("serial")
      .execute();
    return rows.map((row) => row.serial);
  };
  const total = 1010;
  let present = total;
  let changes = 0;
  const reconciler = historyPruner(store, { time, cap: { days: 90, count: 10_000 }, period: 60_000 });
  return {
    reconciler: {
      ...reconciler,
      async run(run) {
        const kept = await reconciler.run(run);
        const now = (await left()).length;
        if (now !== present) changes += 1;
        present = now;
        return kept;
      },
    },
    subject: 0,
    async spec(tx) {
      const rows = Array.from({ length: total }, (_, i) => ({
        domain_id: domain.id,
        serial: i + 1,
        // The newest of the old and all of the young are kept.
        date: i % 2 === 0 ? long : clock.now(),
        changes: "[]",
      }));
      for (let from = 0; from < total; from += 200)
        await tx
          .insertInto("domain_version")
          .values(rows.slice(from, from + 200))
          .execute();
    },
    observe: async () => {
      const serials = await left();
      return [serials.length, serials.slice(0, 7)];
    },
    changes: () => changes,
  };
});

testReconciler("service.prune", async (store) => {
  const subject = 0;
  const token = ++names;
  // Rows are in the order of time, so those of the previous stage must not precede the old ones of this stage.
  await store.write((tx) => tx.deleteFrom("audit").execute());
  const count = async (): Promise<number> => {
    const row = await store.read
      .selectFrom("audit")
      .select((e) => e.fn.countAll<number>().as("count"))
      .where("token_id", "=", token)
      .executeTakeFirstOrThrow();
    return row.count;
  };
  let changes = 0;
  const reconciler = pruneReconciler({ store, time, prunables: auditRows, caps, period: 60_000 });
  return {
    reconciler: {
      ...reconciler,
      async run(run) {
        const before = await count();
        const kept = await reconciler.run(run);
        if ((await count()) !== before) changes += 1;
        return kept;
      },
    },
    subject,
    async spec(tx) {
      const row = {
        project_id: 1,
        token_id: token,
        token_name: "t",
        address: "",
        operation: "x",
        status: 200,
        request_id: "r",
      };
      for (const date of [long, long, clock.now()])
        await tx
          .insertInto("audit")
          .values({ ...row, date })
          .execute();
    },
    observe: count,
    changes: () => changes,
  };
});

test("names of reconcilers never change", () => {
  const store = {} as Store;
  const reconcilers = [
    delegationReconciler(store, clock, { nameServers: [], resolvers: [] }),
    historyPruner(store, { time, cap: { days: 90, count: 1 }, period: 1 }),
    pruneReconciler({ store, time, prunables: auditRows, caps, period: 1 }),
  ];
  assert.deepEqual(
    reconcilers.map(({ name, subject }) => `${subject} ${name}`),
    ["domain dns.delegation", "history dns.history", "service service.prune"],
  );
});
