/**
 * Limits the resources of a server's process by control groups: CPU weight while cores are scarce, maximum memory, maximum threads. Each
 * server has its own group, in one hierarchy (v2) or one per controller (v1). The group is outside the service's own, so stopping the
 * service (also by systemd) does not end its servers.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Accelerator, MachineSpec } from "../interface.ts";

/** A cgroup controller that Brume uses. */
export type Controller = "cpu" | "memory" | "pids";
const controllers: readonly Controller[] = ["cpu", "memory", "pids"];

/** Limits of one server. */
export interface GroupLimits {
  /** Relative CPU weight; 1 is the default weight of a group. */
  readonly weight: number;
  /** MB. The kernel kills a process that exceeds it. */
  readonly memory: number;
  /** Threads and processes. */
  readonly tasks: number;
}

/** MB that a process needs besides the guest's memory: QEMU itself, its caches, and the page cache of its files. */
const overheadMemory = 512;
/** Additional MB under emulation: translated code, and tables per vCPU that a guest can make grow. */
const emulationMemory = (cpus: number): number => 256 + 128 * cpus;

/**
 * Returns the cgroup limits of a server. The CPU weight is proportional to the vCPUs, doubled for high performance. 256 tasks cover one
 * thread per vCPU, up to 64 I/O threads and others.
 */
export const groupLimits = (
  { cpus, share, memory }: Pick<MachineSpec, "cpus" | "share" | "memory">,
  accelerator: Accelerator,
): GroupLimits => ({
  weight: cpus * share,
  memory: memory + overheadMemory + (accelerator === "tcg" ? emulationMemory(cpus) : 0),
  tasks: 256,
});

/** The control groups of one installation. */
export interface Groups {
  /** Controllers that this host does not have; their limits are not set. */
  readonly missing: readonly Controller[];
  /** Moves the process into the server's group and sets the limits. May be repeated, also to change limits. */
  set(id: number, limits: GroupLimits, pid: number): void;
  /** Removes the server's group, after its processes have ended. */
  remove(id: number): Promise<void>;
}

/** Removes a group. Returns false if it is not empty. */
function removeGroup(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

const isUnified = (root: string): boolean => existsSync(join(root, "cgroup.controllers"));

function controllersOf(root: string): readonly Controller[] {
  if (!isUnified(root)) return controllers.filter((one) => existsSync(join(root, one, "cgroup.procs")));
  const words = readFileSync(join(root, "cgroup.controllers"), "utf8").split(/\s/);
  return controllers.filter((one) => words.includes(one));
}

/** Writes a limit. The kernel refuses one below the current usage; then the old one stays. */
function writeUnlessBusy(path: string, value: string): void {
  try {
    writeFileSync(path, value);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
  }
}

/** Opens the control groups below `root` and checks which controllers are usable. */
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
  const usable = controllersOf(root).filter(isUsable);

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
        // A process that has just ended stays in the group for a moment. A group that cannot be removed is harmless.
        for (let tries = 0; tries < 50 && !removeGroup(group); tries++) await sleep(20);
        removeGroup(folder);
      }
    },
  };
}
