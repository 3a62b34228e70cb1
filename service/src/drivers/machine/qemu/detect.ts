/**
 * Checks whether this host can run servers, by running trial processes: a device file, a module or a version number is no proof. The start
 * of the service prints the results and chooses the driver by them.
 */
import { type Log, silentLog } from "../../../base/log.ts";
import { describeTrialError, logTrial, noMounts, type TrialText } from "../../../base/trialtext.ts";
import type { Exec } from "../../exec.ts";
import { findProgram } from "../../privateroot.ts";
import { createDiskTools } from "../disk/tool.ts";
import type { Accelerator, Probe } from "../interface.ts";
import { type Canary, chooseAccelerator } from "./accelerator.ts";
import { type Controller, createGroups } from "./cgroup.ts";
import { type Confinement, confine, findQemuNeeds } from "./confine.ts";
import { makeServers } from "./folder.ts";

/** Settings and dependencies of `detectMachine`. */
export interface DetectOptions {
  readonly exec: Exec;
  readonly tag: string;
  /** Parent of all server folders. */
  readonly servers: string;
  /** A user id that no server has, for the trials. */
  readonly uid: number;
  /** Null if there is no image with a kernel; then nothing can be booted. */
  readonly canary: Canary | null;
  /** File that caches the result of the boot trial between starts. */
  readonly cache: string;
  /** Gets the complete errors of trials. */
  readonly log?: Log;
}

/** What this host can do. */
export interface MachineCapabilities {
  /** Null if servers are simulated. */
  readonly accelerator: Accelerator | null;
  readonly confinement: Confinement;
  /** Why servers are simulated; "" if they are not. */
  readonly obstacle: string;
  readonly trials: readonly Probe[];
}

const simulated = "Servers are simulated";

const withoutController: Readonly<Record<Controller, string>> = {
  cpu: "High performance makes no difference: this host has no control group for CPU",
  memory: "A server's process may take any amount of memory: this host has no control group for memory",
  pids: "A server's process may start any number of threads: this host has no control group for processes",
};

/** What is lost on a host that permits no private root. */
export const withoutRoot = {
  servers: `servers see the files of this host: ${noMounts}`,
  disks: `the programs that read disks of guests see the files of this host: ${noMounts}`,
} as const;

/** Debian packages of the programs that every server needs. */
const packages: Readonly<Record<string, string>> = {
  "qemu-system-x86_64": "qemu-system-x86",
  "qemu-img": "qemu-utils",
};

/** Programs without which disks of other systems keep what identifies their guests. */
const identityTools = ["e2fsck", "debugfs"] as const;

/** Returns the trial of the programs that remove what identifies a guest. */
export function tryIdentityTools(isInstalled: (program: string) => boolean): Probe {
  const works = identityTools.every(isInstalled);
  const lost = "Images and copies of servers keep what identifies the guest";
  return {
    name: "removal of identities",
    works,
    detail: works ? "" : `${lost}: the package e2fsprogs is not installed. Run as root: apt-get install e2fsprogs`,
  };
}

/** Returns the trial of a controller that is missing. */
export const describeController = (controller: Controller): Probe => ({
  name: `control group "${controller}"`,
  works: false,
  detail: `${withoutController[controller]}. Mount /sys/fs/cgroup with the controller ${controller}, or give it to the container`,
});

const remedies = {
  programs: `Run as root: apt-get install --reinstall ${Object.values(packages).join(" ")}`,
  user: "Start Brume on the host itself, or in a container that may change users (CAP_SETUID, CAP_SETGID)",
  taps: "Run as root: modprobe tun; a container also needs /dev/net/tun and CAP_NET_ADMIN",
} as const;

/** Returns why servers are simulated if these programs are missing, with the command that brings them. */
export function describeMissing(programs: readonly string[]): string {
  const names = programs.map((program) => packages[program] ?? program);
  return `the packages ${names.join(", ")} are not installed. Run as root: apt-get install ${names.join(" ")}`;
}

