/** The fence of the host agent holds for what is under way when a newer control plane connects: bodies, and streams that open late. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { PassThrough } from "node:stream";
import { type TestContext, test } from "node:test";
import { headers as names, protocol } from "../../service/src/agent/contract/verb.ts";
import { createSim } from "../../service/src/drivers/machine/sim/sim.ts";
import { createSim as createRouter } from "../../service/src/drivers/router/sim/sim.ts";
import { type AgentLab, createAgentLab, withSimulated } from "../support/agentlab.ts";
import { machine } from "../support/machinelab.ts";
import { until } from "../support/waituntil.ts";

/** Begins a request of the control plane with this number. */
function begin(lab: AgentLab, path: string, fence: number, more: Readonly<Record<string, string | number>> = {}) {
  assert.ok("socket" in lab.place);
  const headers = {
    [names.protocol]: String(protocol),
    [names.request]: crypto.randomUUID(),
    [names.fence]: String(fence),
    ...more,
  };
  const method = "upgrade" in more || path.startsWith("/events") ? "GET" : "POST";
  return request({ socketPath: lab.place.socket, path, method, headers });
}

async function labOf(t: TestContext, ...options: Parameters<typeof createAgentLab>): Promise<AgentLab> {
  const lab = await createAgentLab(...options);
  t.after(() => lab.close());
  return lab;
}

const upgrade = { connection: "Upgrade", upgrade: "brume-bytes" };
const openSerial = `/consoles/openSerial?input=${encodeURIComponent('{"id":1}')}`;

test("a body that arrives after a newer control plane has connected is refused", async (t) => {
  const removed: number[] = [];
  const router = { ...createRouter(Date.now), remove: async (id: number) => void removed.push(id) };
  const lab = await labOf(t, { router });
  const body = '{"id":7}';
  const old = begin(lab, "/router/remove", 1, { "content-length": body.length });
  const response = once(old, "response");
  old.write(body.slice(0, 1));
  await (await lab.connect({ fence: 2 })).machines.observe();
  old.end(body.slice(1));
  const [{ statusCode }] = (await response) as [{ statusCode: number }];
  assert.deepEqual([statusCode, removed], [409, []]);
});

test("a stream that the driver opens after its call has ended is closed", async (t) => {
  const { promise: opened, resolve } = Promise.withResolvers<PassThrough>();
  const { promise: called, resolve: call } = Promise.withResolvers<void>();
  const consoles = {
    ...withSimulated({}).consoles,
    openSerial() {
      call();
      return opened;
    },
  };
  const lab = await labOf(t, { consoles });
  const old = begin(lab, openSerial, 1, upgrade).on("error", () => {});
  const response = once(old, "response");
  old.end();
  await called;
  await (await lab.connect({ fence: 2 })).machines.observe();
  const [{ statusCode }] = (await response) as [{ statusCode: number }];
  assert.equal(statusCode, 409);
  const stream = new PassThrough();
  resolve(stream);
  await until("the stream is closed", async () => stream.destroyed);
});

test("open consoles leave space for the events", async (t) => {
  const sim = createSim({ now: Date.now, images: null });
  const lab = await labOf(t, { machines: sim, consoles: sim }, "unix", { limits: { streams: 2 } });
  const client = await lab.connect();
  await client.machines.ensureDisk(machine(), { image: "any" });
  await client.machines.ensureRunning(machine());
  for (let at = 0; at < 2; at++) (await client.consoles.openVnc(1)).resume();
  await assert.rejects(client.consoles.openVnc(1), { code: "busy" });
  await (await lab.connect()).machines.observe();
});
