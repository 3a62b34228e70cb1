/**
 * Whether this machine can run servers, each thing tried with a process like theirs: a device file, a module's name or a version says
 * nothing. Start-up prints the answers, and chooses the driver by them.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { CommandError, Exec } from "../../exec.ts";
import type { Accelerator, Probe } from "../interface.ts";
import { type Canary, chooseAccelerator } from "./accelerator.ts";
import { type Controller, createGroups } from "./cgroup.ts";
import { type Confinement, confine, findNeeds } from "./confine.ts";
import { makeServers } from "./folder.ts";

export interface DetectOptions {
  readonly exec: Exec;
  readonly tag: string;
  /** Of all servers' folders. */
  readonly servers: string;
  /** A number that no server has, for the trials. */
  readonly uid: number;
  /** Null: there is no image with a kernel, so nothing can be tried. */
  readonly canary: Canary | null;
  /** Where the answer of the longest trial is kept between starts. */
  readonly cache: string;
}

export interface MachineCapabilities {
  /** Null: servers are simulated. */
  readonly accelerator: Accelerator | null;
  readonly confinement: Confinement;
  /** Why they are; "" when they are not. */
  readonly obstacle: string;
  readonly trials: readonly Probe[];
}

const simulated = "Servers are simulated";

const withoutController: Readonly<Record<Controller, string>> = {
  cpu: "High performance makes no difference (this machine has no control group for processors)",
  memory: "A server's process may take any amount of memory (this machine has no control group for memory)",
  pids: "A server's process may start any number of threads (this machine has no control group for them)",
};

/** Takes a second or two, or six, once per start of the machine; else some tenths of a second. Nothing of it stays. */
export async function detectMachine(options: DetectOptions): Promise<MachineCapabilities> {
  const { exec, tag, servers, uid, canary, cache } = options;
  const trials: Probe[] = [];
  let obstacle = "";
  let confinement: Confinement = { tun: "open" };
  const none = () => ({ accelerator: null, confinement, obstacle, trials }) as const;
  async function attempt(name: string, cost: string, work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      trials.push({ name, works: true, detail: "" });
      return true;
    } catch (error) {
      obstacle = (error as CommandError).stderr?.trim() || (error as Error).message;
      trials.push({ name, works: false, detail: `${cost} (${obstacle})` });
      return false;
    }
  }
  const programs = await attempt("qemu", simulated, async () => {
    await Promise.all([exec.run(["qemu-system-x86_64", "--version"]), exec.run(["qemu-img", "--version"])]);
  });
  if (!programs) return none();

  makeServers(servers);
  const folder = mkdtempSync(join(servers, "trial-"));
  const tap = `b${tag}xtry`;
  const qemu = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-machine", "none", "-display", "none"];
  const held = [...qemu, "-monitor", "stdio", "-netdev", `tap,id=n,ifname=${tap},script=no,downscript=no`];
  const holds = async (how: Confinement) => {
    const prisoner = { base: folder, parts: [], kvm: false, uid, gid: uid };
    await exec.run(confine(how, prisoner, held), { cwd: folder, stdin: "quit\n" });
    confinement = how;
  };
  try {
    const rights = await attempt("users of their own for servers", simulated, () =>
      exec.run(["qemu-img", "--version"], { cwd: folder, uid, gid: uid }),
    );
    const taps = await attempt("taps for servers", simulated, async () => {
      await exec.run(["ip", "tuntap", "add", "dev", tap, "mode", "tap", "user", String(uid)]);
      const enclosed = await attempt(
        "a root of its own for each server",
        "Servers see this machine's file system",
        async () => holds({ needs: await findNeeds(exec) }),
      );
      if (!enclosed) await holds({ tun: "open" }).catch(() => holds({ tun: "private" }));
    });
    if (!rights || !taps) return none();
  } finally {
    await exec.run(["ip", "link", "del", tap]).catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  }
  for (const controller of createGroups(tag).missing)
    trials.push({ name: `control group "${controller}"`, works: false, detail: withoutController[controller] });
  if (canary === null) {
    obstacle = "there is no image with a kernel: npm run image -- tiny";
    trials.push({ name: "virtual machines", works: false, detail: `${simulated} (${obstacle})` });
    return none();
  }
  const { accelerator, trial, troubles } = await chooseAccelerator({ exec, canary, cache, uid });
  return { accelerator, confinement, obstacle: accelerator === null ? troubles : "", trials: [...trials, trial] };
}
