/**
 * The host agent: what it refuses (protocol, fence, generation, input), how it ends calls, and that a client reconnects without a lost or
 * doubled event. The conformance suites of the drivers run over the agent, too (`machine.test.ts`, `router.test.ts`).
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type AgentClient, connectAgent } from "../../service/src/agent/client.ts";
import { contract } from "../../service/src/agent/contract/contract.ts";
import { headers as names, protocol } from "../../service/src/agent/contract/verb.ts";
import { AgentError, type AgentErrorCode, type WireError } from "../../service/src/agent/error.ts";
import { fenceFile } from "../../service/src/agent/fence.ts";
import { createAgent } from "../../service/src/agent/server.ts";
import { silentLog } from "../../service/src/base/log.ts";
import type { PowerEvent } from "../../service/src/drivers/machine/interface.ts";
import { createSim, type SimulatedMachines } from "../../service/src/drivers/machine/sim/sim.ts";
import { createSim as createRouter, type SimulatedRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { type AgentLab, createAgentLab, description, withSimulated } from "../support/agentlab.ts";
import { machine } from "../support/machinelab.ts";
import { image, port } from "../support/networkspec.ts";
import { until, waitUntil } from "../support/waituntil.ts";

const isCode =
  (code: AgentErrorCode, text = /./) =>
  (error: unknown) =>
    error instanceof AgentError && error.code === code && text.test(error.message);

/** A response to a request that is not made by the client. */
interface Raw {
  readonly status: number;
  readonly body: WireError & { readonly epoch?: string };
}

/** Sends a request to the socket as a control plane would; `change` replaces its headers, undefined removes one. */
function send(
  lab: AgentLab,
  path: string,
  body: string,
  change: Readonly<Record<string, string | undefined>> = {},
): Promise<Raw> {
  assert.ok("socket" in lab.place);
  const { socket: socketPath } = lab.place;
  const sent = {
    [names.protocol]: String(protocol),
    [names.request]: crypto.randomUUID(),
    [names.fence]: "1000",
    ...change,
  };
  const headers = Object.fromEntries(
    Object.entries(sent).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path, method: "POST", headers }, (response) => {
      let text = "";
      response.on("data", (part) => (text += String(part)));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text || "{}") as Raw["body"] }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

