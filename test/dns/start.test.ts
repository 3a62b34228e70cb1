/** At a start of the service, the name server does not wait for modules that DNS does not need. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fill } from "../../bench/lib/fill.ts";
import { decode, openDnsClient, query } from "../support/dnsclient.ts";
import { freePort } from "./knot.ts";

test("queries are answered before the engines of the host are ready", { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "brume-start-"));
  await fill(folder, 3, 5);
  const port = await freePort();
  const module = (path: string): string => JSON.stringify(new URL(`../../service/src/${path}`, import.meta.url));
  const program = `
    import { loadConfig } from ${module("config.ts")};
    import { startService } from ${module("start.ts")};
    const openHost = () => new Promise(() => {});
    await startService(loadConfig(process.env), { log() {}, folder: process.env.BRUME_DATA, tls: null, introduces: false, openHost });
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
