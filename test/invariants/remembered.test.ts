/**
 * Cached responses to reads: after every kind of change and its background work, each equals an uncached response. A commit that does not
 * invalidate the cache changes nothing that a cached response shows.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, get as httpGet, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { contract, type OperationName, operationNames } from "@brume/api/contract.ts";
import { isChange, isStored, type Operation } from "@brume/api/operation.ts";
import { sql } from "kysely";
import { isHidden } from "../../service/src/engine/commit.ts";
import type { Reader, Store } from "../../service/src/store/db.ts";
import { createTestService, type TestService } from "../support/testservice.ts";
import { changesOf } from "./changes.ts";

const operationOf = (name: OperationName): Operation => contract[name];
const remembered = operationNames.filter((name) => isStored(operationOf(name)));
/** Nothing that can be changed is in it. */
const constant: readonly OperationName[] = ["readBalance", "listSettings"];

/** Returns the SQL that reads the rows that remembered answers show, as text by table. `webhook` and `webhook_delivery` are shown by reads that are not remembered. */
async function shownRowsText(db: Reader): Promise<string> {
  const list = sql<{ table: string; column: string }>`SELECT t.name AS "table", c.name AS "column"
    FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1, c.cid`;
  const columns = Map.groupBy((await list.execute(db)).rows, ({ table }) => table);
  const selects = [...columns].flatMap(([table, its]) => {
    if (table.startsWith("webhook") || table === "sample" || table.startsWith("sqlite_")) return [];
    const where = table === "task" ? " WHERE state <> 'Keeping'" : "";
    // Rows of these are only added, and there are many.
    const isLog = table === "event" || table === "audit";
    const row = its.map(({ column }) => `quote("${column}")`).join(" || ',' || ");
    const what = isLog ? "count(*) || ',' || max(id)" : `group_concat(${row}, ';')`;
    return [`SELECT '${table}' AS name, (SELECT ${what} FROM "${table}"${where}) AS text`];
  });
  return selects.join(" UNION ALL ");
}

/** Notes every hidden write that changes what is shown. */
function watchHidden(wrong: string[], count: () => void) {
  let statement = "";
  const shownRows = async (db: Reader): Promise<ReadonlyMap<string, string | null>> => {
    statement ||= await shownRowsText(db);
    const { rows } = await sql.raw<{ name: string; text: string | null }>(statement).execute(db);
    return new Map(rows.map(({ name, text }) => [name, text]));
  };
  return (store: Store): Store => ({
    ...store,
    write: (work) =>
      store.write(async (tx) => {
        const rows = await shownRows(tx);
        const result = await work(tx);
        if (!isHidden(tx)) return result;
        count();
        const now = await shownRows(tx);
        for (const [table, text] of now) if (rows.get(table) !== text) wrong.push(table);
        return result;
      }),
  });
}

interface TestResponse {
  readonly status: number;
  readonly tag: string | null;
  readonly total: string | string[] | null;
  readonly body: string;
}

