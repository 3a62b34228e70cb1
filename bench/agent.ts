/**
 * Compares calls of the drivers in this process with the same calls through a host agent in another process, over its Unix socket and over
 * TLS, with a bare HTTP request over a Unix socket, and with the echo of two bytes over one, which is what two wakes of a process cost. The
 * simulated drivers do nearly nothing, so the difference is the cost of the agent. All kinds alternate call by call, so that other work of
 * the host slows them equally; each figure is the median of the best of ten rounds. `npm run bench -- agent`, or with a part of the names
 * of verbs: `npm run bench -- agent router.apply`. "CPU adds" is the processor time of both processes, which depends less on other work.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { connect, createServer as createEcho } from "node:net";
import { join } from "node:path";
import { type AgentClient, connectAgent } from "../service/src/agent/client.ts";
import type { Drivers } from "../service/src/agent/contract/contract.ts";
import type { Place } from "../service/src/agent/transport.ts";
import { silentLog } from "../service/src/base/log.ts";
import type { Port, Router } from "../service/src/drivers/router/interface.ts";
import { type Carrier, createAgentLab, withSimulated } from "../test/support/agentlab.ts";
import { machine } from "../test/support/machinelab.ts";
import { image, port } from "../test/support/networkspec.ts";
import { medianOf } from "./lib/figures.ts";
import { runTime } from "./lib/process.ts";

const [role, carrier] = process.argv.slice(2);
const rounds = 10;
const turns = 200;
if (role === "agent") {
  const lab = await createAgentLab({}, carrier as Carrier);
  const bare = createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
    incoming.resume().on("end", () => response.writeHead(200, { "content-length": 2 }).end("[]"));
  });
  const path = "socket" in lab.place ? `${lab.place.socket}.bare` : "";
  if (path !== "") {
    bare.listen(path);
    createEcho((socket) => void socket.pipe(socket)).listen(`${path}.echo`);
  }
  process.send?.({ place: lab.place, bare: path });
  process.on("disconnect", () => process.exit());
} else await measure();

async function startAgent(
  carrier: Carrier,
): Promise<{ client: AgentClient; bare: string; pid: number; end: () => void }> {
  const child = fork(join(import.meta.dirname, "agent.ts"), ["agent", carrier]);
  const [{ place, bare }] = (await once(child, "message")) as [{ place: Place; bare: string }];
  const client = await connectAgent(place, { release: "bench", log: silentLog });
  const end = (): void => {
    client.close();
    child.disconnect();
  };
  return { client, bare, pid: child.pid ?? 0, end };
}

async function measure(): Promise<void> {
  const [unix, tls] = [await startAgent("unix"), await startAgent("tls")];
  const near = withSimulated({});
  const pool = new Agent({ keepAlive: true });
  const bare = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request({
        agent: pool,
        socketPath: unix.bare,
        method: "POST",
        path: "/",
        headers: { "content-length": 2 },
      });
      sent.on("response", (response) => response.resume().on("end", resolve));
      sent.on("error", reject);
      sent.end("{}");
    });
  const ports = Array.from({ length: 100 }, (_, at) => port(at + 1, `10.64.1.${at + 1}`));
  const uuid = "00000000-0000-4000-8000-000000000001";
  const seed = [{ name: "user-data", content: "x".repeat(4000) }];
  const v4 = { cidr: "10.64.0.0/16", gateway: "10.64.0.1" };
  /** The generation that each router has. */
  const generations = new Map<Router, number>();
  const apply = async (router: Router, portsFor: (generation: number) => readonly Port[]): Promise<void> => {
    const generation = (generations.get(router) ?? 0) + 1;
    generations.set(router, await router.apply(image({ generation, v4, ports: portsFor(generation) })));
  };
  const applyPort = async (router: Router): Promise<void> => {
    if (!generations.has(router)) await apply(router, () => ports);
    const from = generations.get(router) ?? 0;
    const change = { id: 7, from, generation: from + 1, ports: ports.slice(0, 1), removed: [] };
    if (!(await router.applyPorts(change))) throw new Error("the router refused to change one port");
    generations.set(router, from + 1);
  };
  const verbs: Record<string, (drivers: Drivers) => Promise<unknown>> = {
    "images.listImages": ({ images }) => images.listImages(),
    "machines.ensureDisk": ({ machines }) => machines.ensureDisk(machine({ uuid, seed }), { image: "any" }),
    "machines.ensureRunning": ({ machines }) => machines.ensureRunning(machine({ uuid, seed })),
    "machines.observe": ({ machines }) => machines.observe(),
    // One port differs from the call before.
    "router.apply (100 ports)": ({ router }) =>
      apply(router, (generation) => [{ ...ports[0], bandwidth: (generation % 100) + 1 } as Port, ...ports.slice(1)]),
    // Another order: all ports are sent, as at the first call after a start.
    "router.apply (100 ports, all sent)": ({ router }) =>
      apply(router, (generation) => (generation % 2 === 0 ? ports : [...ports].reverse())),
    "router.applyPorts (1 of 100)": ({ router }) => applyPort(router),
    "router.observe (100 ports)": ({ router }) => router.observe(),
    "router.observePort": ({ router }) => router.observePort(7, 1),
  };
  const line = connect(`${unix.bare}.echo`);
  await once(line, "connect");
  const echo = (): Promise<unknown> => {
    line.write("{}");
    return once(line, "data");
  };
  const rows: Record<string, object> = {};
  for (const [name, call] of Object.entries(verbs).filter(([name]) => name.includes(role ?? ""))) {
    const kinds = [() => call(near), echo, bare, () => call(unix.client), () => call(tls.client)];
    const best = kinds.map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round <= rounds; round++) {
      const times = kinds.map((): number[] => []);
      for (let turn = 0; turn < turns; turn++)
        for (const [at, run] of kinds.entries()) {
          const begun = performance.now();
          await run();
          times[at]?.push(performance.now() - begun);
        }
      // The first round warms up.
      if (round > 0)
        for (const [at, all] of times.entries())
          best[at] = Math.min(best[at] ?? 0, all.sort((a, b) => a - b)[turns >> 1] ?? 0);
    }
    const [cpuInside = 0, cpuSocket = 0] = await processorTimes(
      [() => call(near), () => call(unix.client)],
      [process.pid, unix.pid],
    );
    const [inside = 0, echoed = 0, plain = 0, socket = 0, secure = 0] = best;
    rows[name] = {
      "in process": inside.toFixed(3),
      echo: echoed.toFixed(3),
      "bare HTTP": plain.toFixed(3),
      socket: socket.toFixed(3),
      TLS: secure.toFixed(3),
      "socket adds": (socket - inside).toFixed(3),
      "socket / bare": ((socket - inside) / plain).toFixed(2),
      "CPU adds": (cpuSocket - cpuInside).toFixed(3),
    };
  }
  console.log(`host agent: milliseconds per call, median of ${turns} in the best of ${rounds} rounds`);
  console.table(rows);
  line.destroy();
  unix.end();
  tls.end();
  pool.destroy();
}

/** Returns the processor time of one call of each kind in these processes, in milliseconds: the median of ten rounds that alternate. */
async function processorTimes(kinds: readonly (() => Promise<unknown>)[], pids: readonly number[]): Promise<number[]> {
  const spent = kinds.map((): number[] => []);
  for (let round = 0; round < rounds; round++)
    for (const [at, run] of kinds.entries()) {
      const before = pids.reduce((sum, pid) => sum + runTime(pid), 0);
      for (let turn = 0; turn < turns; turn++) await run();
      spent[at]?.push((pids.reduce((sum, pid) => sum + runTime(pid), 0) - before) / turns);
    }
  return spent.map(medianOf);
}
