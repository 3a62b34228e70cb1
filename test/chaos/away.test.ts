/** A PostgreSQL that does not respond, or that another service takes over: requests fail with an error, and the service recovers. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sql } from "kysely";
import pg from "pg";
import { StorageError } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import { checkProblem } from "../support/contractcheck.ts";
import { startDatabase } from "../support/databases.ts";
import { startPostgres, startProxy } from "../support/postgresserver.ts";
import { createProcess, type Process } from "../support/process.ts";
import { serviceProgram } from "../support/program.ts";
import { waitUntil } from "../support/waituntil.ts";
import { insertEvent } from "../support/writer.ts";

const quiet = { log: () => {} };

const request = (brume: Process, method: "GET" | "POST", path: string, body?: object): Promise<Response> =>
  fetch(`${brume.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${brume.token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const create = (brume: Process, name: string): Promise<Response> => request(brume, "POST", "/dns", { Name: name });

/** Checks, while the database does not respond, that no request hangs and that each failure names the cause. */
async function checkAway(brume: Process): Promise<void> {
  const answers = await Promise.all([
    request(brume, "GET", "/dns"),
    create(brume, "away.test"),
    ...Array.from({ length: 30 }, () => request(brume, "GET", "/dns")),
  ]);
  for (const [index, answer] of answers.entries()) {
    const problem: unknown = await answer.json();
    checkProblem(problem, index === 1 ? "createDomain" : "listDomains");
    assert.equal(answer.status, 503);
    assert.equal(problem.code, "storage_unavailable");
    assert.ok(Number(answer.headers.get("retry-after")) >= 1);
    assert.doesNotMatch(problem.Message, /change|stored/);
  }
  const ready = await fetch(`${brume.url}/readyz`);
  assert.equal(ready.status, 503);
  const { Checks } = (await ready.json()) as { Checks: { Name: string; Ok: boolean; Detail: string }[] };
  const database = Checks.find(({ Name }) => Name === "database");
  assert.equal(database?.Ok, false);
  assert.match(database?.Detail ?? "", /does not respond/);
}

async function untilReady(brume: Process, name: string): Promise<void> {
  let tries = 0;
  const write = async (): Promise<number> => {
    const { status } = await create(brume, `${name}-${tries++}.test`);
    assert.ok(status === 200 || status === 503, `status ${status}`);
    return status;
  };
  await waitUntil("a change that is stored", write, (status) => status === 200, 100);
  const readiness = async (): Promise<string> => (await fetch(`${brume.url}/readyz`)).text();
  await waitUntil("a service that is ready", readiness, (text) => text.includes('"Status":"ready"'), 100);
}

test("a paused PostgreSQL: requests fail, and work when it resumes", async () => {
  const server = await startPostgres();
  const brume = await createProcess("sqlite", { environment: { BRUME_DATABASE: server.url } });
  try {
    assert.equal((await create(brume, "before.test")).status, 200);
    for (const round of [1, 2]) {
      server.pause();
      await checkAway(brume);
      server.resume();
      await untilReady(brume, `round${round}`);
    }
    const lines = brume.log.filter(({ msg }) => msg.includes("does not respond"));
    assert.ok(lines.length >= 2 && lines.length <= 8, `${lines.length} lines for two outages`);
    assert.equal(await brume.end("SIGTERM"), 0);
  } finally {
    await brume.close();
    await server.close();
  }
});

test("a network that drops traffic: lost connections are replaced", async () => {
  const server = await startPostgres();
  const proxy = await startProxy(server.socket);
  const url = `postgresql://postgres@127.0.0.1:${proxy.port}/postgres`;
  const brume = await createProcess("sqlite", { environment: { BRUME_DATABASE: url } });
  try {
    assert.equal((await create(brume, "before.test")).status, 200);
    proxy.swallow();
    await checkAway(brume);
    proxy.pass();
    await untilReady(brume, "after");
  } finally {
    await brume.close();
    await proxy.close();
    await server.close();
  }
});

