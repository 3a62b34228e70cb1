/** Invariants of the queries over the audit: they find what the filter describes, and use an index for each filter. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type AuditFilter, countAudit, listAudit, putAudit } from "../../service/src/account/table.ts";
import type { Store } from "../../service/src/store/db.ts";
import { startDatabase } from "../support/databases.ts";
import { invariant } from "../support/enginefixture.ts";
import { explainQueries } from "../support/queryplan.ts";
import { type Random, withSeed } from "../support/random.ts";

const stored = 500;
const operations = ["createServer", "createDomain", "deleteServer"];

const rowOf = (random: Random, index: number) => ({
  project_id: random.below(3),
  date: index,
  token_id: 1 + random.below(3),
  token_name: "name",
  address: "192.0.2.1",
  operation: random.pick(operations),
  resource: random.pick(["server", "domain", null]),
  resource_id: 1 + random.below(3),
  status: 200,
  request_id: String(index),
  before: null,
  after: null,
  count: 1,
  last_date: null,
});

const fill = (store: Store, random: Random): Promise<void> =>
  store.write(async (tx) => {
    for (let index = 0; index < stored; index++) putAudit(tx, rowOf(random, index));
  });

function randomFilter(random: Random): AuditFilter {
  return {
    project: 1 + random.below(2),
    ...(random.chance(30) && { token: 1 + random.below(3) }),
    ...(random.chance(30) && { resource: "server" }),
    ...(random.chance(30) && { resource: "domain", resourceId: 1 + random.below(3) }),
    ...(random.chance(30) && { operations: random.pick([["createServer", "createDomain"], ["deleteServer"]]) }),
    ...(random.chance(30) && { from: random.below(stored) }),
    ...(random.chance(30) && { to: random.below(stored) }),
  };
}

invariant("a query returns the newest entries that fit its filter, and counts them up to a limit", async (store) => {
  await withSeed(async (random) => {
    await fill(store, random);
    const rows = await store.read.selectFrom("audit").selectAll().orderBy("id", "desc").execute();
    for (let run = 0; run < 60; run++) {
      const filter = randomFilter(random);
      const { operations: names, from = 0, to = stored } = filter;
      const limit = random.pick([1, 10, stored]);
      const before = random.chance(50) ? null : 1 + random.below(stored);
      const all = rows.filter(
        (row) =>
          [filter.project, 0].includes(row.project_id) &&
          [undefined, row.token_id].includes(filter.token) &&
          [undefined, row.resource].includes(filter.resource) &&
          [undefined, row.resource_id].includes(filter.resourceId) &&
          (names === undefined || names.includes(row.operation)) &&
          row.date >= from &&
          row.date < to,
      );
      const query = JSON.stringify({ filter, before, limit });
      const expected = all.filter(({ id }) => before === null || id < before).slice(0, limit);
      assert.deepEqual(await listAudit(store.read, filter, before, limit), expected, query);
      assert.equal(await countAudit(store.read, filter, limit), Math.min(all.length, limit), query);
    }
  });
});

test("each filter of the audit uses an index of its columns", async () => {
  const database = await startDatabase("sqlite");
  try {
    const { read } = database.store;
    const explained = async (filter: AuditFilter): Promise<string[]> => {
      const plans = await explainQueries(read, async (db) => {
        await listAudit(db, filter, 1_000_000, 10);
        await countAudit(db, filter, 10);
      });
      assert.equal(plans.length, 2, "list and count");
      return plans.map((lines) => lines.join("\n"));
    };
    const cases: readonly [AuditFilter, RegExp][] = [
      [{ project: 1 }, /audit_\w+ \(project_id=\?/],
      [{ project: 1, resource: "server" }, /audit_kind \(project_id=\? AND resource=\?/],
      [
        { project: 1, resource: "server", resourceId: 1 },
        /audit_object \(project_id=\? AND resource=\? AND resource_id=/,
      ],
      [{ project: 1, operations: ["createServer"] }, /audit_operation \(project_id=\? AND operation=\?/],
      [
        { project: 1, operations: ["createServer", "createDomain"] },
        /audit_operation \(project_id=\? AND operation=\?/,
      ],
      [{ project: 1, token: 7 }, /audit_token \(project_id=\? AND token_id=\?/],
    ];
    for (const [filter, index] of cases)
      for (const plan of await explained(filter)) {
        assert.match(plan, index, JSON.stringify(filter));
        assert.doesNotMatch(plan, /SCAN audit( |$)/m);
        // The page is sorted, but not what the filter finds.
        assert.ok((plan.match(/USE TEMP B-TREE/g) ?? []).length <= 1, plan);
      }
  } finally {
    await database.close();
  }
});
