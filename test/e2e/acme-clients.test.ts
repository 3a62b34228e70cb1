/**
 * Certificate tools, unchanged, get a certificate for a domain that Brume serves. The authority is Pebble; it queries the name server of Brume. The
 * token of the tools can change nothing but `_acme-challenge` records.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Pebble, startPebble } from "../support/pebble.ts";
import { freePort } from "../support/port.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const programs = ["pebble", "lego", "certbot", "openssl"];
const missing = programs.filter((name) => spawnSync("sh", ["-c", 'command -v "$0"', name]).status !== 0);
const hindrance = missing.length > 0 && `needs ${missing.join(", ")}`;
if (hindrance !== false) console.log(`certificate tools: not tried, ${hindrance}`);

const brumeCommand = resolve(import.meta.dirname, "../../cli/bin/brume.js");

describe("certificate tools", { skip: hindrance, concurrency: false }, () => {
  let brume: TestService;
  let folder = "";
  let authority = "";
  let pebble: Pebble;
  let token = "";
  const children: ChildProcess[] = [];

  function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    const { promise, resolve: done, reject } = Promise.withResolvers<string>();
    const environment = { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, HOME: folder, ...env };
    execFile(program, args, { env: environment, timeout: 180_000 }, (error, out, err) =>
      error === null ? done(out) : reject(new Error(`${program}: ${error.message}\n${out}${err}`)),
    );
    return promise;
  }
  /** Starts a program, and resolves to its output when that matches. */
  async function start(program: string, args: readonly string[], env: Readonly<Record<string, string>>, ready: RegExp) {
    const child = spawn(program, args, { env: { PATH: process.env["PATH"], HOME: folder, ...env } });
    children.push(child);
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => (text += String(part)));
    while (!ready.test(text)) {
      assert.equal(child.exitCode, null, `${program} ended: ${text}`);
      await sleep(50);
    }
    return text;
  }
  const namesOf = async (file: string): Promise<string> =>
    (await run("openssl", ["x509", "-in", file, "-noout", "-ext", "subjectAltName"])).replaceAll(/\s+/g, " ");

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "brume-acme-"));
    // certbot runs a hook only if its first word is a program.
    mkdirSync(join(folder, "bin"));
    const script = `#!/bin/sh\nexec '${process.execPath}' '${brumeCommand}' "$@"\n`;
    writeFileSync(join(folder, "bin/brume"), script, { mode: 0o755 });
    brume = await createTestService("sqlite");
    const { ID: DomainID } = await brume.client.createDomain({ body: { Name: "example.com", Ip: "192.0.2.1" } });
    const body = { Name: "acme", Scopes: ["dns:write" as const], DomainID, RecordPattern: "_acme-challenge*" };
    token = (await brume.client.createToken({ body })).Token;
    pebble = await startPebble({ dns: brume.dns });
    authority = pebble.directory;
  });
  after(async () => {
    for (const child of children) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    }
    await pebble?.close();
    await brume?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** No challenge is left, and nothing else was changed. */
  async function assertClean(): Promise<void> {
    const [domain] = await brume.client.listDomains();
    assert.deepEqual(
      domain?.LinkedRecords.map(({ CanonicalDescription }) => CanonicalDescription),
      ["@ 3600 IN A 192.0.2.1"],
    );
  }

  test("lego, with the adapter for its provider httpreq, gets a certificate with a wildcard", async () => {
    const listen = await freePort();
    const adapter = ["adapter", "httpreq", "--listen", `127.0.0.1:${listen}`];
    await start(
      process.execPath,
      [brumeCommand, ...adapter],
      { BRUME_URL: brume.url, BRUME_TOKEN: token },
      /Listening on/,
    );
    const names = ["--domains", "example.com", "--domains", "*.example.com"];
    const dns = ["--dns", "httpreq", "--dns.resolvers", brume.dns, "--dns.disable-cp"];
    const account = ["--server", authority, "--email", "admin@example.com", "--accept-tos", "--path", folder];
    await run("lego", [...account, ...names, ...dns, "run"], {
      LEGO_CA_CERTIFICATES: pebble.ca,
      HTTPREQ_ENDPOINT: `http://127.0.0.1:${listen}`,
    });
    assert.match(
      await namesOf(join(folder, "certificates/example.com.crt")),
      /DNS:\*\.example\.com, DNS:example\.com|DNS:example\.com, DNS:\*\.example\.com/,
    );
    await assertClean();
  });

  test("certbot, with brume acme as its hooks, gets a certificate and renews it", async () => {
    const state = ["--config-dir", "--work-dir", "--logs-dir"].flatMap((name) => [name, join(folder, "certbot")]);
    const env = { BRUME_URL: brume.url, BRUME_TOKEN: token, REQUESTS_CA_BUNDLE: pebble.ca };
    const hooks = ["--manual-auth-hook", "brume acme present", "--manual-cleanup-hook", "brume acme cleanup"];
    const how = ["--manual", "--preferred-challenges", "dns", ...hooks, "--agree-tos", "-m", "admin@example.com"];
    await run(
      "certbot",
      ["certonly", "-n", ...state, "--server", authority, ...how, "-d", "example.com", "-d", "*.example.com"],
      env,
    );
    const file = join(folder, "certbot/live/example.com/cert.pem");
    assert.match(await namesOf(file), /DNS:\*\.example\.com/);
    const before = readFileSync(file, "utf8");
    await run("certbot", ["renew", "-n", "--force-renewal", "--no-random-sleep-on-renew", ...state], env);
    assert.notEqual(readFileSync(file, "utf8"), before);
    await assertClean();
  });

  test("the authority refuses a name whose challenge was not set", async () => {
    const state = ["--config-dir", "--work-dir", "--logs-dir"].flatMap((name) => [name, join(folder, "refused")]);
    const how = ["--manual", "--preferred-challenges", "dns", "--manual-auth-hook", "true", "--agree-tos"];
    const args = ["certonly", "-n", ...state, "--server", authority, ...how, "--register-unsafely-without-email"];
    await assert.rejects(
      run("certbot", [...args, "-d", "other.example.com"], { REQUESTS_CA_BUNDLE: pebble.ca }),
      /NXDOMAIN|unauthorized|No TXT|incorrect|Some challenges have failed/i,
    );
  });
});
