/**
 * The machines of this installation: tries what this host can do, and gives the real driver, or the simulated one and why. A host that
 * has run servers is never taken for one that cannot, since the simulated driver would know nothing of them.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Log } from "../../base/log.ts";
import type { Exec } from "../exec.ts";
import type { BackupPlace } from "./image/folder.ts";
import { listImages } from "./image/manifest.ts";
import { createOperatorImages, prepareImages } from "./image/operatorimages.ts";
import type { MachineDriver } from "./interface.ts";
import { type Canary, virtualisation } from "./qemu/accelerator.ts";
import { detectMachine } from "./qemu/detect.ts";
import { listServers, makeServers } from "./qemu/folder.ts";
import type { DiskLimits } from "./qemu/live.ts";
import { uidOf } from "./qemu/process.ts";
import { openQemu } from "./qemu/qemu.ts";
import { createSim } from "./sim/sim.ts";

export interface ChooseOptions {
  readonly exec: Exec;
  /** The same as in the names of the router's devices. */
  readonly tag: string;
  readonly dataFolder: string;
  /** Nothing is to run, on purpose. */
  readonly simulate: boolean;
  readonly diskLimits: DiskLimits;
  readonly backups: BackupPlace | null;
  /** Folder of images that the set-up built, which are copied in first; null: images stay as they are, as a tool beside the service wants. */
  readonly built: string | null;
  /** Whether a folder of images is of one that a customer made. */
  readonly isOwn: (folder: string) => boolean;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

export interface ChosenMachines {
  readonly driver: MachineDriver;
  readonly kind: "host" | "sim";
  /** For `/readyz`: `host: QEMU, emulated`. */
  readonly detail: string;
  /** For the terminal: what servers run on, or why none do. */
  readonly lines: readonly string[];
}

/** Far above the users of any distribution; below those that containers are given. */
const firstUid = 700_000;

/** The kernel that tells whether there can be servers comes with the small Linux. */
async function findCanary(images: string): Promise<Canary | null> {
  for (const { name, boot, files } of (await listImages(images)).images)
    if (boot === "kernel" && files.kernel !== undefined && files.initrd !== undefined)
      return { folder: join(images, name), kernel: files.kernel, initrd: files.initrd };
  return null;
}

export async function chooseMachines(options: ChooseOptions): Promise<ChosenMachines> {
  const { exec, tag, dataFolder, simulate, log, now, random } = options;
  const servers = join(dataFolder, "servers");
  const images = join(dataFolder, "images");
  const simulated = (why: string): ChosenMachines => {
    if (!simulate && process.getuid?.() === 0) {
      makeServers(servers);
      if (listServers(servers).length > 0)
        throw new Error(
          `there are servers in ${servers}, but they cannot run: ${why}. BRUME_SIMULATE=1 leaves them alone.`,
        );
    }
    return {
      driver: {
        ...createSim({ now, tag, images: null, file: join(dataFolder, "machines.json") }),
        ...createOperatorImages(options, true),
      },
      kind: "sim",
      detail: "sim: no guest runs",
      lines: [`servers   simulated, no guest runs: ${why}`],
    };
  };
  const { built, backups } = options;
  if (built !== null) await prepareImages({ ...options, built, backups });
  if (simulate) return simulated("BRUME_SIMULATE is set");
  if (process.platform !== "linux") return simulated("this is not Linux");
  if (process.getuid?.() !== 0) return simulated("only root may run servers as users of their own");

  const cache = join(dataFolder, "accelerator.json");
  const canary = await findCanary(images);
  const { accelerator, confinement, trials, obstacle } = await detectMachine({
    exec,
    tag,
    servers,
    uid: uidOf(firstUid, 0),
    canary,
    cache,
  });
  if (accelerator === null) return simulated(obstacle);
  const qemu = await openQemu({
    exec,
    tag,
    servers,
    images,
    backups,
    accelerator,
    confinement,
    diskLimits: options.diskLimits,
    firstUid,
    boots: accelerator === "kvm" ? availableParallelism() * 2 : availableParallelism(),
    now,
    random,
    fault: (sentence, error) => log("error", sentence, { error }),
  });
  const name = accelerator === "kvm" ? "QEMU with KVM" : "QEMU, emulated";
  const costs = trials.filter((trial) => !trial.works).map(({ detail }) => `          ${detail}`);
  const lines = [`servers   ${name}`, ...costs];
  const missing = trials.filter(({ works, name }) => !works && name !== virtualisation).map((trial) => trial.name);
  const without = missing.length === 0 ? "" : `, without ${missing.join(", ")}`;
  const driver = { ...qemu, ...createOperatorImages(options, false) };
  return { driver, kind: "host", detail: `host: ${name}${without}`, lines };
}
