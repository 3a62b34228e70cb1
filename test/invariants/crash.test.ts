/** docs/spec.md#acknowledged-changes-survive for the store: a confirmed write survives a killed service and a full disk, on both databases. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sql } from "kysely";
import type { Reader } from "../../service/src/store/db.ts";
import { StorageError } from "../../service/src/store/db.ts";
import { openSqlite } from "../../service/src/store/sqlite.ts";
import type { Database } from "../support/databases.ts";
import { databases, startDatabase } from "../support/databases.ts";
import { insertEvent } from "../support/writer.ts";

const writers = 32;

/** Time limit, because each test waits for another process. */
const program = fileURLToPath(new URL("../support/writer.ts", import.meta.url));

interface Writing {
  readonly child: ChildProcess;
  /** Ids in the order of their acknowledgement. */
  readonly acknowledged: number[];
  readonly refusals: string[];
  /** Resolves when `isEnough` returns true for a line. Rejects if the process ends first. */
  until(isEnough: () => boolean): Promise<void>;
  kill(): Promise<void>;
}

/** Starts `writer.ts`; `prefix` is shell code before the command. */
function startWriting({ kind, address }: Database, prefix = ""): Writing {
  const line = `${prefix} exec "$0" "$@"`;
  const child = spawn("sh", ["-c", line, process.execPath, program, kind, address, String(writers)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  after(() => child.kill("SIGKILL"));
  const acknowledged: number[] = [];
  const refusals: string[] = [];
  const errors: string[] = [];
  child.stderr.on("data", (data) => errors.push(String(data)));
  const lines = createInterface(child.stdout);
  lines.on("line", (text) => {
    if (text.startsWith("refused")) refusals.push(text);
    else if (text !== "ready") acknowledged.push(Number(text));
  });
  const ended = once(lines, "close");
  return {
    child,
    acknowledged,
    refusals,
    until: (isEnough) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (isEnough()) resolve();
        };
        lines.on("line", check);
        lines.once("close", () => reject(new Error(`the writer ended: ${errors.join("")}`)));
      }),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

const readIds = async (db: Reader): Promise<Set<number>> =>
  new Set((await db.selectFrom("event").select("id").execute()).map((row) => row.id));

for (const kind of databases) {
  test(`${kind}: confirmed rows exist after kill -9`, async () => {
    const database = await startDatabase(kind);
    try {
      await database.store.close();
      const acknowledged: number[] = [];
      for (let round = 1; round <= 3; round++) {
        const writing = startWriting(database);
        await writing.until(() => writing.acknowledged.length > 300 * round);
        await writing.kill();
        acknowledged.push(...writing.acknowledged);
        const store = await database.open();
        const stored = await readIds(store.read);
        await store.close();
        assert.deepEqual(
          acknowledged.filter((id) => !stored.has(id)),
          [],
        );
        assert.equal(new Set(acknowledged).size, acknowledged.length);
        // Committed, but killed before it printed the id: at most one row of each writer and round.
        assert.ok(stored.size - acknowledged.length <= writers * round);
      }
    } finally {
      await database.close();
    }
  });
}

test("sqlite: a full disk refuses writes, and the store works again once there is space", async () => {
  const database = await startDatabase("sqlite");
  try {
    await database.store.close();
    // The file size limit of the process replaces the size of the disk: it stops the write-ahead log in a commit.
    const writing = startWriting(database, "trap '' XFSZ; ulimit -S -f 1000;");
    await writing.until(() => writing.refusals.length > writers);
    assert.deepEqual([...new Set(writing.refusals)], ["refused StorageError"]);
    const before = writing.acknowledged.length;
    assert.ok(before > 0);
    execFileSync("prlimit", [`--pid=${writing.child.pid}`, "--fsize=unlimited:"]);
    await writing.until(() => writing.acknowledged.length > before + 1000);
    await writing.kill();
    const store = await database.open();
    const stored = await readIds(store.read);
    assert.deepEqual(
      writing.acknowledged.filter((id) => !stored.has(id)),
      [],
    );
    assert.ok(stored.size - writing.acknowledged.length <= writers);
    const checked = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(store.read);
    assert.deepEqual(checked.rows, [{ integrity_check: "ok" }]);
  } finally {
    await database.close();
  }
});

test("sqlite: a full database fails the whole group of writes, and only that group", async () => {
  const database = await startDatabase("sqlite");
  const { store } = database;
  try {
    const limit = (pages: number): Promise<unknown> =>
      store.write((tx) => sql`pragma max_page_count = ${sql.lit(pages)}`.execute(tx));
    await store.write((tx) => insertEvent(tx, 1));
    await limit(1);
    const large = "x".repeat(100_000);
    const group = [1, 2, 3].map((i) => store.write((tx) => insertEvent(tx, i, i === 1 ? large : null)));
    for (const { status, reason } of (await Promise.allSettled(group)) as PromiseRejectedResult[]) {
      assert.equal(status, "rejected");
      assert.ok(reason instanceof StorageError);
    }
    await limit(1_000_000);
    await store.write((tx) => insertEvent(tx, 2, large));
    assert.equal((await readIds(store.read)).size, 2);
  } finally {
    await database.close();
  }
});

test("sqlite: a second service cannot open the database, also from another process", async () => {
  const database = await startDatabase("sqlite");
  try {
    await assert.rejects(
      openSqlite(database.address, { log: () => {} }),
      new RegExp(`in use by another Brume service \\(host ${hostname()}, pid ${process.pid}, since 20`),
    );
    const second = startWriting(database);
    await assert.rejects(
      second.until(() => second.acknowledged.length > 0),
      /in use by another Brume service/,
    );
    // The refusal has not freed the lock that it met.
    await assert.rejects(openSqlite(database.address, { log: () => {} }), /in use by another Brume service/);
    await database.store.write((tx) => insertEvent(tx, 1));
  } finally {
    await database.close();
  }
});
