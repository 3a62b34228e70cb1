/**
 * Chooses the accelerator (KVM or emulation) by booting a small kernel. A /dev/kvm that opens is no proof: under some hypervisors it
 * creates VMs that cannot boot. The result is cached and valid for the same kernel, QEMU version, boot of the host and /dev/kvm. A trial that
 * was stopped, at its time limit or by a signal, proves nothing: a busy host must not emulate all servers until it boots again.
 */
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { release } from "node:os";
import { type Log, silentLog } from "../../../base/log.ts";
import { causeIn } from "../../../base/plaincause.ts";
import { logTrial } from "../../../base/trialtext.ts";
import { CommandError, type Exec } from "../../exec.ts";
import type { Accelerator, Probe } from "../interface.ts";
import { replaceFile } from "./folder.ts";
import { hostBoot } from "./process.ts";
import { listAt, pick, textAt } from "./qmp.ts";

/** Name of the trial in `Probe.name`. */
export const virtualisation = "hardware virtualisation";

/** The small guest that is booted as a test. */
export interface Canary {
  /** Contains kernel and initrd of the tiny image. With `canary` on its command line, the initrd prints CANARY-OK and shuts down. */
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: string;
}

/** Settings and dependencies of `chooseAccelerator`. */
export interface AcceleratorOptions {
  readonly exec: Exec;
  readonly canary: Canary;
  /** File that caches the result. */
  readonly cache: string;
  /** Device file of KVM. Default: `/dev/kvm`. */
  readonly device?: string;
  readonly log?: Log;
  /** User id for the trial, with the same rights as the processes of servers. */
  readonly uid: number;
}

/** The chosen accelerator, and how the trial ended. */
export interface AcceleratorResult {
  /** Null if QEMU cannot boot a guest on this host. */
  readonly accelerator: Accelerator | null;
  /** Errors of the accelerators that failed. */
  readonly failures: string;
  readonly trial: Probe;
}

/**
 * Time limits in milliseconds. A boot takes 0.5 s with KVM and 2 s emulated. Emulation gets 60 s, since a busy host must not lead to
 * simulated servers.
 */
const choices: readonly { readonly name: Accelerator; readonly cpu: string; readonly limit: number }[] = [
  { name: "kvm", cpu: "host", limit: 10_000 },
  { name: "tcg", cpu: "max", limit: 60_000 },
];

/**
 * Returns the group id for a server's process. With KVM it is the group of /dev/kvm, unless all users may open the device, or the group is
 * root, which has further rights. Without the device it is that of the user, and QEMU reports what is missing.
 */
export function groupOf(accelerator: Accelerator, uid: number, device = "/dev/kvm"): number {
  const found = accelerator === "tcg" ? undefined : statSync(device, { throwIfNoEntry: false });
  return found === undefined || (found.mode & 0o006) === 0o006 || found.gid === 0 ? uid : found.gid;
}

/** What each accelerator is, and what to do if it does not work. */
const texts: Readonly<Record<Accelerator, { readonly what: string; readonly remedy: string }>> = {
  kvm: {
    what: "the processor's virtualization (KVM)",
    remedy:
      "Switch it on in the firmware, or in the host of this VM, and run as root: modprobe -a kvm_intel kvm_amd; a container also needs /dev/kvm",
  },
  tcg: { what: "emulation", remedy: "Run as root: apt-get install --reinstall qemu-system-x86" },
};

/** A failed trial of an accelerator, with the message of QEMU or of the system. */
interface Failure {
  readonly name: Accelerator;
  readonly message: string;
}

/** Returns why an accelerator does not work, and what to do. */
function describe({ name, message }: Failure): string {
  const { what, remedy } = texts[name];
  if (name === "kvm" && /EACCES|Permission denied/i.test(message))
    return `${what} does not work: users of servers may not open /dev/kvm. Run as root: chgrp kvm /dev/kvm; chmod 660 /dev/kvm`;
  const isMissing = name === "kvm" && /ENOENT|No such file|ENODEV|No such device/i.test(message);
  return `${what} does not work: ${isMissing ? "this host has no /dev/kvm" : (causeIn(message) ?? "the trial guest did not start")}. ${remedy}`;
}