/** Runs all trials and removes their traces. Takes one to six seconds at the first start after a boot of the host, later less than one. */
export async function detectMachine(options: DetectOptions): Promise<MachineCapabilities> {
  const { exec, tag, servers, uid, canary, cache, log = silentLog } = options;
  const trials: Probe[] = [];
  let obstacle = "";
  let confinement: Confinement = { tun: "open" };
  const none = () => ({ accelerator: null, confinement, obstacle, trials }) as const;
  /** `remedy` is null if the consequence is the complete text. */
  async function attempt(
    name: string,
    { consequence, remedy }: Pick<TrialText, "consequence"> & { readonly remedy: string | null },
    work: () => Promise<unknown>,
  ): Promise<boolean> {
    try {
      await work();
      trials.push({ name, works: true, detail: "" });
      return true;
    } catch (error) {
      if (remedy !== null) obstacle = describeTrialError(error, remedy);
      trials.push({ name, works: false, detail: remedy === null ? consequence : `${consequence}: ${obstacle}` });
      logTrial(log, name, error);
      return false;
    }
  }
  const isInstalled = (program: string): boolean => findProgram(program) !== null;
  const missing = Object.keys(packages).filter((program) => !isInstalled(program));
  if (missing.length > 0) {
    obstacle = describeMissing(missing);
    trials.push({ name: "qemu", works: false, detail: `${simulated}: ${obstacle}` });
    return none();
  }
  const programs = await attempt("qemu", { consequence: simulated, remedy: remedies.programs }, () =>
    Promise.all([exec.run(["qemu-system-x86_64", "--version"]), exec.run(["qemu-img", "--version"])]),
  );
  if (!programs) return none();
  trials.push(tryIdentityTools(isInstalled));

  makeServers(servers);
  const tap = `b${tag}xtry`;
  const removeTap = () => exec.run(["ip", "link", "del", tap]).catch(() => "");
  const qemu = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-machine", "none", "-display", "none"];
  const withTap = [...qemu, "-monitor", "stdio", "-netdev", `tap,id=n,ifname=${tap},script=no,downscript=no`];
  const runConfined = async (how: Confinement) => {
    // The mount point is a folder that every host has: on a full disk none can be created.
    const confined = { base: "/sys", mounts: [], kvm: false, uid, gid: uid };
    await exec.run(confine(how, confined, withTap), { cwd: servers, stdin: "quit\n" });
    confinement = how;
  };
  try {
    const canSwitchUser = await attempt(
      "a separate user for each server",
      { consequence: simulated, remedy: remedies.user },
      () => exec.run(["qemu-img", "--version"], { cwd: servers, uid, gid: uid }),
    );
    const taps = await attempt("taps for servers", { consequence: simulated, remedy: remedies.taps }, async () => {
      const addTap = () => exec.run(["ip", "tuntap", "add", "dev", tap, "mode", "tap", "user", String(uid)]);
      // A start that was killed during its trials leaves the TAP.
      await addTap().catch(() => removeTap().then(addTap));
      const hasPrivateRoot = await attempt(
        "a private root for each server",
        { consequence: withoutRoot.servers, remedy: null },
        async () => runConfined({ needs: await findQemuNeeds(exec) }),
      );
      await attempt("a private root for disk tools", { consequence: withoutRoot.disks, remedy: null }, () =>
        createDiskTools(exec).tryRoot(),
      );
      if (!hasPrivateRoot) await runConfined({ tun: "open" }).catch(() => runConfined({ tun: "private" }));
    });
    if (!canSwitchUser || !taps) return none();
  } finally {
    await removeTap();
  }
  trials.push(...createGroups(tag).missing.map(describeController));
  if (canary === null) {
    obstacle = "there is no image with a kernel. Run as root: npm run image -- tiny";
    trials.push({ name: "virtual machines", works: false, detail: `${simulated}: ${obstacle}` });
    return none();
  }
  const { accelerator, trial, failures } = await chooseAccelerator({ exec, canary, cache, uid, log });
  return { accelerator, confinement, obstacle: accelerator === null ? failures : "", trials: [...trials, trial] };
}
