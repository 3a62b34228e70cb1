/** The API over TLS: the certificate is sent, old protocols and plain HTTP are rejected, and invalid settings prevent the start. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { createProcess } from "../support/process.ts";
import { serviceProgram } from "../support/program.ts";
import { createTestService, type TestService } from "../support/testservice.ts";
import { createPairs, writePair } from "../support/tlsfiles.ts";
import { waitUntil } from "../support/waituntil.ts";

const folder = resolve(import.meta.dirname, "tls");
const tls = {
  certificate: readFileSync(join(folder, "certificate.pem"), "utf8"),
  key: readFileSync(join(folder, "key.pem"), "utf8"),
};

describe("TLS", () => {
  let brume: TestService;
  let port = 0;
  before(async () => {
    brume = await createTestService("sqlite", { tls });
    port = Number(new URL(brume.url).port);
  });
  after(() => brume.close());

  const send = (path: string, body?: object): Promise<{ status: number; text: string }> =>
    new Promise((done, failed) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port,
          path,
          method: body === undefined ? "GET" : "POST",
          ca: tls.certificate,
          headers: { Authorization: `Bearer ${brume.token}`, "Content-Type": "application/json" },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part: string) => {
            text += part;
          });
          response.on("end", () => done({ status: response.statusCode ?? 0, text }));
        },
      );
      sent.on("error", failed);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });

  test("reads and changes work for a client that knows the certificate", async () => {
    const made = await send("/dns", { Name: "tls.example" });
    assert.equal(made.status, 200);
    assert.match((await send("/dns")).text, /"Name":"tls\.example"/);
  });

  test("only TLS 1.2 and newer is accepted", async () => {
    const dial = async (version: "TLSv1.1" | "TLSv1.2" | "TLSv1.3"): Promise<string> => {
      const socket: TLSSocket = connectTls({
        host: "127.0.0.1",
        port,
        ca: tls.certificate,
        minVersion: version,
        maxVersion: version,
        ciphers: "DEFAULT@SECLEVEL=0",
      });
      try {
        await once(socket, "secureConnect");
        return socket.getProtocol() ?? "";
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? "refused";
      } finally {
        socket.destroy();
      }
    };
    assert.equal(await dial("TLSv1.2"), "TLSv1.2");
    assert.equal(await dial("TLSv1.3"), "TLSv1.3");
    assert.match(await dial("TLSv1.1"), /^(ERR_SSL|ECONNRESET)/);
  });

  test("plain HTTP gets no response, and the service continues", async () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("GET /healthz HTTP/1.1\r\n\r\n");
    let response = "";
    socket.on("data", (part) => {
      response += part.toString("latin1");
    });
    await once(socket, "close");
    assert.doesNotMatch(response, /^HTTP\/1\.1 200/);
    assert.equal((await send("/healthz")).status, 200);
  });

  test("the removal of another installation with the same port does not disturb a running service", async () => {
    const data = mkdtempSync(join(tmpdir(), "brume-tls-"));
    const down = spawn(process.execPath, [resolve(import.meta.dirname, "../../scripts/down.ts")], {
      env: {
        PATH: process.env["PATH"],
        BRUME_DATA: data,
        BRUME_SIMULATE: "1",
        BRUME_LISTEN: `127.0.0.1:${port}`,
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let output = "";
    down.stderr.setEncoding("utf8").on("data", (part: string) => {
      output += part;
    });
    const [code] = (await once(down, "close")) as [number | null];
    rmSync(data, { recursive: true });
    assert.equal(code, 0, output);
    assert.equal((await send("/healthz")).status, 200);
  });
});

test("changed files are used for new connections, and open ones continue", async () => {
  const files = mkdtempSync(join(tmpdir(), "brume-tls-"));
  const pairs = await createPairs("cloud.example.com", 2);
  const [first, second] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
  const brume = await createProcess("sqlite", { stopped: true, environment: writePair(files, first) });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  try {
    // The harness reads /readyz by HTTP.
    await assert.rejects(brume.start(), /fetch failed/);
    const port = Number(/:(\d+)\s*$/.exec(readFileSync(join(brume.folder, "url"), "utf8"))?.[1]);
    const read = async (path: string, keep?: Agent): Promise<[string, TLSSocket]> => {
      const sent = request({ host: "127.0.0.1", port, path, rejectUnauthorized: false, ...(keep && { agent: keep }) });
      sent.end();
      const [message] = (await once(sent, "response")) as [AsyncIterable<Buffer> & { readonly socket: TLSSocket }];
      const { socket } = message;
      let text = "";
      for await (const part of message) text += String(part);
      return [text, socket];
    };
    const serial = async (): Promise<string> => {
      const socket = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false });
      await once(socket, "secureConnect");
      const { serialNumber } = socket.getPeerCertificate();
      socket.destroy();
      return serialNumber;
    };
    const [, open] = await read("/healthz", agent);
    const before = await serial();
    // Files that do not match are not used.
    writePair(files, { certificate: second.certificate, key: first.key });
    const readiness = async () => (await read("/readyz"))[0];
    await waitUntil(
      "the refusal of the files",
      readiness,
      (text) => text.includes("the changed files are not used"),
      50,
    );
    assert.equal(await serial(), before);
    writePair(files, second);
    await waitUntil("another certificate", serial, (number) => number !== before, 50);
    const [text, socket] = await read("/readyz", agent);
    assert.equal(socket, open);
    assert.match(text, /"Name":"certificate","Ok":true,"Detail":"cloud\.example\.com, valid until [-\d]+"/);
  } finally {
    agent.destroy();
    await brume.close();
    rmSync(files, { recursive: true });
  }
});

/** Runs a service with these settings until it ends. Returns its exit code and error output. */
function startWith(settings: Readonly<Record<string, string>>) {
  const data = mkdtempSync(join(tmpdir(), "brume-tls-"));
  const main = serviceProgram();
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const { status, stderr } = spawnSync(process.execPath, [main], {
    env: { PATH, NODE_COMPILE_CACHE, BRUME_DATA: data, BRUME_SIMULATE: "1", ...settings },
    encoding: "utf8",
  });
  rmSync(data, { recursive: true });
  return { status, stderr };
}