/** Boots the canary. Resolves to null on success, or to the failure. `stopped`: QEMU did not end by itself. */
async function tryBoot(
  options: AcceleratorOptions,
  { name, cpu, limit }: (typeof choices)[number],
): Promise<{ readonly failure: Failure; readonly stopped: boolean } | null> {
  const { exec, canary, uid, device } = options;
  const qemuOptions = [
    ["-nodefaults"],
    ["-no-user-config"],
    ["-no-reboot"],
    ["-display", "none"],
    ["-machine", "q35"],
    ["-m", "128"],
    ["-accel", name],
    ["-cpu", cpu],
    ["-kernel", canary.kernel],
    ["-initrd", canary.initrd],
    ["-append", "console=ttyS0 quiet no_timer_check cryptomgr.notests panic=1 canary"],
    ["-serial", "stdio"],
  ];
  const argv = ["qemu-system-x86_64", ...qemuOptions.flat()];
  try {
    const gid = groupOf(name, uid, device);
    const output = await exec.run(argv, { cwd: canary.folder, uid, gid, timeout: limit });
    if (output.includes("CANARY-OK")) return null;
    throw new Error("the kernel of the trial guest reported no start");
  } catch (error) {
    logTrial(options.log ?? silentLog, texts[name].what, error);
    const stopped = error instanceof CommandError && error.code === null;
    return { failure: { name, message: (error as Error).message }, stopped };
  }
}

/** Returns what the result depends on. A module that is loaded, or a device that a container gets, changes `device`. */
async function keyOf(exec: Exec, device: string): Promise<string> {
  const [version = ""] = (await exec.run(["qemu-system-x86_64", "--version"])).split("\n");
  const found = statSync(device, { throwIfNoEntry: false });
  return [release(), version, hostBoot(), found ? `${found.ino} ${found.mode} ${found.gid}` : "no KVM"].join(" | ");
}

async function readCache(path: string, key: string): Promise<AcceleratorResult | null> {
  try {
    const cached = JSON.parse(await readFile(path, "utf8")) as unknown;
    const name = choices.find((choice) => choice.name === pick(cached, "accelerator"))?.name;
    if (pick(cached, "key") !== key || name === undefined) return null;
    const failures = listAt(cached, "failures").flatMap((failure) =>
      choices
        .filter((choice) => choice.name === pick(failure, "name"))
        .map(({ name }) => ({ name, message: textAt(failure, "message") })),
    );
    return resultOf(name, failures);
  } catch {
    return null;
  }
}

function resultOf(accelerator: Accelerator | null, failed: readonly Failure[]): AcceleratorResult {
  const failures = failed.map(describe).join("; ");
  const works = accelerator === "kvm";
  const cost =
    accelerator === null ? "Servers are simulated" : "Servers are emulated, about 20 times slower than this host";
  const detail = works ? "" : `${cost}: ${failures}`;
  return { accelerator, failures, trial: { name: virtualisation, works, detail } };
}

/**
 * Returns the accelerator for this host. Takes 2 to 6 seconds on an idle host; a cached result only the time of `qemu-system-x86_64
 * --version`.
 */
export async function chooseAccelerator(options: AcceleratorOptions): Promise<AcceleratorResult> {
  const key = await keyOf(options.exec, options.device ?? "/dev/kvm");
  const cached = await readCache(options.cache, key);
  if (cached !== null) return cached;
  const failures: Failure[] = [];
  let proven = true;
  for (const choice of choices) {
    const { name } = choice;
    const failed = await tryBoot(options, choice);
    if (failed === null) {
      const result = `${JSON.stringify({ key, accelerator: name, failures })}\n`;
      if (proven)
        await replaceFile(options.cache, result, 0o600).catch((error: unknown) =>
          (options.log ?? silentLog)("warn", "The result of the trial was not stored, so the next start repeats it.", {
            error,
          }),
        );
      return resultOf(name, failures);
    }
    failures.push(failed.failure);
    if (failed.stopped) proven = false;
  }
  return resultOf(null, failures);
}
