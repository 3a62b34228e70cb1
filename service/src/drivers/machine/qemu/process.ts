/**
 * The process of a server: started with rights to nothing but its folder, and known by its name and number of user ever after. What
 * is not in /proc under both is not ours, whatever a file says, and is not ended.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child, Exec } from "../../exec.ts";
import { serverOf } from "./name.ts";

/** One number per server, without a user of that name: neighbours have nothing in common. */
export const uidOf = (firstUid: number, id: number): number => firstUid + id;

/** Servers that have a process. Two of one id cannot be: the layer in force is locked. */
export function findProcesses(exec: Exec, tag: string, firstUid: number): ReadonlyMap<number, Child> {
  const found = new Map<number, Child>();
  for (const entry of readdirSync("/proc")) {
    const id = /^[0-9]+$/.test(entry) ? readServer(entry, tag) : null;
    if (id === null) continue;
    const child = exec.find(Number(entry));
    if (child !== null && ownerOf(entry) === uidOf(firstUid, id)) found.set(id, child);
  }
  return found;
}

function readServer(pid: string, tag: string): number | null {
  try {
    const [, option, name = ""] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return option === "-name" && name.startsWith("guest=") ? serverOf(tag, name.slice("guest=".length)) : null;
  } catch {
    return null;
  }
}

/** Who the process runs as; its files in /proc may be root's, the status tells. */
function ownerOf(pid: string): number | null {
  try {
    const [, uid = ""] = /^Uid:\t([0-9]+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return uid === "" ? null : Number(uid);
  } catch {
    return null;
  }
}

/** Of the machine's life since its last start; another one after each. */
export const hostBoot = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

export async function waitForEnd(exec: Exec, child: Child, limit: number): Promise<boolean> {
  for (let waited = 0; exec.isAlive(child); waited += 10) {
    if (waited >= limit) return false;
    await sleep(10);
  }
  return true;
}

/** Asks, then does not ask. Resolves when it is gone. */
export async function endProcess(exec: Exec, child: Child): Promise<void> {
  exec.signal(child, "SIGTERM");
  if (await waitForEnd(exec, child, 5000)) return;
  exec.signal(child, "SIGKILL");
  if (!(await waitForEnd(exec, child, 5000))) throw new Error(`process ${child.pid} does not end`);
}

/** Milliseconds of one core, and MB of memory, that the process has had; zeros when it is gone. */
export function usageOf({ pid }: Child): { cpuTime: number; resident: number } {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    // utime and stime in ticks, which are hundredths everywhere; resident set in pages of 4096 bytes.
    return {
      cpuTime: (Number(fields[11]) + Number(fields[12])) * 10,
      resident: Math.round((Number(fields[21]) * 4096) / 2 ** 20),
    };
  } catch {
    return { cpuTime: 0, resident: 0 };
  }
}