describe("a cached response", () => {
  const wrong: string[] = [];
  // Of tens of thousands of requests, which `fetch` makes slow.
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  let hidden = 0;
  let brume: TestService;
  before(async () => {
    brume = await createTestService("sqlite", { watch: watchHidden(wrong, () => (hidden += 1)) });
  });
  after(async () => {
    agent.destroy();
    await brume.close();
  });

  async function get(target: string, prefer: Record<string, string> = {}): Promise<TestResponse> {
    const headers = { authorization: `Bearer ${brume.token}`, "x-request-id": "same", ...prefer };
    const request = httpGet(brume.url + target, { headers, agent });
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const { etag = null, "x-total-count": total } = response.headers;
    return { status: response.statusCode ?? 0, tag: etag, total: total ?? null, body: await text(response) };
  }
  /** Preferences keep an answer from being remembered, and from being one that was. */
  const read = (target: string) => get(target, { prefer: "handling=lenient" });
  const idsOf = async (list: string): Promise<number[]> => {
    const { status, body } = await read(list);
    // Background work may have deleted the object that the list belongs to.
    if (status === 404 && /\d/.test(list)) return [];
    assert.equal(status, 200, `${list}: ${body}`);
    return (JSON.parse(body) as { ID?: number; Id?: number }[]).map((item) => Number(item.ID ?? item.Id));
  };

  /** Returns the request targets of an operation. A target of a deleted object is requested again. */
  async function targetsOf(name: OperationName): Promise<string[]> {
    const { path } = operationOf(name);
    const parts = path.split(/\{[^}]+\}/);
    if (parts.length === 1) return [path];
    if (name === "readRecord") {
      const domains = JSON.parse((await read("/dns")).body) as { LinkedRecords: { ID: number }[] }[];
      return domains.flatMap(({ LinkedRecords }) => LinkedRecords.map(({ ID }) => `/dns/record/${ID}`));
    }
    if (name === "readTunnelPeer") {
      const networks = JSON.parse((await read("/publicnetwork")).body) as {
        Id: number;
        Vpn: { Tunnels: { Id: number }[] };
      }[];
      return networks.flatMap(({ Id, Vpn }) => Vpn.Tunnels.map((one) => `/publicnetwork/${Id}/vpn/${one.Id}/peer`));
    }
    // The first project is the caller's own.
    const firsts = parts[0] === "/project/" ? [1] : await idsOf((parts[0] ?? "").replace(/\/$/, ""));
    const targets = firsts.map((id) => `${parts[0]}${id}${parts[1]}`);
    if (parts.length === 2) return targets;
    const lists = targets.map((target) => target.replace(/\/$/, ""));
    const inner = await Promise.all(lists.map(async (list) => (await idsOf(list)).map((id) => `${list}/${id}`)));
    return inner.flat();
  }

  /** What is kept of a page of servers, also for a request with a preference, must give the same servers as the complete list. */
  async function comparePage(when: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      const before = await read("/server");
      const page = await read("/server?limit=1000");
      const after = await read("/server");
      if (page.body === before.body || page.body === after.body) return;
      if (tries === 5) assert.equal(page.body, after.body, `a page of servers after ${when}`);
    }
  }

  /** Responses by request target. */
  const seen = new Map<string, { readonly name: OperationName; readonly bodies: Set<string> }>();

  /** Stored data may change during the comparison, so a cached response must equal a read before or after it. */
  async function compareAll(when: string): Promise<void> {
    for (const name of remembered)
      for (const target of await targetsOf(name)) if (!seen.has(target)) seen.set(target, { name, bodies: new Set() });
    await Promise.all(
      [...seen].map(async ([target, { bodies }]) => {
        for (let tries = 1; ; tries++) {
          const earlier = await read(target);
          const response = await get(target);
          bodies.add(`${response.status} ${response.body}`);
          if (isDeepStrictEqual(response, earlier)) return;
          const later = await read(target);
          if (isDeepStrictEqual(response, later)) return;
          if (tries === 5) assert.deepEqual(response, later, `${target} after ${when}`);
        }
      }),
    );
    await comparePage(when);
  }

  test("is replaced after every kind of change", async (t) => {
    const changes = await changesOf(brume);
    const hasChange = (name: OperationName): boolean => changes.some(([one]) => one === name);
    assert.deepEqual(
      operationNames.filter((name) => isChange(operationOf(name)) && !hasChange(name)),
      [],
      "a change that is not tried",
    );
    await compareAll("nothing");
    for (const [name, target, body, headers] of changes) {
      const response = await fetch(brume.url + target, {
        method: operationOf(name).method,
        headers: {
          ...(headers?.["cookie"] === undefined && { authorization: `Bearer ${brume.token}` }),
          "content-type": "application/json",
          prefer: "wait=0",
          ...headers,
        },
        body: JSON.stringify(body ?? {}),
      });
      assert.equal(response.status, 200, `${name}: ${await response.text()}`);
      // At once, while background work continues.
      await compareAll(name);
    }
    const same = remembered.filter((name) => {
      const ofName = [...seen.values()].filter((one) => one.name === name);
      return ofName.reduce((sum, { bodies }) => sum + bodies.size, 0) <= 1;
    });
    t.diagnostic(`${seen.size} answers after ${changes.length} changes, ${hidden} hidden writes`);
    assert.deepEqual(same, constant, "reads whose answer was never another one");
    assert.ok(hidden > 0);
    assert.deepEqual(wrong, [], "hidden writes that change what is shown");
  });
});
