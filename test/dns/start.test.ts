/** At a start of the service, the name server does not wait for modules that DNS does not need. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fill } from "../../bench/lib/fill.ts";
import { databaseName, openSqlite } from "../../service/src/store/sqlite.ts";
import { decode, openDnsClient, query } from "../support/dnsclient.ts";
import { serviceProgram } from "../support/program.ts";
import { freePort } from "./knot.ts";

test("queries are answered before the engines of the host are ready", async () => {
  const folder = await mkdtemp(join(tmpdir(), "brume-start-"));
  await fill(folder, 3, 5);
  const port = await freePort();
  const module = (path: string): string => JSON.stringify(new URL(`../../service/src/${path}`, import.meta.url));
  const program = `
    import { loadConfig } from ${module("config.ts")};
    import { openNameserver } from ${module("nameserver.ts")};
    import { startService } from ${module("start.ts")};
    const [config, folder, log] = [loadConfig(process.env), process.env.BRUME_DATA, () => {}];
    const nameserver = openNameserver(config, folder, log);
    const openHost = () => new Promise(() => {});
    await startService(config, { log, folder, tls: null, introduces: false, settings: [], nameserver, openHost });
  `;
  const env = { ...process.env, BRUME_DATA: folder, BRUME_DNS_LISTEN: `127.0.0.1:${port}`, BRUME_DNS_RESOLVERS: "," };
  const file = join(folder, "program.mjs");
  await writeFile(file, program);
  const child = spawn(process.execPath, [file], { env, stdio: "inherit" });
  const dnsClient = await openDnsClient(`127.0.0.1:${port}`);
  try {
    let answer: Buffer | null = null;
    while (child.exitCode === null && (answer === null || decode(answer).answers.length === 0)) {
      answer = await dnsClient.exchange(query("h4.zone-2.example", 1), 500);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal(child.exitCode, null);
  } finally {
    dnsClient.close();
    const ended = once(child, "exit");
    if (child.exitCode === null) {
      child.kill("SIGKILL");
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  }
});

test("a stop saves the zones, and the next start serves them without reading the records", async () => {
  const folder = await mkdtemp(join(tmpdir(), "brume-start-"));
  await fill(folder, 3, 5);
  /** Starts the service, stops it by a signal when a name has an address, and returns this address. */
  const run = async (signal: NodeJS.Signals): Promise<unknown> => {
    const port = await freePort();
    const addresses = { BRUME_LISTEN: "127.0.0.1:0", BRUME_DNS_LISTEN: `127.0.0.1:${port}`, BRUME_DNS_RESOLVERS: "," };
    const env = { ...process.env, ...addresses, BRUME_CONFIG: "", BRUME_DATA: folder, BRUME_SIMULATE: "1" };
    const child = spawn(process.execPath, [serviceProgram()], { env, stdio: ["ignore", "pipe", "pipe"] });
    const ended = once(child, "exit");
    child.stdout.resume();
    let log = "";
    child.stderr.on("data", (text) => {
      log += text;
    });
    const dnsClient = await openDnsClient(`127.0.0.1:${port}`);
    try {
      for (;;) {
        assert.equal(child.exitCode, null, log);
        const answer = await dnsClient.exchange(query("h4.zone-2.example", 1), 500);
        const { answers } = answer === null ? { answers: [] } : decode(answer);
        if (answers.length > 0 && log.includes('"msg":"ready"')) return answers[0]?.data;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    } finally {
      dnsClient.close();
      child.kill(signal);
      await ended;
    }
  };
  try {
    assert.equal(await run("SIGTERM"), "192.0.4.2");
    assert.equal((await stat(join(folder, "zones"))).mode & 0o777, 0o600);
    // Without a new serial, so that the saved zones count as current.
    const store = await openSqlite(join(folder, databaseName), { log: () => {} });
    await store.write((tx) => tx.updateTable("record").set({ value: "192.0.2.99" }).execute());
    await store.close();
    assert.equal(await run("SIGKILL"), "192.0.4.2");
    assert.equal(await run("SIGTERM"), "192.0.4.2");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
