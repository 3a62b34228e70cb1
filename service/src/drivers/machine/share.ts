/**
 * The share of the processor: each server is a group of its own for the kernel's scheduler, weighed against the others when cores are
 * scarce and not held back when they are not. A group outside the service's own also means that whoever ends the service as a whole
 * (systemd does) does not end its servers.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface Shares {
  /** False where the machine has no such thing. */
  readonly works: boolean;
  /** Puts the process into the server's group, or moves the group's weight. */
  set(id: number, weight: number, pid: number): void;
  /** The server's processes have ended. */
  remove(id: number): Promise<void>;
}

const none: Shares = { works: false, set() {}, async remove() {} };

function hasProcessor(root: string): boolean {
  try {
    return readFileSync(join(root, "cgroup.controllers"), "utf8").split(/\s/).includes("cpu");
  } catch {
    return existsSync(join(root, "cpu", "cpu.shares"));
  }
}

/** False when something is in it. */
function removeGroup(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Weight 1 is what an ordinary process of one core's worth has. */
export function createShares(tag: string, root = "/sys/fs/cgroup"): Shares {
  if (!hasProcessor(root)) return none;
  const unified = existsSync(join(root, "cgroup.controllers"));
  const folder = join(root, ...(unified ? [] : ["cpu"]), `brume-${tag}`);
  const [file, unit, most] = unified ? ["cpu.weight", 100, 10_000] : ["cpu.shares", 1024, 262_144];
  const makeGroup = (path: string) => {
    mkdirSync(path, { recursive: true });
    if (!unified) return;
    for (const above of [root, folder]) writeFileSync(join(above, "cgroup.subtree_control"), "+cpu");
  };
  try {
    makeGroup(folder);
  } catch {
    return none;
  } finally {
    removeGroup(folder);
  }
  return {
    works: true,
    set(id, weight, pid) {
      const group = join(folder, String(id));
      makeGroup(group);
      writeFileSync(join(group, file), String(Math.min(most, Math.max(1, Math.round(weight * unit)))));
      writeFileSync(join(group, "cgroup.procs"), String(pid));
    },
    async remove(id) {
      const group = join(folder, String(id));
      // A process that has just ended is in it for a moment more; a group that stays behind empty is in nobody's way.
      for (let tries = 0; tries < 50 && !removeGroup(group); tries++) await sleep(20);
      removeGroup(folder);
    },
  };
}
