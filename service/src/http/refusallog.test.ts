import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store, Tx } from "../store/db.ts";
import type { AuditRow, Caller } from "./handler.ts";
import { type AuditTable, createRefusalLog } from "./refusallog.ts";

/** The rows that are stored. `hold` is awaited before each commit. */
function open(hold: () => Promise<void> = async () => {}) {
  const rows: { readonly row: AuditRow; count: number }[] = [];
  const audit: AuditTable = {
    async write() {},
    insert: async (_tx, row) => rows.push({ row, count: 1 }) - 1,
    async add(_tx, id, more) {
      const found = rows[id];
      if (found !== undefined) found.count += more;
    },
  };
  const write = async (work: (tx: Tx) => Promise<unknown>): Promise<unknown> => {
    const result = await work({} as Tx);
    await hold();
    return result;
  };
  const log = (_level: string, message: string): never => {
    throw new Error(message);
  };
  return { rows, ...createRefusalLog({ write } as unknown as Store, audit, log) };
}

const rowOf = (address: string, resourceId: number, tokenId: number | null = null): AuditRow => ({
  date: 0,
  caller: tokenId === null ? null : ({ projectId: 1, tokenId } as Caller),
  address,
  operation: "deleteDomain",
  resource: "domain",
  resourceId,
  status: 401,
  requestId: "x",
  before: null,
  after: null,
});

test("a client without a token takes only its own part of the rows", async () => {
  const { rows, note, flush } = open();
  for (let id = 1; id <= 400; id++) void note(rowOf("192.0.2.1", id));
  void note(rowOf("198.51.100.7", 1));
  await flush();
  assert.deepEqual(
    rows.slice(-2).map(({ row, count }) => [row.address, row.resourceId, count]),
    [
      ["", null, 370],
      ["198.51.100.7", 1, 1],
    ],
  );
  assert.equal(rows.length, 32);
});

test("the addresses of one IPv6 network are one source", async () => {
  const { rows, note, flush } = open();
  for (let host = 1; host <= 40; host++) void note(rowOf(`2001:db8::${host}`, 1));
  await flush();
  assert.equal(rows.filter(({ row }) => row.address !== "").length, 30);
  assert.equal(rows.at(-1)?.count, 10);
});

test("requests that repeat during a write do not displace others of the same write", async () => {
  /** For each transaction the number of rows before its commit, and what commits it. */
  const held: { readonly inserted: number; readonly commit: () => void }[] = [];
  let begun = Promise.withResolvers<void>();
  const { rows, note, flush } = open(async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.push({ inserted: rows.length, commit: resolve });
    begun.resolve();
    await promise;
  });
  /** Resolves when the next transaction is ready to commit. */
  const next = async () => {
    await begun.promise;
    begun = Promise.withResolvers();
  };
  const repeat = () => {
    for (let token = 1; token <= 500; token++) void note(rowOf("192.0.2.1", 1, token));
  };
  void note(rowOf("192.0.2.1", 1, 0));
  repeat();
  void note(rowOf("192.0.2.1", 1, 501));
  await next();
  held[0]?.commit();
  await next();
  repeat();
  held[1]?.commit();
  await next();
  assert.deepEqual(
    held.map(({ inserted }) => inserted),
    [1, 501, 502],
  );
  held[2]?.commit();
  const stored = flush();
  await next();
  held[3]?.commit();
  await stored;
  assert.equal(
    rows.reduce((sum, { count }) => sum + count, 0),
    1002,
  );
});