describe("requests", () => {
  let sim: SimulatedMachines;
  let simulated: SimulatedRouter;
  let lab: AgentLab;
  let client: AgentClient;
  /** Observations of servers wait for it. */
  let observing = Promise.resolve();
  before(async () => {
    sim = createSim({ now: Date.now, images: null });
    simulated = createRouter(Date.now);
    const machines = { ...sim, observe: (only?: readonly number[]) => observing.then(() => sim.observe(only)) };
    lab = await createAgentLab({ machines, images: sim, consoles: sim, router: simulated }, "unix", {
      limits: { running: 3 },
    });
    client = await lab.connect({ fence: 1000 });
  });
  after(() => lab.close());

  test("another protocol version is refused with what to do", async () => {
    const newer = await send(lab, "/session/hello", "{}", { [names.protocol]: String(protocol + 1) });
    assert.deepEqual([newer.status, newer.body.code], [400, "protocol_mismatch"]);
    assert.match(newer.body.detail, /update the host agent and restart it/);
    const older = await send(lab, "/session/hello", "{}", { [names.protocol]: "0" });
    assert.match(older.body.detail, /update the control plane and restart it/);
  });

  test("headers and bodies that do not fit are refused, and the error never contains the value", async () => {
    const cases: [string, string, Record<string, string | undefined>?][] = [
      ["/machines/observe", "{}", { [names.protocol]: undefined }],
      ["/machines/observe", "{}", { [names.fence]: undefined }],
      ["/machines/observe", "{}", { [names.fence]: "-1" }],
      ["/machines/observe", "{}", { [names.request]: "../x" }],
      ["/machines/observe", "{}", { [names.deadline]: "soon" }],
      ["/machines/observe", "nonsense-7f"],
      ["/machines/observe", '{"secret-7f":1}'],
      ["/machines/remove", '{"id":"secret-7f"}'],
      ["/images/removeImage", '{"name":"../../secret-7f"}'],
      ["/images/removeImage", '{"name":"secret-7f.part"}'],
    ];
    for (const [path, body, change] of cases) {
      const { status, body: error } = await send(lab, path, body, change);
      assert.deepEqual([status, error.code], [400, "input_invalid"], `${path} ${body}`);
      assert.doesNotMatch(error.detail, /secret-7f.*secret-7f|nonsense/);
    }
    for (const path of ["/machines/close", "/machines/onPower", "/machines/__proto__", "/nothing", "/router"])
      assert.equal((await send(lab, path, "{}")).body.code, "verb_unknown", path);
    const large = await send(lab, "/machines/remove", JSON.stringify({ id: 1, more: "x".repeat(70_000) }));
    assert.deepEqual([large.status, large.body.code], [413, "input_too_large"]);
  });

  test("every verb refuses an unknown field and a missing one", async () => {
    for (const [group, table] of Object.entries(contract))
      for (const [method, verb] of Object.entries(table)) {
        if ("stream" in verb) continue;
        const { body } = await send(lab, `/${group}/${method}`, '{"unknown":1}');
        assert.equal(body.code, "input_invalid", `${group}.${method}`);
      }
  });

  test("an error of a driver keeps its message and what callers distinguish", async () => {
    const one = machine({ id: 5 });
    await assert.rejects(client.machines.ensureRunning(one), (error: unknown) => {
      assert.ok(error instanceof AgentError);
      assert.deepEqual([error.code, error.final, error.retryable], ["driver_failed", true, false]);
      assert.match(error.message, /its disk is missing/);
      return true;
    });
    await client.machines.ensureDisk(one, { image: "any" });
    await client.machines.ensureRunning(one);
    sim.trouble(5, "NotResponding");
    await assert.rejects(
      client.machines.apply(one),
      (error: unknown) => error instanceof AgentError && error.isSilence && error.retryable,
    );
    sim.trouble(5, null);
    await client.machines.remove(5);
  });

  /** A port as it is sent. */
  const portRow = [1, "02:42:00:00:00:01", ["10.64.0.10"], null, "server-1"];

  test("an older generation is refused, and the client returns the one in force", async () => {
    const spec = image({ generation: 7, ports: [port(1, "10.64.0.10")] });
    assert.equal(await client.router.apply(spec), 7);
    assert.equal(await client.router.apply({ ...spec, generation: 6 }), 7);
    const body = JSON.stringify({ spec: { ...spec, generation: 6, ports: [portRow] } });
    const reply = await send(lab, "/router/apply", body);
    assert.match(JSON.stringify(reply.body), /stale_generation/);
    await client.router.remove(7);
  });

  test("the agent derives the device of a port", async () => {
    for (const one of [[...portRow, "eth0"], port(1, "10.64.0.10", { device: "eth0" })]) {
      const wrong = JSON.stringify({ spec: { ...image(), ports: [one] } });
      assert.equal((await send(lab, "/router/apply", wrong)).body.code, "input_invalid");
    }
    await client.router.apply(image({ id: 8, ports: [port(1, "10.64.0.10", { device: "eth0" })] }));
    await client.router.applyPorts({ id: 8, from: 1, generation: 2, ports: [port(2, "10.64.0.11")], removed: [] });
    const [applied] = simulated.images().filter(({ id }) => id === 8);
    assert.deepEqual(
      applied?.ports.map(({ device }) => device),
      [1, 2].map((nic) => sim.deviceOf(nic)),
    );
    await client.router.remove(8);
  });

  test("a canceled call ends with the reason of its signal, also if it was canceled before", async () => {
    sim.delay("ensureIdentityRemoved", 200);
    const reason = new Error("enough");
    await client.machines.ensureDisk(machine({ id: 6 }), { image: "any" });
    await client.machines.ensureRunning(machine({ id: 6 }));
    sim.deafen(6, true);
    const controller = new AbortController();
    const waiting = client.machines.ensureStopped(6, "shutdown", controller.signal);
    setTimeout(() => controller.abort(reason), 50);
    assert.equal(await waiting, false, "the driver decides what an abort means");
    assert.equal(await client.machines.ensureStopped(6, "shutdown", AbortSignal.abort(reason)), false);
    await client.machines.remove(6);
  });

  test("calls beyond the limit are refused as busy, and a deadline releases the caller", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    observing = promise;
    let refused = 0;
    const calls = [1, 2, 3, 4, 5].map(() => client.machines.observe());
    for (const call of calls) call.catch(() => refused++);
    const isFull = (count: number) => count >= 2;
    await waitUntil("two refusals", () => refused, isFull);
    resolve();
    const many = await Promise.allSettled(calls);
    const busy = many.filter((one) => one.status === "rejected" && isCode("busy")(one.reason));
    assert.deepEqual([refused, busy.length], [2, 2]);
    observing = new Promise(() => {});
    const late = await send(lab, "/machines/observe", "{}", { [names.deadline]: "50" });
    assert.deepEqual([late.status, late.body.code], [504, "deadline_exceeded"]);
    observing = Promise.resolve();
  });

  test("requests count before they are read, and the bodies of all calls together are limited", async (t) => {
    const limits = { perSecond: 8, bytes: 100_000 };
    const other = await createAgentLab({ machines: sim }, "unix", { limits });
    t.after(() => other.close());
    const second = (): Promise<unknown> => new Promise((done) => setTimeout(done, 1010 - (performance.now() % 1000)));
    const ask = (path: string, body: string) => send(other, path, body).then((reply) => reply.body?.code ?? "ok");
    await second();
    // Two bodies that wait for their last byte fill the space.
    const place = other.place as { readonly socket: string };
    const waiting = [1, 2].map((at) =>
      request({
        socketPath: place.socket,
        path: "/router/apply",
        method: "POST",
        headers: {
          [names.protocol]: String(protocol),
          [names.request]: `w-${at}`,
          [names.fence]: "1000",
          "content-length": 45_001,
        },
      }).on("error", () => {}),
    );
    for (const one of waiting) one.write(" ".repeat(45_000));
    // Until the agent has read the two; a second has calls for four attempts.
    for (let tries = 1; (await ask("/router/apply", " ".repeat(20_000))) !== "busy"; tries++)
      if (tries % 4 === 0) await second();
    assert.equal(await ask("/router/remove", '{"id":7}'), "ok");
    for (const one of waiting) one.destroy();
    await second();
    // The space is free again, and invalid requests use up the calls of this second.
    assert.equal(await ask("/router/apply", " ".repeat(20_000)), "input_invalid");
    const askAgain = () => ask("/router/apply", " ".repeat(20_000));
    await waitUntil("the limit of calls in a second", askAgain, (code) => code === "busy", 0);
  });

  test("a newer control plane ends the older one", async () => {
    const second = await lab.connect();
    await assert.rejects(client.machines.observe(), isCode("stale_fence", /stop this control plane/));
    await assert.rejects(client.consoles.openSerial(1), isCode("stale_fence"));
    await second.machines.observe();
    await assert.rejects(lab.connect({ fence: 999 }), isCode("stale_fence"));
    const third = await lab.connect({ fence: 5000 });
    await third.machines.observe();
    await assert.rejects(second.machines.observe(), isCode("stale_fence"));
  });
});

