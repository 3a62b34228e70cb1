/** The control plane's process: the whole service except the drivers of the host, which it reaches through the agent's socket. */
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { connectAgent } from "../agent/client.ts";
import { createLog } from "../base/log.ts";
import { showSettings } from "../config/report.ts";
import type { Environment } from "../config/value.ts";
import type { Config } from "../config.ts";
import type { Host } from "../host.ts";
import { openNameserver, withNameserver } from "../nameserver.ts";
import { release } from "../release.ts";
import { filterSystemCalls } from "./filter.ts";
import { compiledFolder, controlFolder } from "./folder.ts";
import { type ControlSettings, connectParent, type KeyTexts, socketName } from "./parent.ts";

/** Starts the control plane, whose settings are variables of `environment`; resolves when it serves requests. SIGTERM ends it after the running requests. */
export async function startControl(config: Config, environment: Environment): Promise<void> {
  const log = createLog(config.logLevel, "control");
  const { settings, ready, onMessage } = await connectParent<ControlSettings>(() => process.exit(1));
  const folder = controlFolder(config.dataFolder);
  // Temporary files of SQLite.
  await mkdir(join(folder, "tmp"), { recursive: true, mode: 0o700 });
  await filterSystemCalls().catch((error: unknown) =>
    log("warn", "The control plane runs without a filter of system calls.", { reason: (error as Error).message }),
  );
  const nameserver = openNameserver(config, folder, log);
  await withNameserver(nameserver, async () => {
    // Loaded while the thread of the name server starts.
    const { startService } = await import("../start.ts");
    const openHost = async (): Promise<Host> => {
      // The supervisor ends this process if the agent cannot start.
      const agent = await connectAgent({ socket: join(settings.agent, socketName) }, { release, log, wait: Infinity });
      return { ...agent, description: agent.description(), close: async () => agent.close() };
    };
    const onTls = (listener: (tls: KeyTexts) => void): void => onMessage((message) => listener(message as KeyTexts));
    const { tls, isFirst: introduces, places } = settings;
    const shown = showSettings(environment, places);
    await startService(config, { log, folder, tls, onTls, introduces, settings: shown, nameserver, openHost });
  });
  ready();
  await removeOldCode(join(folder, compiledFolder), environment).catch((error: unknown) =>
    log("warn", "The compiled code of earlier builds was not removed.", { error }),
  );
}

/** Removes the compiled code of earlier builds: each build has a folder of its own. */
async function removeOldCode(folder: string, { NODE_COMPILE_CACHE: own }: Environment): Promise<void> {
  if (own === undefined || dirname(own) !== folder) return;
  for (const name of await readdir(folder))
    if (name !== basename(own)) await rm(join(folder, name), { recursive: true, force: true });
}
