/**
 * `npm run down`: powers off the servers of this installation and removes its networks with their rules and tunnels from the host. It keeps
 * the data: disks, addresses and the database. The next start creates everything again and starts the servers that were on. Use it before
 * you move an installation, or at the end of a trial.
 */
import { existsSync, rmSync } from "node:fs";
import { systemClock } from "../service/src/base/clock.ts";
import { createLog } from "../service/src/base/log.ts";
import { loadSettings } from "../service/src/config.ts";
import { exec } from "../service/src/drivers/exec.ts";
import { chooseMachines } from "../service/src/drivers/machine/choose.ts";
import { requireNames } from "../service/src/drivers/router/linux/installations.ts";
import { startRouter } from "../service/src/drivers/router/linux/start.ts";
import { tagOf } from "../service/src/drivers/router/model/name.ts";
import { isOwnFolder } from "../service/src/server/model/imagefolder.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const { dataFolder, disk: diskLimits, logLevel, simulate, network } = loadSettings(process.env);

if (!existsSync(dataFolder)) {
  print(`The data folder ${dataFolder} does not exist: this installation has nothing on the host.`);
  process.exit(0);
}
const options = {
  exec,
  dataFolder,
  simulate,
  opened: network.opened,
  pools: null,
  limits: network.limits,
  random: Math.random,
  tag: tagOf(dataFolder),
  diskLimits,
  backups: null,
  built: null,
  isOwn: isOwnFolder,
  // Failed trials do not matter here.
  log: createLog(logLevel === "info" ? "warn" : logLevel),
  now: systemClock.now,
};

try {
  // Resources with these names may belong to another installation or to a running service, which would create everything again.
  requireNames(options, true);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
const { driver: machines, kind: guests } = await chooseMachines(options);
if (guests === "host")
  for (const { id, power } of (await machines.observe()).machines)
    if (power !== "off") {
      await machines.ensureStopped(id, "cut");
      print(`server ${id}: powered off`);
    }
await machines.close();

const { router, kind, runFolder } = await startRouter(options);
if (kind === "host") {
  for (const { id } of (await router.observe()).networks) {
    await router.remove(id);
    print(`network ${id}: removed`);
  }
  rmSync(runFolder, { recursive: true, force: true });
}
await router.close();
print(
  `All servers and networks of this installation are removed from the host. The data in ${dataFolder} is unchanged.`,
);
