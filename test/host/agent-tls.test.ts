/** An agent on another host: agent and control plane in two network namespaces, with TLS and certificates of their own authority. */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Identity } from "../../service/src/agent/tls.ts";
import { identities } from "../support/authority.ts";
import { guard } from "../support/guard.ts";
import { whyNot } from "../support/hindrance.ts";
import type { Order, Outcome } from "./agenttalker.ts";

const hindrance = process.getuid?.() === 0 ? whyNot("ip", "nsenter", "openssl") : "needs root";
if (hindrance !== false) console.log(`an agent on another host: not tried, ${hindrance}`);

describe("an agent on another host", { skip: hindrance, concurrency: false }, () => {
  const tag = randomBytes(2).toString("hex");
  const spaces = { agent: `lab-${tag}-a`, control: `lab-${tag}-c` };
  const [host, own] = ["10.251.0.1", "10.251.0.2"];
  const children: ChildProcess[] = [];
  const { agent, agentAfterLoss, control, lost, stranger, otherAgent } = identities();
  let port = 0;

  const ip = (...argv: string[]): void => void execFileSync("ip", argv, { stdio: ["ignore", "ignore", "pipe"] });
  /** Starts a process in the namespace; returns what sends it an order. */
  function start(space: string): (order: Order) => Promise<Outcome> {
    const program = join(import.meta.dirname, "agenttalker.ts");
    const child = spawn("nsenter", [`--net=/run/netns/${space}`, process.execPath, program], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    children.push(child);
    return async (order) => {
      child.send(order);
      const [outcome] = (await once(child, "message")) as [Outcome];
      return outcome;
    };
  }
  let toAgent: ReturnType<typeof start>;
  let toControl: ReturnType<typeof start>;
  const connect = (identity: Identity, name = "host-1.brume") => toControl({ connect: { host, port, name, identity } });
  const refused = async (outcome: Promise<Outcome>, reason: RegExp): Promise<void> => {
    const found = await outcome;
    assert.ok("error" in found, JSON.stringify(found));
    assert.match(found.error, reason);
  };

  before(async () => {
    guard({ spaces: `lab-${tag}-.*`, tag, folder: `/run/lab-${tag}` });
    for (const space of Object.values(spaces)) ip("netns", "add", space);
    ip("-n", spaces.agent, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", spaces.control);
    for (const [space, address] of [
      [spaces.agent, host],
      [spaces.control, own],
    ] as const) {
      ip("-n", space, "address", "add", `${address}/24`, "dev", "wire");
      ip("-n", space, "link", "set", "wire", "up");
    }
    [toAgent, toControl] = [start(spaces.agent), start(spaces.control)];
    const outcome = await toAgent({ listen: { host, identity: agent } });
    assert.ok("value" in outcome, JSON.stringify(outcome));
    port = Number(outcome.value);
  });
  after(() => {
    for (const child of children) child.kill("SIGKILL");
    for (const space of Object.values(spaces)) ip("netns", "del", space);
  });

  test("a control plane with a certificate of the authority drives it, and gets its events", async () => {
    assert.deepEqual(await connect(control), { value: true });
    assert.deepEqual(await toControl({ observe: true }), { value: 1 });
  });

  test("certificates of another authority, of an agent, and of another host are refused", async () => {
    await refused(connect(stranger), /unknown ca|ECONNRESET|another authority|EPIPE|alert/i);
    await refused(connect(otherAgent), /unsupported certificate|ECONNRESET|another authority|EPIPE|alert/i);
    await refused(connect(control, "host-2.brume"), /altnames|Hostname/);
    await refused(connect({ ...control, ca: stranger.certificate }), /certificate|issuer/);
  });

  test("a control plane whose certificate is revoked loses its connections, and gets no new one", async () => {
    assert.deepEqual(await connect(lost), { value: true });
    assert.deepEqual(await toAgent({ renew: agentAfterLoss }), { value: null });
    await refused(toControl({ observe: true }), /revoked|ECONNRESET|EPIPE|alert/i);
    await refused(connect(lost), /revoked|ECONNRESET|EPIPE|alert/i);
    assert.deepEqual(await connect(control), { value: true });
  });

  test("without the wire calls fail, and they work again with it", async () => {
    ip("-n", spaces.control, "link", "set", "wire", "down");
    await refused(connect(control), /ENETUNREACH|EHOSTUNREACH|does not respond/);
    ip("-n", spaces.control, "link", "set", "wire", "up");
    assert.deepEqual(await connect(control), { value: true });
  });
});
