/**
 * Large domains leave turns of the event loop to others while they are shown. The handlers are called directly: the response over HTTP
 * has turns of its own.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Domain } from "@brume/api/dns.ts";
import { ensureFirst } from "../../service/src/account/first.ts";
import { domainRoutes } from "../../service/src/dns/domainroutes.ts";
import { showDomain } from "../../service/src/dns/model/show.ts";
import type { DnsContext } from "../../service/src/dns/recordroutes.ts";
import * as table from "../../service/src/dns/table.ts";
import { stateAt } from "../../service/src/dns/version.ts";
import { zoneRoutes } from "../../service/src/dns/zoneroutes.ts";
import type { Restriction } from "../../service/src/http/handler.ts";
import type { Reader } from "../../service/src/store/db.ts";
import { type Database, startDatabase } from "../support/databases.ts";

const clock = { now: () => 1, steady: () => 1 };
const caller = { projectId: 1, tokenId: 1, restriction: null };
const nameServers = ["ns1.example.net"];
const records = 10_000;
/** Without slices others have no turn. A fast host needs few slices. */
const fewestTurns = 2;

/** Runs work, and returns its result with the number of turns that others had. */
async function countTurns<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly turns: number }> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const result = await work();
  isOver = true;
  return { result, turns };
}

describe("a large domain", () => {
  let database: Database;
  let context: DnsContext;
  before(async () => {
    database = await startDatabase("sqlite");
    const { store } = database;
    await ensureFirst(store, clock, "0".repeat(64));
    const zones = { served: () => 0 } as unknown as DnsContext["zones"];
    const fetchZone = () => assert.fail("no zone is fetched");
    context = { clock, zones, nameServers, snapshot: store.snapshot, fetchZone };
    await store.write(async (tx) => {
      const common = { project_id: 1, is_delegate: 0, created: 0, labels: "{}", version: 1, serial: 1 };
      const name = { name: "large.test", ascii: "large.test", subtree: "test.large." };
      await tx
        .insertInto("domain")
        .values({ ...common, ...name, id: 1, record_count: records })
        .execute();
      for (let from = 0; from < records; from += 300) {
        const rows = Array.from({ length: 300 }, (_, index) => ({
          domain_id: 1,
          type: "A",
          owner: `h${from + index}`,
          node: `test.large.h${from + index}.`,
          ttl: 300,
          value: "192.0.2.1",
          serial: 1,
          created: 0,
          labels: "{}",
          version: 1,
        }));
        await tx.insertInto("record").values(rows).execute();
      }
    });
  });
  after(() => database.close());

  /** Returns the domain as the API shows it. */
  const shown = async (db: Reader): Promise<Domain> => {
    const row = await table.findAnyDomain.first(db, { id: 1 });
    assert.ok(row !== undefined);
    return showDomain(row, await table.listRecords(db, 1), 0, nameServers);
  };

  test("is shown in slices by a list", async () => {
    const { listDomains } = domainRoutes(context, undefined as never);
    const { result, turns } = await countTurns(async () => {
      const page = await listDomains.list({ query: {}, caller } as never, database.store.read);
      const texts: string[] = [];
      assert.ok(Symbol.asyncIterator in page.items);
      for await (const item of page.items)
        if (Symbol.asyncIterator in item) for await (const piece of item) texts.push(piece);
        else texts.push(JSON.stringify(item));
      return texts.join("");
    });
    assert.deepEqual(JSON.parse(result), await shown(database.store.read));
    assert.ok(turns >= fewestTurns, `${turns} turns`);
  });

  test("is shown in slices by a change of its labels", async () => {
    const { updateDomain } = domainRoutes(context, undefined as never);
    assert.ok("change" in updateDomain);
    const request = { params: { id: 1 }, body: { Labels: { a: "b" } }, caller, expect: () => {} };
    const { result, turns } = await database.store.write((tx) =>
      countTurns(() => updateDomain.change(request as never, tx)),
    );
    assert.ok(turns >= fewestTurns, `${turns} turns`);
    const now = await shown(database.store.read);
    assert.deepEqual(result.answer, now);
    assert.ok(typeof result.text?.body === "object");
    assert.deepEqual(JSON.parse(result.text.body.texts.join("")), now);
    const empty = { ...now, LinkedRecords: [] };
    const [change, ...others] = result.changes;
    assert.deepEqual([change?.before, change?.after, others], [{ ...empty, Labels: {} }, empty, []]);
  });

  test("with many long versions is restored and listed in slices", async () => {
    const { store } = database;
    const record = { type: "A", ttl: 60, value: "192.0.2.1", created: 1, labels: "{}" };
    const changeOf = (id: number) => ({ op: "Create", before: null, after: { id, owner: `h${id}`, ...record } });
    const changes = JSON.stringify(Array.from({ length: 1000 }, (_, index) => changeOf(1_000_000 + index)));
    await store.write(async (tx) => {
      for (let serial = 2; serial <= 61; serial++)
        await tx
          .insertInto("domain_version")
          .values({ domain_id: 1, serial, date: 1, token_id: 1, request_id: "x", changes })
          .execute();
    });
    const restored = await store.write((tx) => countTurns(() => stateAt(tx, 1, 2)));
    assert.equal(restored.result?.size, 1000);
    assert.ok(restored.turns >= fewestTurns, `${restored.turns} turns`);

    const { listVersions } = zoneRoutes(context);
    const list = (restriction: Restriction | null, query: object) =>
      countTurns(async () => {
        const request = { params: { id: 1 }, query, caller: { ...caller, restriction } };
        const { items, ...page } = await listVersions.list(request as never, store.read);
        const serials: number[] = [];
        assert.ok(Symbol.asyncIterator in items);
        for await (const item of items) {
          assert.ok("Serial" in item && item.Changes.length > 0);
          serials.push(item.Serial);
        }
        return { ...page, serials };
      });
    const serials = Array.from({ length: 60 }, (_, index) => 61 - index);
    const all = await list(null, {});
    assert.deepEqual(
      [all.result.serials, all.result.total, all.result.next !== null],
      [serials.slice(0, 50), 60, true],
    );
    assert.ok(all.turns >= fewestTurns, `${all.turns} turns`);

    // A restricted token sees one change of each version. Its total is that of all pages.
    const restriction = { domainId: 1, domain: "large.test", pattern: "h1000007", types: null };
    const first = await list(restriction, { limit: 50 });
    assert.deepEqual([first.result.serials, first.result.total], [serials.slice(0, 50), 60]);
    assert.ok(first.turns >= fewestTurns, `${first.turns} turns`);
    const second = await list(restriction, { limit: 50, cursor: first.result.next });
    assert.deepEqual([second.result.serials, second.result.total, second.result.next], [serials.slice(50), 60, null]);
    const none = await list({ ...restriction, pattern: "x" }, {});
    assert.deepEqual(none.result, { serials: [], total: 0, next: null });
  });
});
