/**
 * `npm run backup -- FOLDER --with-disks`: a folder in FOLDER with the database, all images and all servers' disks, laid out as in the
 * data folder. Files that did not change since the last backup are hard links. The running service closes the disk layers; if it is stopped, this command does.
 */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ApiError, createClient } from "../api/src/client.ts";
import { createRequest } from "../cli/src/request.ts";
import { systemClock } from "../service/src/base/clock.ts";
import { syncPath } from "../service/src/base/fsync.ts";
import { createLog } from "../service/src/base/log.ts";
import { type Config, loadSettings } from "../service/src/config.ts";
import { exec } from "../service/src/drivers/exec.ts";
import { chooseMachines } from "../service/src/drivers/machine/choose.ts";
import { copyDisks } from "../service/src/drivers/machine/disk/backup.ts";
import { requireNames } from "../service/src/drivers/router/linux/installations.ts";
import { tagOf } from "../service/src/drivers/router/model/name.ts";
import { isOwnFolder } from "../service/src/server/model/imagefolder.ts";
import { backup } from "../service/src/store/backup.ts";
import { databaseName, lockFile } from "../service/src/store/sqlite.ts";
import { megabytes, print } from "./database.ts";

/** Freezes a server's disks for the copy. */
interface Holder {
  hold(server: number): Promise<string | null>;
  close(): Promise<void>;
}

/** Uses the running service to close disk layers. It writes its URL, and its certificate if clients cannot check it by its name. */
function connectToService({ dataFolder, token }: Config): Holder {
  const address = realpathSync(join(dataFolder, "url"));
  const url = readFileSync(address, "utf8").trim();
  const certificate = join(dirname(address), "certificate.pem");
  const isOwn = url.startsWith("https:") && existsSync(certificate);
  const client = createClient({
    url,
    token: token ?? readFileSync(join(dataFolder, "token"), "utf8").trim(),
    fetch: createRequest(isOwn ? readFileSync(certificate, "utf8") : undefined),
  });
  return {
    hold: (ServerID) =>
      client.createDiskCopy({ body: { ServerID } }).then(
        ({ Folder }) => Folder,
        (error: unknown) => {
          // The server was deleted meanwhile.
          if (error instanceof ApiError && error.code === "server_not_found") return null;
          throw error;
        },
      ),
    close: () => client.deleteDiskCopies({}),
  };
}

/** Closes disk layers without a service. Running servers continue. */
async function openHost(config: Config, tag: string): Promise<Holder> {
  const { dataFolder, simulate, disk: diskLimits, logLevel } = config;
  const { driver: machines } = await chooseMachines({
    exec,
    tag,
    dataFolder,
    simulate,
    diskLimits,
    backups: null,
    built: null,
    isOwn: isOwnFolder,
    log: createLog(logLevel),
    now: systemClock.now,
    random: Math.random,
  });
  return {
    hold: machines.holdDisks,
    async close() {
      await machines.releaseDisks();
      await machines.close();
    },
  };
}

const unfinished = /\.part$/;

/**
 * Backs up database, images and disks of the installation into a new folder in `folder`. Removes unfinished backups there. Rejects if another
 * backup of the installation is running.
 */
export async function backUpAll(folder: string): Promise<void> {
  const config = loadSettings(process.env);
  const { dataFolder } = config;
  // A second one would remove the unfinished folder of the first, and the copies of the disks that it reads.
  const advice = "start this one when it has ended";
  const held = lockFile(join(dataFolder, "backup"), `data folder ${dataFolder}`, "backup with disks", advice);
  try {
    await backUpOnce(config, folder);
  } finally {
    held.close();
  }
}

async function backUpOnce(config: Config, folder: string): Promise<void> {
  const { dataFolder, databaseUrl, backupFolder } = config;
  const tag = tagOf(dataFolder);
  let isServed = false;
  try {
    requireNames({ exec, tag, dataFolder }, true);
  } catch {
    isServed = true;
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const entries = (await readdir(folder)).sort();
  for (const entry of entries.filter((name) => unfinished.test(name)))
    await rm(join(folder, entry), { recursive: true, force: true });
  const last = entries.filter((name) => /^\d{4}-\d\d-\d\dT\d{6}Z$/.test(name)).at(-1);
  const name = `${new Date().toISOString().slice(0, 19).replaceAll(":", "")}Z`;
  const part = join(folder, `${name}.part`);
  const holder = isServed ? connectToService(config) : await openHost(config, tag);
  try {
    await mkdir(part, { mode: 0o700 });
    if (databaseUrl === null) await backup(join(dataFolder, databaseName), join(part, databaseName));
    else print("The database is PostgreSQL and is not in this backup: run pg_dump --format=custom first.");
    const sums = await copyDisks({
      dataFolder: resolve(dataFolder),
      backupFolder: backupFolder === null ? null : resolve(backupFolder),
      target: part,
      previous: last === undefined ? null : join(folder, last),
      hold: holder.hold,
    });
    await rename(part, join(folder, name));
    await syncPath(folder);
    print(
      `Backed up ${sums.servers} servers and ${sums.images} images to ${join(folder, name)}: copied ${megabytes(sums.copied)}, linked ${megabytes(sums.kept)} that did not change.`,
    );
    if (existsSync(join(dataFolder, "machines.json")))
      print("Simulated servers have no disks, so the backup does not contain them.");
    print(
      "The backup does not contain the key of the secrets: keep the file key of BRUME_DATA (or BRUME_KEY) in another place.",
    );
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw error;
  } finally {
    await holder.close();
  }
}
