/**
 * Finds and stops programs that run in a network's namespace and outlive the service. They are identified by program name among the
 * processes of the namespace (`ip netns exec` replaces itself with the program), which stays correct after a crash, unlike a PID file.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child, Exec } from "../../exec.ts";

/**
 * Finds programs in a namespace that has no name any more; it lives as long as they do. Only their arguments and environment identify them.
 * `mark` is a text that no other program has there.
 */
function findStrays(exec: Exec, program: string, mark: string): readonly Child[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const read = (file: string): string => {
        try {
          return readFileSync(`/proc/${pid}/${file}`, "latin1");
        } catch {
          return "";
        }
      };
      if (read("comm").trim() !== program || !`${read("cmdline")}\0${read("environ")}`.includes(mark)) return [];
      return exec.find(Number(pid)) ?? [];
    });
}

/** Returns the processes of a namespace that run `program`, given as in /proc/PID/comm (at most 15 characters). */
export async function findDaemons(exec: Exec, namespace: string, program: string): Promise<readonly Child[]> {
  const pids = await exec.run(["ip", "netns", "pids", namespace], { rights: "all" }).catch(() => "");
  const children = pids
    .split("\n")
    .filter((pid) => pid !== "")
    .map(async (pid) => {
      const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
      return name.trim() === program ? exec.find(Number(pid)) : null;
    });
  return (await Promise.all(children)).filter((child) => child !== null);
}

/** Milliseconds in which a started program must respond. */
const startLimit = 10_000;

/**
 * Waits until a started program responds: `attempt` resolves to its response, or to null. Resolves to null if the program has ended, or
 * after `limit` milliseconds, also if it hangs and each attempt takes long.
 */
export async function waitForStart<Response>(
  exec: Pick<Exec, "isAlive">,
  child: Child,
  attempt: () => Promise<Response | null>,
  limit = startLimit,
): Promise<Response | null> {
  for (const until = performance.now() + limit; exec.isAlive(child) && performance.now() < until; await sleep(20)) {
    const response = await attempt();
    if (response !== null) return response;
  }
  return null;
}

/** Time limit for each signal in milliseconds. */
const limit = 2000;

/**
 * Sends `signal`, after two seconds SIGKILL, and resolves when the processes have ended. Throws when they do not end. `mark`: see
 * `findStrays`.
 */
export async function stopDaemons(
  exec: Exec,
  namespace: string,
  program: string,
  mark: string,
  signal: "SIGTERM" | "SIGKILL",
): Promise<void> {
  const isNamed = existsSync(`/run/netns/${namespace}`);
  const children = isNamed ? await findDaemons(exec, namespace, program) : findStrays(exec, program, mark);
  const end = async (signal: "SIGTERM" | "SIGKILL"): Promise<boolean> => {
    for (const child of children) exec.signal(child, signal);
    for (let waited = 0; waited < limit; waited += 20) {
      if (!children.some((child) => exec.isAlive(child))) return true;
      await sleep(20);
    }
    return false;
  };
  if ((await end(signal)) || (await end("SIGKILL"))) return;
  throw new Error(`${program} in ${namespace} did not end within ${limit} ms of SIGKILL`);
}