const hindrance = process.getuid?.() === 0 ? false : "needs root";
if (hindrance !== false) console.log(`identity of processes at the agent's socket: not tried, ${hindrance}`);

test("only root and the user of the control plane can use the socket", { skip: hindrance }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "brume-peer-"));
  const drivers = withSimulated({});
  const agent = createAgent({ drivers, description: description(), release: "test", log: silentLog });
  t.after(async () => {
    await agent.close();
    rmSync(folder, { recursive: true });
  });
  const [path, own, other] = [join(folder, "socket"), 65_533, 65_532];
  chmodSync(folder, 0o755);
  await agent.listenUnix(path, { uid: own, gid: own });
  const { mode, uid } = statSync(path);
  assert.deepEqual([mode & 0o777, uid], [0o600, own]);
  /** Returns what a process of this user gets from the socket. */
  const connectAs = async (uid: number): Promise<string> => {
    const child = spawn("curl", ["-s", "-d", "{}", "--unix-socket", path, "http://agent/session/hello"], {
      uid,
      gid: uid,
    });
    let text = "";
    child.stdout.on("data", (part) => (text += String(part)));
    await once(child, "close");
    return text;
  };
  assert.match(await connectAs(own), /input_invalid/);
  assert.equal(await connectAs(other), "");
  // Even if the mode is changed.
  chmodSync(path, 0o666);
  assert.equal(await connectAs(other), "");
  assert.match(await connectAs(own), /input_invalid/);
});