test("a network that drops traffic: the read of a snapshot fails", async () => {
  const server = await startPostgres();
  const proxy = await startProxy(server.socket);
  const store = await openPostgres(`postgresql://postgres@127.0.0.1:${proxy.port}/postgres`, quiet);
  try {
    const { read, close } = await store.snapshot();
    const readOne = () => sql`select 1 as one`.execute(read);
    assert.equal((await readOne()).rows.length, 1);
    proxy.swallow();
    await assert.rejects(readOne(), StorageError);
    await close();
    await assert.rejects(store.snapshot(), StorageError);
  } finally {
    await proxy.close();
    await store.close();
    await server.close();
  }
});

test("a second service on one PostgreSQL is rejected with the name of the first, and can start after its end", async () => {
  const first = await createProcess("postgres");
  const other = mkdtempSync(join(tmpdir(), "brume-second-"));
  const main = serviceProgram();
  try {
    for (const folder of [other, first.folder]) {
      const env = { ...process.env, ...first.environment, BRUME_DATA: folder };
      const second = spawn(process.execPath, [main], { env, stdio: ["ignore", "ignore", "pipe"] });
      let output = "";
      second.stderr.on("data", (bytes: Buffer) => {
        output += bytes.toString();
      });
      const [code] = (await once(second, "close")) as [number | null];
      assert.equal(code, 1);
      assert.match(output, folder === other ? /the database is in use/ : /the data folder .* is in use/);
      assert.ok(output.includes(`host ${hostname().slice(0, 20)}`), output);
      assert.ok(output.includes(`pid ${first.pid}, since 20`), output);
    }
    assert.equal((await create(first, "goes-on.test")).status, 200);
    await first.end("SIGKILL");
    await first.start();
    assert.equal((await create(first, "again.test")).status, 200);
  } finally {
    await first.close();
    rmSync(other, { recursive: true, force: true });
  }
});

test("a lost lock is acquired again, and nothing is written while another service has it", async () => {
  const database = await startDatabase("postgres");
  await database.store.close();
  const store = await openPostgres(database.address, { ...quiet, exclusive: true });
  const other = new pg.Client({ connectionString: database.address });
  await other.connect();
  const holder = `select pid from pg_locks where locktype = 'advisory' and objsubid = 2 and granted
    and database = (select oid from pg_database where datname = current_database())`;
  const end = `select pg_terminate_backend(pid) from (${holder}) as held`;
  const written = async (subject: number): Promise<void> => {
    const write = () =>
      store
        .write((tx) => insertEvent(tx, subject))
        .then(
          () => null,
          (error: unknown) => {
            assert.ok(error instanceof StorageError, String(error));
            return error.message;
          },
        );
    await waitUntil("a write", write, (reason) => reason === null, 20);
  };
  const atStart = store.foreignWrites();
  try {
    assert.ok(atStart !== null, "with the lock, values may be cached");
    await other.query(end);
    await written(1);

    // The other session waits for the lock, so it gets the lock next.
    const taking = other.query("select pg_advisory_lock(x'6272756d'::int, 1)");
    const third = new pg.Client({ connectionString: database.address });
    await third.connect();
    const waiting = async () => (await third.query(holder.replace("granted", "not granted"))).rowCount ?? 0;
    await waitUntil("a session that waits for the lock", waiting, (count) => count > 0);
    await third.query(end);
    await third.end();
    await taking;
    await assert.rejects(
      store.write((tx) => insertEvent(tx, 2)),
      StorageError,
    );
    const reason = () => store.unavailable() ?? "";
    await waitUntil("the loss of the lock", reason, (text) =>
      text.includes("Another Brume service has taken the database"),
    );
    await assert.rejects(
      store.write((tx) => insertEvent(tx, 2)),
      /Another Brume service/,
    );
    assert.equal(store.foreignWrites(), null, "without the lock, nothing may be cached");
    await other.query("select pg_advisory_unlock_all()");
    await written(3);
    assert.ok((store.foreignWrites() ?? 0) > atStart, "earlier cached values are not valid any more");
    const rows = await store.read.selectFrom("event").select("resource_id").orderBy("id").execute();
    // A commit whose response is lost with the session is stored, although it was rejected: then the repeated write is a second row.
    const stored = new Set(rows.map((row) => row.resource_id));
    assert.deepEqual([...stored], [1, 3]);
  } finally {
    await other.end();
    await store.close();
    await database.close();
  }
});
