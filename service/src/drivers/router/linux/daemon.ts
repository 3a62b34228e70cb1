/**
 * Programs that live in a network's namespace and outlive the service. They are known by their name among the namespace's
 * processes: `ip netns exec` becomes the program itself, and no number in a file can lie after a crash.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child, Exec } from "../../exec.ts";

/**
 * Of a namespace whose name somebody took away: it lives on as long as they do, and only their own words, arguments and environment,
 * still say whose they are. `mark` is what nobody else has in them.
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

/** `program` as in /proc/PID/comm, which has at most 15 characters. */
export async function findDaemons(exec: Exec, namespace: string, program: string): Promise<readonly Child[]> {
  const pids = await exec.run(["ip", "netns", "pids", namespace]).catch(() => "");
  const children = pids
    .split("\n")
    .filter((pid) => pid !== "")
    .map(async (pid) => {
      const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
      return name.trim() === program ? exec.find(Number(pid)) : null;
    });
  return (await Promise.all(children)).filter((child) => child !== null);
}

const limit = 2000;

/** Asks by `signal`, then kills; resolves when they are gone. Nothing to end is fine. `mark`: see `findStrays`. */
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
  throw new Error(`${program} in ${namespace} does not end`);
}
