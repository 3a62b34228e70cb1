/** The agent's process: the drivers of this host behind a Unix socket. It runs as root, and has no database and no secret of its own. */
import { join } from "node:path";
import { fenceFile } from "../agent/fence.ts";
import { refuseOutside } from "../agent/pools.ts";
import { createAgent } from "../agent/server.ts";
import { createLog } from "../base/log.ts";
import type { Config } from "../config.ts";
import { openHost } from "../host.ts";
import { release } from "../release.ts";
import { type AgentSettings, connectParent, socketName } from "./parent.ts";

/** Name of the file with the number of the latest control plane, in the data folder. */
const fenceName = "fence";
/** Milliseconds that running calls get after SIGTERM. The control plane repeats those that do not end. */
const grace = 2000;

/** Starts the agent; resolves when it serves the control plane. SIGTERM ends it. */
export async function startAgent(config: Config): Promise<void> {
  const log = createLog(config.logLevel, "agent");
  const { settings, ready } = await connectParent<AgentSettings>(() => process.exit(1));
  const host = await openHost(config, log, { starter: "parent", owner: process.ppid });
  const { description, blocks = [] } = host;
  const fence = fenceFile(join(config.dataFolder, fenceName));
  const server = createAgent({ drivers: host, description, release, log, fence, refuse: refuseOutside(blocks) });
  process.once("SIGTERM", () => {
    server
      .close(grace)
      .then(host.close)
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log("error", "The agent did not stop cleanly.", { error });
          process.exit(1);
        },
      );
  });
  await server.listenUnix(join(settings.agent, socketName), settings.account);
  log("info", "The agent is ready.", { pid: process.pid });
  ready();
}
