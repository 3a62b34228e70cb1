/**
 * What a server's process may take of the machine: its weight for the processor when cores are scarce (it is not held back when they
 * are not), and at most so much memory and so many threads. Each server has a control group of its own, in one hierarchy (v2) or one
 * per controller (v1). A group outside the service's own also means that whoever ends the service as a whole (systemd does) does not
 * end its servers.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export type Controller = "cpu" | "memory" | "pids";
const controllers: readonly Controller[] = ["cpu", "memory", "pids"];

export interface GroupLimits {
  /** 1 is what an ordinary process of one core's worth has. */
  readonly weight: number;
  /** MB. A process that needs more is killed by the kernel. */
  readonly memory: number;
  /** Threads and processes. */
  readonly tasks: number;
}

export interface Groups {
  /** Controllers that this machine does not offer; their limits are not set. */
  readonly missing: readonly Controller[];
  /** Puts the process into the server's group with these limits. May be repeated, also with other limits. */
  set(id: number, limits: GroupLimits, pid: number): void;
  /** The server's processes have ended. */
  remove(id: number): Promise<void>;
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

const isUnified = (root: string): boolean => existsSync(join(root, "cgroup.controllers"));

function offered(root: string): readonly Controller[] {
  if (!isUnified(root)) return controllers.filter((one) => existsSync(join(root, one, "cgroup.procs")));
  const words = readFileSync(join(root, "cgroup.controllers"), "utf8").split(/\s/);
  return controllers.filter((one) => words.includes(one));
}

/** Lowering a limit below what is in use is refused; the old one stays. */
function writeUnlessBusy(path: string, value: string): void {
  try {
    writeFileSync(path, value);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
  }
}

export function createGroups(tag: string, root = "/sys/fs/cgroup"): Groups {
  const unified = isUnified(root);
  const folderOf = (controller: Controller) => join(root, ...(unified ? [] : [controller]), `brume-${tag}`);
  const makeGroup = (controller: Controller, path: string) => {
    mkdirSync(path, { recursive: true });
    if (!unified) return;
    for (const above of [root, folderOf(controller)])
      writeFileSync(join(above, "cgroup.subtree_control"), `+${controller}`);
  };
  const isUsable = (controller: Controller): boolean => {
    try {
      makeGroup(controller, folderOf(controller));
      return true;
    } catch {
      return false;
    } finally {
      removeGroup(folderOf(controller));
    }
  };
  const usable = offered(root).filter(isUsable);

  const values = ({ weight, memory, tasks }: GroupLimits): Readonly<Record<Controller, readonly [string, number]>> => {
    const clamp = (unit: number, most: number) => Math.min(most, Math.max(1, Math.round(weight * unit)));
    return {
      cpu: unified ? ["cpu.weight", clamp(100, 10_000)] : ["cpu.shares", clamp(1024, 262_144)],
      memory: [unified ? "memory.max" : "memory.limit_in_bytes", memory * 2 ** 20],
      pids: ["pids.max", tasks],
    };
  };
  return {
    missing: controllers.filter((one) => !usable.includes(one)),
    set(id, limits, pid) {
      for (const controller of usable) {
        const group = join(folderOf(controller), String(id));
        makeGroup(controller, group);
        const [file, value] = values(limits)[controller];
        writeUnlessBusy(join(group, file), String(value));
        writeFileSync(join(group, "cgroup.procs"), String(pid));
      }
    },
    async remove(id) {
      for (const folder of new Set(usable.map(folderOf))) {
        const group = join(folder, String(id));
        // A process that has just ended is in it for a moment more; a group that stays behind empty is in nobody's way.
        for (let tries = 0; tries < 50 && !removeGroup(group); tries++) await sleep(20);
        removeGroup(folder);
      }
    },
  };
}
