/**
 * The API gets its own certificate from Pebble, with both challenges, renews it while connections stay open, and survives kill -9.
 * `test/host/tls-processes.test.ts` runs this with an agent and a control plane (`ACME_PROCESSES=2`), in namespaces with an own /etc.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { copyFileSync, rmSync } from "node:fs";
import { type Agent, type IncomingMessage, request as requestPlain } from "node:http";
import { request, Agent as TlsAgent } from "node:https";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { copyAccelerator } from "../support/machinelab.ts";
import { type Pebble, startPebble } from "../support/pebble.ts";
import { freePort } from "../support/port.ts";
import { createProcess, type Process } from "../support/process.ts";

const missing = ["pebble", "openssl"].filter((name) => spawnSync("sh", ["-c", 'command -v "$0"', name]).status !== 0);
const hindrance = missing.length > 0 && `needs ${missing.join(", ")}`;
if (hindrance !== false) console.log(`the certificate of the API: not tried, ${hindrance}`);

interface Message {
  readonly id?: number;
  readonly type?: string;
  readonly questions?: readonly { readonly name: string; readonly type: string }[];
  readonly answers?: readonly object[];
}
const { decode, encode } = createRequire(import.meta.url)("dns-packet") as {
  decode(bytes: Uint8Array): Message;
  encode(message: Message): Buffer;
};

const hasTwoProcesses = process.env["ACME_PROCESSES"] === "2";
const host = "cloud.example.com";
interface Check {
  readonly Name: string;
  readonly Ok: boolean;
  readonly Detail: string;
}

describe("the certificate of the API", { skip: hindrance, concurrency: false }, () => {
  let pebble: Pebble;
  let brume: Process;
  let root = "";
  let port = 0;
  let plainPort = 0;
  let dnsPort = 0;
  const forwarder = createSocket("udp4");
  let hasAddress = false;
  const agents: (Agent | TlsAgent)[] = [];

  before(async () => {
    [port, plainPort, dnsPort] = [await freePort(), await freePort(), await freePort()];
    // Queries for other names than those of the service are answered here.
    forwarder.on("message", (query, from) => {
      const { id = 0, questions = [] } = decode(query);
      const [question] = questions;
      if (question?.name === "files.example.net") {
        const answers = [{ type: "A", name: question.name, ttl: 1, data: "127.0.0.1" } as const];
        const found = hasAddress && question.type === "A" ? answers : [];
        return forwarder.send(encode({ type: "response", id, questions, answers: found }), from.port, from.address);
      }
      // A killed service does not respond; its socket must not keep this process alive.
      const upstream = createSocket("udp4").unref();
      upstream.once("message", (response) => {
        upstream.close();
        forwarder.send(response, from.port, from.address);
      });
      return upstream.send(query, dnsPort, "127.0.0.1");
    });
    forwarder.bind(0, "127.0.0.1");
    await once(forwarder, "listening");
    pebble = await startPebble({ dns: `127.0.0.1:${forwarder.address().port}`, httpPort: plainPort, validity: 12 });
    root = await pebble.root();
    // The control plane sees no other folder with settings.
    const authority = hasTwoProcesses ? "/etc/brume-test-authority.pem" : pebble.ca;
    if (hasTwoProcesses) copyFileSync(pebble.ca, authority);
    brume = await createProcess("sqlite", {
      stopped: true,
      environment: {
        ...(hasTwoProcesses && { BRUME_SIMULATE: "0", BRUME_PROCESSES: "2" }),
        NODE_EXTRA_CA_CERTS: authority,
        BRUME_LISTEN: `127.0.0.1:${port}`,
        BRUME_DNS_LISTEN: `127.0.0.1:${dnsPort}`,
        BRUME_TLS_DOMAIN: host,
        BRUME_ACME_DIRECTORY: pebble.directory,
      },
    });
    copyAccelerator(brume.folder);
  });
  after(async () => {
    for (const agent of agents) agent.destroy();
    forwarder.close();
    await brume?.close();
    await pebble?.close();
  });

  /** Starts the service; the harness expects HTTP and reads /readyz there, so its error means that the service has started. */
  const start = (): Promise<void> =>
    brume.start().catch((error: unknown) => assert.match(String(error), /fetch failed/));

  async function send(path: string, body?: object, agent = new TlsAgent({ ca: root, rejectUnauthorized: false })) {
    agents.push(agent);
    const headers = { Authorization: `Bearer ${brume.token}`, "Content-Type": "application/json" };
    const method = body === undefined ? "GET" : "POST";
    const sent = request({ host: "127.0.0.1", servername: host, port, path, method, headers, agent });
    sent.end(body === undefined ? "" : JSON.stringify(body));
    const [message] = (await once(sent, "response")) as [AsyncIterable<Buffer> & { readonly socket: TLSSocket }];
    const { socket } = message;
    let text = "";
    for await (const part of message) text += String(part);
    return { text, socket };
  }
  const check = async (): Promise<Check> => {
    const { Checks } = JSON.parse((await send("/readyz")).text) as { Checks: Check[] };
    return Checks.find(({ Name }) => Name === "certificate") ?? assert.fail("/readyz has no check of the certificate");
  };
  /** Waits until the check has this form. */
  async function until(detail: RegExp): Promise<Check> {
    for (;;) {
      const found = await check();
      if (detail.test(found.Detail)) return found;
      await sleep(100);
    }
  }
  /** Returns the serial of the certificate that a new connection gets, which must be valid. */
  async function serial(servername = host): Promise<string> {
    const socket = connect({ host: "127.0.0.1", port, servername, ca: root });
    await once(socket, "secureConnect");
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  }
  /** Waits for a valid certificate: each is valid for a few seconds only. */
  async function validSerial(servername = host): Promise<string> {
    for (;;) {
      const found = await serial(servername).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== "CERT_HAS_EXPIRED") throw error;
      });
      if (found !== undefined) return found;
      await sleep(50);
    }
  }
  const records = async (): Promise<string[]> => {
    const [domain] = JSON.parse((await send("/dns")).text) as { LinkedRecords: { TypeRecord: string }[] }[];
    return (domain?.LinkedRecords ?? []).map(({ TypeRecord }) => TypeRecord);
  };

  test("it is temporary until the domain is on the service, then proven by its own name server, and renewed", async () => {
    await start();
    assert.equal((await until(/the domain is not on this service/)).Ok, false);
    await assert.rejects(serial(), /self-signed certificate/);
    await send("/dns", { Name: "example.com", Ip: "192.0.2.1" });
    assert.equal((await until(/^cloud\.example\.com, valid until/)).Ok, true);
    await validSerial();

    // A connection that is open during the renewal continues; a new one gets the new certificate.
    const agent = new TlsAgent({ ca: root, rejectUnauthorized: false, keepAlive: true, maxSockets: 1 });
    const { socket } = await send("/healthz", undefined, agent);
    const first = socket.getPeerCertificate().serialNumber;
    while ((await serial().catch(() => first)) === first) {
      await send("/healthz", undefined, agent);
      await sleep(100);
    }
    const reused = await send("/healthz", undefined, agent);
    assert.deepEqual([reused.text, reused.socket === socket], ['{"Status":"ok"}', true]);
    assert.equal(reused.socket.getPeerCertificate().serialNumber, first);
    while ((await records()).includes("TXT")) await sleep(50);
    const events = JSON.parse((await send("/event?type=certificate.*")).text) as { Type: string }[];
    assert.deepEqual([...new Set(events.map(({ Type }) => Type))], ["certificate.changed"]);
  });

  test("after kill -9 during an order, with other names and a plain HTTP server", async () => {
    const orders = (): number => brume.log.filter(({ msg }) => msg.startsWith("Ordering")).length;
    const before = orders();
    while (orders() === before) await sleep(10);
    while (!(await records()).includes("TXT") && orders() === before + 1) await sleep(1);
    await brume.end("SIGKILL");
    brume.set("BRUME_TLS_REDIRECT", `127.0.0.1:${plainPort}`);
    brume.set("BRUME_TLS_DOMAIN", "files.example.net");
    await start();
    // The authority finds no address. The certificate of before may be valid for some seconds more.
    const failed = await until(/expired .*; the order failed once: .*; next attempt/);
    assert.equal(failed.Ok, false);
    assert.ok(!(await records()).includes("TXT"), "a challenge was left");
    await brume.end("SIGTERM");

    // Without the pause of a failed order.
    rmSync(`${brume.folder}/${hasTwoProcesses ? "control/" : ""}acme/attempt.json`);
    hasAddress = true;
    await start();
    await until(/^files\.example\.net, valid until/);
    assert.match(await validSerial("files.example.net"), /^[0-9A-F]+$/);
    const get = async (path: string, Host: string) => {
      const sent = requestPlain({ host: "127.0.0.1", port: plainPort, path, headers: { Host } }).end();
      const [message] = (await once(sent, "response")) as [IncomingMessage];
      message.resume();
      return [message.statusCode, message.headers.location ?? ""];
    };
    const url = `https://files.example.net:${port}`;
    assert.deepEqual(await get("/console/?a=1", "files.example.net"), [308, `${url}/console/?a=1`]);
    assert.deepEqual(await get("//evil.example/", "evil.example"), [308, `${url}//evil.example/`]);
    assert.deepEqual(await get("/.well-known/acme-challenge/x", "files.example.net"), [404, ""]);
  });

  test("an authority that is away does not stop the service", async () => {
    await brume.end("SIGTERM");
    brume.set("BRUME_ACME_DIRECTORY", `https://localhost:${await freePort()}/dir`);
    await start();
    const { Ok, Detail } = await until(/the order failed once/);
    assert.match(Detail, /ECONNREFUSED|does not respond/);
    // That of the former authority is served as long as it is valid.
    assert.equal(typeof Ok, "boolean");
    assert.equal((await send("/healthz")).text, '{"Status":"ok"}');
  });
});
