/**
 * Chooses the driver for virtual servers: checks what this host can do and returns the real driver, or the simulated one with the reason.
 * If the host has servers on disk but cannot run them, the start fails, since the simulated driver would not know them.
 */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Log } from "../../base/log.ts";
import type { Exec } from "../exec.ts";
import type { BackupPlace } from "./image/folder.ts";
import { findImage } from "./image/manifest.ts";
import { createOperatorImages, prepareImages } from "./image/operatorimages.ts";
import type { Capacity, MachineDriver } from "./interface.ts";
import { type Canary, virtualisation } from "./qemu/accelerator.ts";
import { detectMachine } from "./qemu/detect.ts";
import { listServers, makeServers } from "./qemu/folder.ts";
import type { DiskLimits } from "./qemu/live.ts";
import { uidOf } from "./qemu/process.ts";
import { openQemu } from "./qemu/qemu.ts";
import { createSim } from "./sim/sim.ts";

/** Settings and dependencies of `chooseMachines`. */
export interface ChooseOptions {
  readonly exec: Exec;
  /** Tag of the installation, as in the names of the router's devices. */
  readonly tag: string;
  readonly dataFolder: string;
  /** True if the operator requested simulated servers. */
  readonly simulate: boolean;
  /** Capacity of the simulated host: cores, MB of memory, GB of disk. Default: that of the simulated driver. */
  readonly simulatedHost?: Omit<Capacity, "diskFree">;
  readonly diskLimits: DiskLimits;
  readonly backups: BackupPlace | null;
  /**
   * Folder of images that the set-up built; they are copied to the image folder first. Null: no images are copied or swept, for tools that
   * run beside the service.
   */
  readonly built: string | null;
  /** Whether the image folder of that name is of an image that a user made. */
  readonly isOwn: (folder: string) => boolean;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
}

/** The chosen driver, and texts about the choice. */
export interface ChosenMachines {
  readonly driver: MachineDriver;
  readonly kind: "host" | "sim";
  /** For `/readyz`: `host: QEMU, emulated`. */
  readonly detail: string;
  /** Lines for the terminal: what servers run on, or the reason why they are simulated. */
  readonly lines: readonly string[];
}

/** Above the user ids of every distribution and below those that containers use. */
const firstUid = 700_000;

/** Finds an image with a kernel, such as Tiny Linux, for the trial boot; null if there is none. */
async function findCanary(images: string): Promise<Canary | null> {
  const image = await findImage(images, ({ boot }) => boot === "kernel");
  if (image === null) return null;
  const { kernel = "", initrd = "" } = image.files;
  return { folder: join(images, image.name), kernel, initrd };
}

/** Returns the driver for this host. Throws if there are servers on disk that this host cannot run. */
export async function chooseMachines(options: ChooseOptions): Promise<ChosenMachines> {
  const { exec, tag, dataFolder, simulate, simulatedHost: host, log, now, random } = options;
  const sized = host && { capacity: { ...host, diskFree: host.disk } };
  const servers = join(dataFolder, "servers");
  const images = join(dataFolder, "images");
  const simulated = (reason: string): ChosenMachines => {
    if (!simulate && process.getuid?.() === 0) {
      makeServers(servers);
      if (listServers(servers).length > 0)
        throw new Error(`The servers in ${servers} cannot run: ${reason}. Set BRUME_SIMULATE=1 to start without them.`);
    }
    return {
      driver: {
        ...createSim({ now, tag, images: null, file: join(dataFolder, "machines.json"), ...sized }),
        ...createOperatorImages(options, true),
      },
      kind: "sim",
      detail: "sim: no guest runs",
      lines: [`servers   simulated, no guest runs: ${reason}`],
    };
  };
  const { built, backups } = options;
  if (built !== null) await prepareImages({ ...options, built, backups });
  if (simulate) return simulated("BRUME_SIMULATE is set");
  if (process.platform !== "linux") return simulated("this is not Linux");
  if (process.getuid?.() !== 0) return simulated("only root may run each server as a separate user");

  const cache = join(dataFolder, "accelerator.json");
  const canary = await findCanary(images);
  const { accelerator, confinement, trials, obstacle } = await detectMachine({
    exec,
    tag,
    servers,
    uid: uidOf(firstUid, 0),
    canary,
    cache,
    log,
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
    logError: (sentence, error) => log("error", sentence, { error }),
  });
  const name = accelerator === "kvm" ? "QEMU with KVM" : "QEMU, emulated";
  const costs = trials.filter((trial) => !trial.works).map(({ detail }) => `          ${detail}`);
  const lines = [`servers   real virtual machines${accelerator === "kvm" ? "" : ", emulated"}`, ...costs];
  const missing = trials.filter(({ works, name }) => !works && name !== virtualisation).map((trial) => trial.name);
  const without = missing.length === 0 ? "" : `, without ${missing.join(", ")}`;
  const driver = { ...qemu, ...createOperatorImages(options, false) };
  return { driver, kind: "host", detail: `host: ${name}${without}`, lines };
}