describe("connection", () => {
  test("a crash is reported in milliseconds, and a console is a byte stream in both directions", async () => {
    const sim = createSim({ now: Date.now, images: null });
    const lab = await createAgentLab({ machines: sim, images: sim, consoles: sim });
    const { machines, consoles } = await lab.connect();
    const events: PowerEvent[] = [];
    machines.onPower((event) => events.push(event));
    await machines.ensureDisk(machine(), { image: "any" });
    await machines.ensureRunning(machine());
    assert.equal(events.length, 1, "the event arrives before the result");
    const serial = await consoles.openSerial(1);
    const echo = new Promise<string>((resolve) => serial.once("data", (bytes) => resolve(String(bytes))));
    serial.write("x");
    assert.notEqual(await echo, "");
    sim.kill(1);
    await until("the end is reported", async () => events.length === 2);
    assert.deepEqual([events[1]?.id, events[1]?.exit?.reason], [1, "died"]);
    serial.destroy();
    await assert.rejects(consoles.openSerial(1), /off/);
    await lab.close();
    await assert.rejects(machines.observe(), (error: unknown) => error instanceof AgentError && error.retryable);
  });

  test("after a restart of the agent, calls and events continue, and each change is published once", async () => {
    const sim = createSim({ now: Date.now, images: null });
    const drivers = withSimulated({ machines: sim, images: sim, consoles: sim });
    const lab = await createAgentLab(drivers);
    const client = await lab.connect();
    assert.ok("socket" in lab.place);
    const events: string[] = [];
    client.machines.onPower(({ id, boot, exit }) => events.push(`${id}.${boot} ${exit?.reason ?? "start"}`));
    const returns: boolean[] = [];
    client.onReturn((isNew) => returns.push(isNew));
    for (const id of [1, 2, 3]) {
      await client.machines.ensureDisk(machine({ id }), { image: "any" });
      await client.machines.ensureRunning(machine({ id }));
    }
    await lab.server.close();
    await until("the loss is noticed", async () => !client.isUp());
    await assert.rejects(client.machines.observe(), isCode("away"));
    sim.kill(1);
    await sim.ensureRunning(machine({ id: 2, boot: 2 }));
    const options = { drivers, description: description(), release: "next", log: silentLog };
    const again = createAgent(options);
    await again.listenUnix(lab.place.socket);
    await until("it is back", async () => returns.length === 1);
    assert.deepEqual(returns, [true]);
    assert.deepEqual(events, ["1.1 start", "2.1 start", "3.1 start", "1.1 died", "2.2 start"]);
    sim.kill(3);
    await until("the next event arrives", async () => events.length === 6);
    assert.equal((await client.machines.observe()).machines.length, 3);
    assert.equal(events.length, 6);
    await lab.close();
    await again.close();
  });

  test("an older control plane is refused after a restart of the agent, too", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "brume-fence-"));
    const path = join(folder, "fence");
    const warnings: string[] = [];
    const options = () => ({
      fence: fenceFile(path),
      log: (level: string, text: string) => void (level === "warn" && warnings.push(text)),
    });
    const first = await createAgentLab({}, "unix", options());
    t.after(() => rmSync(folder, { recursive: true }));
    await first.connect({ fence: 41 });
    await first.connect();
    const { ino, size, mode } = statSync(path);
    assert.equal(mode & 0o777, 0o600);
    await first.close();
    const second = await createAgentLab({}, "unix", options());
    await assert.rejects(second.connect({ fence: 41 }), isCode("stale_fence"));
    await second.connect({ fence: 42 });
    await assert.rejects(second.connect({ fence: 1_000_043 }), isCode("input_invalid", /at most 1000000 above/));
    // A full disk refuses new files and longer ones, but not a change of this one.
    await second.connect({ fence: 1_000_042 });
    assert.deepEqual([statSync(path).ino, statSync(path).size], [ino, size]);
    // Without the disk, the control plane of this host is served; a number of a lease is refused, because it could be forgotten.
    rmSync(path);
    await second.connect();
    assert.equal(warnings.filter((text) => /was not stored/.test(text)).length, 1);
    await assert.rejects(
      second.connect({ fence: 1_000_044 }),
      isCode("driver_failed", /something that it needs is missing/),
    );
    await second.close();
    writeFileSync(path, "many");
    assert.throws(() => fenceFile(path), /must contain a number/);
  });

  test("a client waits for an agent that starts later, and an unreachable one is an error with the reason", async () => {
    const drivers = withSimulated({});
    const lab = await createAgentLab(drivers);
    assert.ok("socket" in lab.place);
    await lab.server.close();
    const options = { release: "test", log: silentLog };
    await assert.rejects(connectAgent(lab.place, { ...options, wait: 100 }), isCode("away", /does not respond/));
    const waiting = connectAgent(lab.place, options);
    const again = createAgent({ drivers, description: description(), release: "next", log: silentLog });
    await again.listenUnix(lab.place.socket);
    const client = await waiting;
    assert.equal((await client.machines.observe()).ready, true);
    client.close();
    await again.close();
    await lab.close();
  });
});
