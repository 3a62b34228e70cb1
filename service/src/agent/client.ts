/**
 * The control plane's side of the host agent: connects, compares versions, and returns objects with the driver interfaces, so that the
 * service cannot distinguish an agent from drivers in its own process. Methods are derived from the contract.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { Contents, Uploads } from "../drivers/content/interface.ts";
import type { Consoles, Images, Machines, MachinesStatus } from "../drivers/machine/interface.ts";
import { deviceOf } from "../drivers/machine/qemu/name.ts";
import type { NetworkSpec, Router } from "../drivers/router/interface.ts";
import { createCaller } from "./caller.ts";
import { contract } from "./contract/contract.ts";
import { type Description, sessionVerbs, type Welcome } from "./contract/session.ts";
import { protocol, type Verb } from "./contract/verb.ts";
import { AgentError } from "./error.ts";
import { createFollower } from "./follower.ts";
import { createSentPorts } from "./portlist.ts";
import { createTransport, type Place } from "./transport.ts";

/** Options of `connectAgent`. */
export interface ConnectOptions {
  /** Release of the control plane. */
  readonly release: string;
  readonly log: Log;
  /** Fence number of a lease. Absent: the agent gives one, which ends older control planes. */
  readonly fence?: number;
  /** Milliseconds to wait for the agent at the start; default 10,000. */
  readonly wait?: number;
}

/** An agent, with the driver interfaces of its host. */
export interface AgentClient {
  readonly machines: Machines;
  readonly images: Images;
  readonly consoles: Consoles;
  readonly router: Router;
  readonly contents: Contents;
  readonly uploads: Uploads;
  /** What the agent drives, as of the last connection. */
  description(): Description;
  /** False while the connection is lost. Calls then fail with an error that is retryable. */
  isUp(): boolean;
  /** Calls the listener when the agent is back after its connection was lost; `isNew`: it has restarted. Returns a function that unsubscribes. */
  onReturn(listener: (isNew: boolean) => void): () => void;
  /** Closes the connections. The agent and what it drives continue. */
  close(): void;
}

const defaultWait = 10_000;
const retryPause = 50;

/** Connects to an agent. Rejects with an `AgentError` if it does not respond in time, or speaks another protocol. */
export async function connectAgent(place: Place, options: ConnectOptions): Promise<AgentClient> {
  const { release, log, wait = defaultWait } = options;
  const transport = createTransport(place);
  const listeners = new Set<(isNew: boolean) => void>();
  let fence = options.fence ?? null;
  const caller = createCaller({ transport, fence: () => fence ?? 0, reach: (event) => follower.reach(event) });
  const sayHello = async (): Promise<Welcome> =>
    (await caller.call("session", "hello", sessionVerbs.hello, [protocol, release, fence])) as Welcome;

  const methodsOf = (
    group: "machines" | "images" | "consoles" | "router" | "contents" | "uploads",
  ): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(contract[group] as Readonly<Record<string, Verb>>).map(([method, verb]) => [
        method,
        (...given: readonly unknown[]) => caller.call(group, method, verb, given),
      ]),
    );
  const requests = methodsOf("machines") as unknown as Omit<Machines, "onPower" | "onDevice" | "deviceOf">;
  const networks = methodsOf("router") as unknown as Omit<Router, "close">;
  const sentPorts = createSentPorts();
  const follower = createFollower({
    transport,
    headers: caller.headers,
    log,
    observe: () => requests.observe(),
    async returned(isNew) {
      if (isNew) welcome = await sayHello();
      log("info", isNew ? "The host agent has restarted." : "The host agent is back.", { release: welcome.release });
      for (const listener of listeners) listener(isNew);
    },
  });

  let welcome = await retryWhileAway(sayHello, wait);
  fence = welcome.fence;
  await follower.start().catch((error: unknown) => {
    follower.close();
    throw error;
  });

  return {
    machines: {
      ...requests,
      async observe(only?: readonly number[]): Promise<MachinesStatus> {
        const since = follower.last;
        const status = await requests.observe(only);
        if (only === undefined) follower.saw(status, since);
        return status;
      },
      deviceOf: (nic) => deviceOf(welcome.description.tag, nic),
      onPower: follower.onPower,
      onDevice: follower.onDevice,
    },
    images: methodsOf("images") as unknown as Images,
    consoles: methodsOf("consoles") as unknown as Consoles,
    router: {
      ...networks,
      apply: (spec, onRepair) =>
        sentPorts.apply(spec, (ports) => networks.apply({ ...spec, ports } as unknown as NetworkSpec, onRepair)),
      async remove(id) {
        sentPorts.forget(id);
        await networks.remove(id);
      },
      close: async () => {},
    },
    contents: methodsOf("contents") as unknown as Contents,
    uploads: methodsOf("uploads") as unknown as Uploads,
    description: () => welcome.description,
    isUp: () => follower.isUp,
    onReturn(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      follower.close();
      transport.reset(new AgentError("away", "the connection to the host agent was closed"));
    },
  };
}

/** Runs `work` until it succeeds, `ms` milliseconds have passed, or the agent refuses it. */
async function retryWhileAway<T>(work: () => Promise<T>, ms: number): Promise<T> {
  for (const end = performance.now() + ms; ; await sleep(retryPause)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof AgentError) || error.code !== "away" || performance.now() > end) throw error;
    }
  }
}
