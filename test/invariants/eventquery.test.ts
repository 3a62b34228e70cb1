/** Invariants of the queries over events: they find what the filter describes, and use an index for each filter. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fittingTypes } from "@brume/api/event.ts";
import { append } from "../../service/src/engine/event.ts";
import {
  countEvents,
  type EventFilter,
  type EventRange,
  type EventRow,
  findEvents,
} from "../../service/src/engine/eventquery.ts";
import type { Store } from "../../service/src/store/db.ts";
import { startDatabase } from "../support/databases.ts";
import { invariant } from "../support/enginefixture.ts";
import { explainQueries } from "../support/queryplan.ts";
import { type Random, withSeed } from "../support/random.ts";

/** More than are searched without an index of their filter. */
const stored = 6_000;

/** Types, the last ones of few events. */
const types = ["server.changed", "action.ended", "record.changed", "domain.changed", "tunnel.up", "disk.low"];

function fill(store: Store, random: Random): Promise<void> {
  const rare = () => (random.below(1_000) < 5 ? random.pick(types.slice(3)) : random.pick(types.slice(0, 3)));
  const events = Array.from({ length: stored }, () => {
    const type = rare();
    const [resource = ""] = type.split(".");
    const parent = resource === "record" ? 1 + random.below(3) : null;
    return { type, resource, parent, id: 1 + random.below(4), project: 1 + random.below(2), date: 0, data: null };
  });
  return store.write((tx) => append(tx, events));
}

function fits(row: EventRow, { project, types, resources, domain }: EventFilter): boolean {
  const { resource, resource_id: id } = row;
  return (
    row.project_id === project &&
    (types === undefined || types.includes(row.type)) &&
    (resources === undefined || resources.some((each) => each.resource === resource && each.id === id)) &&
    (domain === undefined ||
      (resource === "domain" && id === domain) ||
      (resource === "record" && row.parent_id === domain))
  );
}

function randomFilter(random: Random): EventFilter {
  const some = <T>(list: readonly T[]): T[] => list.filter(() => random.chance(40));
  const objects = ["server", "record", "domain"].flatMap((resource) => [1, 2].map((id) => ({ resource, id })));
  return {
    project: 1 + random.below(2),
    ...(random.chance(50) && { types: some(types) }),
    ...(random.chance(30) && { resources: some(objects) }),
    ...(random.chance(30) && { domain: 1 + random.below(3) }),
  };
}

invariant("a query returns and counts exactly the events that fit its filter", async (store) => {
  await withSeed(async (random) => {
    await fill(store, random);
    const rows = await store.read.selectFrom("event").selectAll().orderBy("id").execute();
    for (let run = 0; run < 100; run++) {
      const filter = randomFilter(random);
      const range: EventRange = {
        after: random.chance(50) ? 0 : random.below(stored),
        ...(random.chance(30) && { before: random.below(stored) }),
        newest: random.chance(50),
      };
      const limit = random.pick([1, 10, 1_000, stored]);
      const { after, before = Infinity } = range;
      const all = rows.filter((row) => row.id > after && fits(row, filter));
      const within = all.filter(({ id }) => id < before);
      const expected = (range.newest === true ? within.toReversed() : within).slice(0, limit);
      const query = JSON.stringify({ filter, range, limit });
      assert.deepEqual(await findEvents(store.read, filter, range, limit), expected, query);
      assert.equal(await countEvents(store.read, filter, after, limit), Math.min(all.length, limit), query);
    }
  });
});

test("each filter uses an index that has its events in the order of their ids", async () => {
  const database = await startDatabase("sqlite");
  try {
    const { read } = database.store;
    const explained = async (filter: EventFilter): Promise<string> => {
      const plans = await explainQueries(read, async (db) => {
        // No event is stored, so the highest id is given.
        await findEvents(db, filter, { after: 0, before: 1_000_000 }, 10);
        await countEvents(db, filter, 0, 10);
      });
      assert.equal(plans.length, 3, "the ids near the start, the branches, and the count");
      return plans
        .flat()
        .filter((plan) => / event( |$)/.test(plan))
        .join("\n");
    };
    const none = /SCAN event/;
    const cases: readonly [EventFilter, RegExp][] = [
      [{ project: 1 }, /event_project \(project_id=\? AND id>\?/],
      [{ project: 1, types: ["a", "b"] }, /event_type \(project_id=\? AND type=\? AND id>\?/],
      [{ project: 1, resources: [{ resource: "a", id: 1 }] }, /event_object \(resource=\? AND resource_id=\? AND id>/],
      [{ project: 1, domain: 7 }, /event_record \(parent_id=\? AND id>\?/],
    ];
    for (const [filter, index] of cases) {
      const plan = await explained(filter);
      assert.doesNotMatch(plan, none);
      assert.match(plan, index);
    }
  } finally {
    await database.close();
  }
});

test("a word selects a type, or with an asterisk the types that begin with it", () => {
  assert.deepEqual(fittingTypes(["tunnel.*", "disk.low"]), ["tunnel.up", "tunnel.down", "disk.low"]);
  assert.deepEqual(fittingTypes(["session*"]), ["session.created", "session.deleted"]);
  assert.ok(fittingTypes(["*"]).includes("server.created"));
  assert.deepEqual(fittingTypes(["server.", "server.%", "Server.*", ""]), []);
});
