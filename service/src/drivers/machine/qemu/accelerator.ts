/**
 * Who executes the guests' instructions. It is found out by booting a small kernel, because nothing else tells: a /dev/kvm that
 * opens, even one that makes virtual machines, may belong to a hypervisor that cannot boot a single one. The answer holds for as long
 * as kernel, QEMU and the machine's present life are the same, and is kept for that.
 */
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { release } from "node:os";
import type { Exec } from "../../exec.ts";
import type { Accelerator, Probe } from "../interface.ts";
import { replaceFile } from "./folder.ts";
import { hostBoot } from "./process.ts";
import { pick, textAt } from "./qmp.ts";

/** Name of the trial. */
export const virtualisation = "hardware virtualisation";

export interface Canary {
  /** Holds the kernel and initrd of the tiny image; the latter prints CANARY-OK and switches off when told `canary`. */
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: string;
}

export interface AcceleratorOptions {
  readonly exec: Exec;
  readonly canary: Canary;
  /** Where the answer is kept. */
  readonly cache: string;
  /** Of a process as servers will have. */
  readonly uid: number;
}

export interface AcceleratorAnswer {
  /** Null: QEMU boots nothing here. */
  readonly accelerator: Accelerator | null;
  /** What was said by those that did not boot. */
  readonly troubles: string;
  readonly trial: Probe;
}

/**
 * Limits in milliseconds. A kernel takes half a second with KVM, so what is silent for ten is not coming; emulated it takes two, and
 * many times that while the machine is busy, which is no reason to do without servers.
 */
const choices: readonly { readonly name: Accelerator; readonly cpu: string; readonly limit: number }[] = [
  { name: "kvm", cpu: "host", limit: 10_000 },
  { name: "tcg", cpu: "max", limit: 60_000 },
];

/** Only who is in its group may open /dev/kvm, unless everybody may. Root's group opens more than that and is not given. */
export function groupOf(accelerator: Accelerator, uid: number): number {
  if (accelerator === "tcg") return uid;
  const device = statSync("/dev/kvm");
  return (device.mode & 0o006) === 0o006 || device.gid === 0 ? uid : device.gid;
}

/** Null, or why not. */
async function whyNot(options: AcceleratorOptions, { name, cpu, limit }: (typeof choices)[number]) {
  const { exec, canary, uid } = options;
  const words = [
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
    ["-append", "console=ttyS0 quiet panic=1 canary"],
    ["-serial", "stdio"],
  ];
  const argv = ["qemu-system-x86_64", ...words.flat()];
  try {
    const gid = groupOf(name, uid);
    const said = await exec.run(argv, { cwd: canary.folder, uid, gid, timeout: limit });
    return said.includes("CANARY-OK") ? null : "the kernel did not start";
  } catch (error) {
    return (error as Error).message.replace(/^qemu-system-x86_64 [^:]*: /, "").split("\n")[0] ?? "";
  }
}

async function keyOf(exec: Exec): Promise<string> {
  const [version = ""] = (await exec.run(["qemu-system-x86_64", "--version"])).split("\n");
  return [release(), version, hostBoot()].join(" | ");
}

async function readCache(path: string, key: string): Promise<AcceleratorAnswer | null> {
  try {
    const kept = JSON.parse(await readFile(path, "utf8")) as unknown;
    const name = choices.find((choice) => choice.name === pick(kept, "accelerator"))?.name;
    if (pick(kept, "key") !== key || name === undefined) return null;
    return answerOf(name, textAt(kept, "troubles"));
  } catch {
    return null;
  }
}

function answerOf(accelerator: Accelerator | null, troubles: string): AcceleratorAnswer {
  const works = accelerator === "kvm";
  const cost =
    accelerator === null ? "Servers are simulated" : "Servers are emulated, about 20 times slower than this host";
  const detail = works ? "" : `${cost} (${troubles})`;
  return { accelerator, troubles, trial: { name: virtualisation, works, detail } };
}

/** Takes two to six seconds on an idle machine; a kept answer takes the time of asking QEMU for its version. */
export async function chooseAccelerator(options: AcceleratorOptions): Promise<AcceleratorAnswer> {
  const key = await keyOf(options.exec);
  const kept = await readCache(options.cache, key);
  if (kept !== null) return kept;
  const troubles: string[] = [];
  for (const choice of choices) {
    const { name } = choice;
    const trouble = await whyNot(options, choice);
    if (trouble === null) {
      const answer = answerOf(name, troubles.join("; "));
      const kept = { key, accelerator: name, troubles: answer.troubles };
      await replaceFile(options.cache, `${JSON.stringify(kept)}\n`, 0o600);
      return answer;
    }
    troubles.push(`${name}: ${trouble}`);
  }
  return answerOf(null, troubles.join("; "));
}
