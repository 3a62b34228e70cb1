/**
 * Simulated drivers behind a host agent on a Unix socket, where either side can be killed in any call: the agent before or after the
 * effect, the control plane while it waits for the result. A new agent takes over the socket, a new control plane connects to it. What was
 * killed never continues: its promises stay pending.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentClient, connectAgent } from "../../service/src/agent/client.ts";
import { contract } from "../../service/src/agent/contract/contract.ts";
import { type AgentServer, createAgent } from "../../service/src/agent/server.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { description, withSimulated } from "./agentlab.ts";
import type { CarriedDrivers, SimulatedDrivers } from "./serverfixture.ts";

/** What is killed in a call, and when. */
export const deaths = ["agent before", "agent after", "control plane after"] as const;
export type Death = (typeof deaths)[number];

/** Simulated drivers behind an agent that can be killed. */
export interface CrashLab {
  readonly drivers: CarriedDrivers;
  /**
   * Kills in call number `call` of the verb from now. Calls of other verbs do not count: work that waits repeats some as often as the time
   * permits. `killed` is called when the control plane is killed.
   */
  crashAt(verb: string, call: number, death: Death, killed: () => void): void;
  /** Plans nothing any more. Returns the verbs that were called since `crashAt`, and whether the crash has happened. */
  disarm(): { readonly verbs: readonly string[]; readonly hasCrashed: boolean };
}

type Table = Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>;
const groups = ["machines", "images", "consoles", "router"] as const;
const never = () => new Promise<never>(() => {});

/** Starts the agent and connects the first control plane. */
export async function createCrashLab({ machines, router }: SimulatedDrivers): Promise<CrashLab> {
  const folder = mkdtempSync(join(tmpdir(), "brume-crash-"));
  const socket = join(folder, "socket");
  let stored = 0;
  const fence = { read: () => stored, write: (number: number) => void (stored = number) };
  const local = withSimulated({ machines, images: machines, consoles: machines, router });

  let plan: { readonly verb: string; calls: number; readonly death: Death; readonly killed: () => void } | null = null;
  let hasCrashed = false;
  let verbs: string[] = [];
  const isDue = (verb: string): Death | null => {
    verbs.push(verb);
    if (plan === null || verb !== plan.verb || --plan.calls > 0) return null;
    return plan.death;
  };

  let server: AgentServer;
  async function startAgent(): Promise<void> {
    let isDead = false;
    async function die(): Promise<never> {
      isDead = true;
      await server.close();
      await startAgent();
      return never();
    }
    async function call(verb: string, work: () => Promise<unknown>): Promise<unknown> {
      if (isDead) return never();
      const death = isDue(verb);
      const { killed } = plan ?? {};
      if (death !== null) [plan, hasCrashed] = [null, true];
      if (death === "agent before") return die();
      const result = await work();
      if (death === "agent after") return die();
      if (death === "control plane after") replaceControl(killed);
      return isDead ? never() : result;
    }
    const mortal = (group: (typeof groups)[number]): object => {
      const target = local[group] as unknown as Table;
      const methods: Record<string, (...args: unknown[]) => Promise<unknown>> = {};
      for (const name of Object.keys(contract[group]))
        methods[name] = (...args) => call(`${group}.${name}`, async () => target[name]?.(...args));
      return { ...local[group], ...methods };
    };
    server = createAgent({
      drivers: { ...local, ...Object.fromEntries(groups.map((group) => [group, mortal(group)])) },
      description: description(),
      release: "test",
      log: silentLog,
      fence,
    });
    await server.listenUnix(socket);
  }

  const connect = () => connectAgent({ socket }, { release: "test", log: silentLog });
  let life = 0;
  let client: Promise<AgentClient>;
  function replaceControl(killed: (() => void) | undefined): void {
    life++;
    const former = client;
    client = former.then((one) => one.close()).then(connect);
    killed?.();
  }
  /**
   * Calls the current client. A call of a control plane that was killed meanwhile never returns. An observation fails: the fixture shares it
   * with the next control plane, which would wait for it.
   */
  const forward = (group: (typeof groups)[number]): Table =>
    Object.fromEntries(
      Object.keys(contract[group]).map((name) => [
        name,
        async (...args: unknown[]) => {
          const own = life;
          try {
            const result = await ((await client)[group] as unknown as Table)[name]?.(...args);
            if (own === life) return result;
          } catch (error) {
            if (own === life) throw error;
          }
          if (name === "observe") throw new Error("the control plane was killed");
          return never();
        },
      ]),
    );

  await startAgent();
  client = connect();
  await client;
  const drivers = {
    ...Object.fromEntries(groups.map((group) => [group, forward(group)])),
    async close() {
      (await client).close();
      await server.close();
      rmSync(folder, { recursive: true });
    },
  } as unknown as CarriedDrivers;
  const { deviceOf, onPower, onDevice } = machines;
  Object.assign(drivers.machines, { deviceOf, onPower, onDevice });
  return {
    drivers,
    crashAt(verb, calls, death, killed) {
      plan = { verb, calls, death, killed };
      [hasCrashed, verbs] = [false, []];
    },
    disarm() {
      plan = null;
      return { verbs: [...verbs], hasCrashed };
    },
  };
}
