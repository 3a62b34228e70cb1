/**
 * Opens the drivers of this host: virtual servers, images, consoles and networks, real ones where the host supports them. The agent does
 * this, or the only process of a service that runs in one process.
 */
import { access, constants } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Description } from "./agent/contract/session.ts";
import { createPlain, plainDriver } from "./agent/plain.ts";
import { systemClock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import type { Config } from "./config.ts";
import { createContents } from "./drivers/content/folder.ts";
import type { Contents, Uploads } from "./drivers/content/interface.ts";
import { createUploads } from "./drivers/content/uploads.ts";
import { createExec } from "./drivers/exec.ts";
import { chooseMachines } from "./drivers/machine/choose.ts";
import { manifestName, readImage } from "./drivers/machine/image/manifest.ts";
import type { Consoles, Images, Machines } from "./drivers/machine/interface.ts";
import type { Router } from "./drivers/router/interface.ts";
import { listRouted, requireNames } from "./drivers/router/linux/installations.ts";
import { startRouter } from "./drivers/router/linux/start.ts";
import { tagOf } from "./drivers/router/model/name.ts";
import { isBackupFolder, isOwnFolder } from "./server/model/imagefolder.ts";

/** Folder of the guest images that the set-up builds. */
const built = fileURLToPath(new URL("../../.engines/images", import.meta.url));

/** The drivers of one host, in this process or behind the agent's socket. */
export interface Host {
  readonly machines: Machines;
  readonly images: Images;
  readonly consoles: Consoles;
  readonly router: Router;
  readonly contents: Contents;
  readonly uploads: Uploads;
  readonly description: Description;
  /** Blocks in which networks can be: the pools, and the blocks that the host has had from earlier pools. */
  readonly blocks?: readonly string[];
  /** Calls the listener when drivers in another process have restarted. Absent: they restart only with this process. */
  readonly onReturn?: (listener: (isNew: boolean) => void) => void;
  /** Closes the drivers. Servers and networks continue. */
  close(): Promise<void>;
}

/** How the drivers depend on other processes. */
export interface HostProcess {
  /** Process that starts the children of the drivers. */
  readonly starter: "own" | "parent";
  /** PID of the process that lives as long as the service. */
  readonly owner: number;
}

/** Opens the drivers. Rejects when names or addresses conflict with another installation. */
export async function openHost(
  config: Config,
  log: Log,
  { starter, owner }: HostProcess = { starter: "own", owner: process.pid },
): Promise<Host> {
  const { dataFolder, simulate, backupFolder } = config;
  const { opened, pools, limits } = config.network;
  const tag = tagOf(dataFolder);
  const driverOptions = {
    exec: createExec(starter),
    tag,
    dataFolder,
    simulate,
    opened,
    pools,
    limits,
    log,
    owner,
    now: systemClock.now,
  };
  // Claims the names of this data folder before any driver lists objects of these names on the host.
  if (!simulate) requireNames(driverOptions, true);
  if (backupFolder !== null)
    await access(backupFolder, constants.W_OK).catch((error: unknown) => {
      throw new Error(`BRUME_BACKUPS: ${(error as Error).message}`, { cause: error });
    });
  const backups = backupFolder === null ? null : { folder: resolve(backupFolder), isBackup: isBackupFolder };
  const choice = chooseMachines({
    ...driverOptions,
    built,
    backups,
    isOwn: isOwnFolder,
    diskLimits: config.disk,
    simulatedHost: config.simulatedHost,
    random: Math.random,
  });
  const [found, { driver, kind, detail, lines }] = await Promise.all([startRouter(driverOptions), choice]).catch(
    async (error: unknown) => {
      // The driver's probes on the host end and clean up, also when the service does not start.
      await choice.catch(() => {});
      throw error;
    },
  );
  const simulated = [kind === "sim" && detail, found.kind === "sim" && found.detail].filter((one) => one !== false);
  if (config.requireEngines && simulated.length > 0) {
    await Promise.all([found.router.close(), driver.close()]);
    throw new Error(`BRUME_REQUIRE_ENGINES is set, and engines would be simulated: ${simulated.join("; ")}`);
  }
  // The Linux router sees new devices by itself. The simulated one is notified.
  if (found.plug !== null) driver.onDevice(found.plug);
  // The agent does this itself: it knows the request.
  const plain = createPlain(log);
  const shown = <D extends object>(one: D, group: string): D =>
    starter === "own" ? plainDriver(one, group, plain) : one;
  return {
    machines: shown(driver, "machines"),
    images: shown(driver, "images"),
    consoles: shown(driver, "consoles"),
    router: shown(found.router, "router"),
    contents: createContents({
      images: [join(dataFolder, "images"), ...(backups === null ? [] : [backups.folder])],
      servers: join(dataFolder, "servers"),
      incoming: join(dataFolder, "incoming"),
      async checkImage(folder, name) {
        if ((await readImage(folder, name)) === null) throw new Error(`the image has no ${manifestName}`);
      },
      now: systemClock.now,
    }),
    uploads: shown(createUploads({ folder: join(dataFolder, "uploads"), now: systemClock.now }), "uploads"),
    blocks: [...pools.flatMap((pool) => pool.blocks), ...(simulate ? [] : await listRouted(driverOptions.exec, tag))],
    description: {
      tag,
      machines: { kind, detail, lines: [...lines] },
      router: { kind: found.kind, detail: found.detail, lines: [...found.lines], offers: found.offers },
    },
    async close() {
      await Promise.all([found.router.close(), driver.close()]);
    },
  };
}
