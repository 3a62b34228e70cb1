/**
 * Finds, inspects and ends the QEMU processes of servers. A process belongs to us only if both its guest name and its user id in /proc
 * match; no other process is ended, even if a state file names it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Child, Exec } from "../../exec.ts";
import { type Folder, readState } from "./folder.ts";
import { serverOf } from "./name.ts";

/** Returns the user id of a server's process. Each server has its own, without an entry in /etc/passwd, so servers share no rights. */
export const uidOf = (firstUid: number, id: number): number => firstUid + id;

/** Returns the processes of this installation by server id. QEMU's lock on the top layer prevents two processes of one server. */
export function findProcesses(exec: Exec, tag: string, firstUid: number): ReadonlyMap<number, Child> {
  const found = new Map<number, Child>();
  for (const entry of readdirSync("/proc")) {
    const id = /^[0-9]+$/.test(entry) ? readServer(entry, tag) : null;
    const child = id === null ? null : findOwned(exec, Number(entry), uidOf(firstUid, id));
    if (id !== null && child !== null) found.set(id, child);
  }
  return found;
}

/** Returns the process in the state file of the server; null if it has ended. Costs the same beside any number of processes. */
export function findRecorded(exec: Exec, tag: string, firstUid: number, id: number, folder: Folder): Child | null {
  const pid = readState(folder)?.child.pid ?? 0;
  return readServer(String(pid), tag) === id ? findOwned(exec, pid, uidOf(firstUid, id)) : null;
}

/** Returns the process with this PID; null if it does not run or has another user id. */
function findOwned(exec: Exec, pid: number, uid: number): Child | null {
  const child = exec.find(pid);
  return child !== null && ownerOf(String(pid)) === uid ? child : null;
}

function readServer(pid: string, tag: string): number | null {
  try {
    const [, option, name = ""] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return option === "-name" && name.startsWith("guest=") ? serverOf(tag, name.slice("guest=".length)) : null;
  } catch {
    return null;
  }
}

/** Reads the user id from the status file, since files in /proc may be owned by root. */
function ownerOf(pid: string): number | null {
  try {
    const [, uid = ""] = /^Uid:\t([0-9]+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return uid === "" ? null : Number(uid);
  } catch {
    return null;
  }
}

/** Returns the id of the host's current boot; it changes at each boot. */
export const hostBoot = (): string => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** Waits until the process has ended, at most `limit` ms. Resolves to whether it has ended. */
export async function waitForEnd(exec: Exec, child: Child, limit: number): Promise<boolean> {
  for (let waited = 0; exec.isAlive(child); waited += 10) {
    if (waited >= limit) return false;
    await sleep(10);
  }
  return true;
}

/** Ends a process: SIGTERM, and SIGKILL after 5 seconds. Throws if it still exists 5 seconds later. */
export async function endProcess(exec: Exec, child: Child): Promise<void> {
  exec.signal(child, "SIGTERM");
  if (await waitForEnd(exec, child, 5000)) return;
  exec.signal(child, "SIGKILL");
  if (!(await waitForEnd(exec, child, 5000)))
    throw new Error(`process ${child.pid} did not end within 5 s after SIGKILL`);
}

/** Returns CPU time (ms of one core) and resident memory (MB) of the process; zeros if it has ended. */
export function usageOf({ pid }: Child): { cpuTime: number; resident: number } {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    // utime and stime are in ticks of 10 ms; the resident set is in pages of 4096 bytes.
    return {
      cpuTime: (Number(fields[11]) + Number(fields[12])) * 10,
      resident: Math.round((Number(fields[21]) * 4096) / 2 ** 20),
    };
  } catch {
    return { cpuTime: 0, resident: 0 };
  }
}