test("invalid settings prevent the start with an error that names them", () => {
  const certificate = join(folder, "certificate.pem");
  const key = join(folder, "key.pem");
  const cases: [Readonly<Record<string, string>>, RegExp][] = [
    [{ BRUME_TLS_CERT: certificate }, /BRUME_TLS_CERT and BRUME_TLS_KEY belong together\. Set both or neither\./],
    [{ BRUME_TLS_REDIRECT: "127.0.0.1:0" }, /BRUME_TLS_REDIRECT needs TLS/],
    [{ BRUME_TLS_DOMAIN: "localhost" }, /BRUME_TLS_DOMAIN must be one to 100 domain names/],
    [{ BRUME_TLS_CERT: `${certificate}.old`, BRUME_TLS_KEY: key }, /: BRUME_TLS_CERT: ENOENT: .*certificate\.pem\.old/],
    [{ BRUME_TLS_CERT: certificate, BRUME_TLS_KEY: certificate }, /: BRUME_TLS_CERT and BRUME_TLS_KEY: /],
    [{ BRUME_DATA: key }, /: BRUME_DATA: EEXIST: .*key\.pem/],
    [{ BRUME_DNS_LISTEN: "203.0.113.1:5353" }, /: BRUME_DNS_LISTEN: 203\.0\.113\.1 is not an address of this host/],
    [{ BRUME_DATABASE: "postgres://brume:secret@127.0.0.1:1/brume" }, /: BRUME_DATABASE: PostgreSQL: .*ECONNREFUSED/],
  ];
  for (const [settings, expected] of cases) {
    const { status, stderr } = startWith(settings);
    assert.equal(status, 1, stderr);
    assert.match(stderr, expected);
    assert.doesNotMatch(stderr, /\n {4}at |secret/);
  }
});
