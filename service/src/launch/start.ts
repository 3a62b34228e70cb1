/** Starts the service as two processes: prepares the data folder, decides what each process receives, and becomes the supervisor. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createLog, type Log } from "../base/log.ts";
import type { Endpoint, Environment } from "../config/value.ts";
import type { Config } from "../config.ts";
import { createExec, type Exec } from "../drivers/exec.ts";
import { requireNames } from "../drivers/router/linux/installations.ts";
import { tagOf } from "../drivers/router/model/name.ts";
import { type Account, accountName, readAccount } from "./account.ts";
import { compiledFolder, controlFolder, needsConversion, prepareFolder } from "./folder.ts";
import type { Plan } from "./plan.ts";
import { readTls } from "./tls.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
const supervisor = fileURLToPath(new URL("./supervisor.ts", import.meta.url));
const project = fileURLToPath(new URL("../../..", import.meta.url));
/** What the control plane loads. The project itself may contain the data folder. */
const code = [
  "package.json",
  "api",
  "service",
  "console/dist",
  "docs",
  "examples",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "node_modules",
].map((path) => resolve(project, path));

/** Milliseconds after SIGTERM, longer than the running requests get. */
const grace = 20_000;

/** Settings that only the control plane receives, since they are secrets that the agent does not need. */
const secrets = ["BRUME_TOKEN", "BRUME_KEY", "BRUME_DATABASE", "BRUME_DNS_TRANSFER_KEYS", "BRUME_DNS_NOTIFY"];
/** Paths that the supervisor reads for the control plane. */
const certificate = ["BRUME_TLS_CERT", "BRUME_TLS_KEY"];
/** Variables of `node --watch`, which are for this process only. */
const watch = ["WATCH_REPORT_DEPENDENCIES", "NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE"];

const isLow = ({ port }: Endpoint): boolean => port > 0 && port < 1024;

/** Returns the folder of PostgreSQL's socket, if the URL names one. */
function socketFolder(databaseUrl: string | null): readonly string[] {
  if (databaseUrl === null) return [];
  const { hostname, searchParams } = new URL(databaseUrl);
  return [decodeURIComponent(hostname), searchParams.get("host") ?? ""].filter((host) => host.startsWith("/"));
}

/**
 * Returns a name that changes with the code: the folder of the control plane's compiled code. It is in the folder that the control plane may
 * write, so what an attacker left there must not outlive an update.
 */
function codeStamp(): string {
  const hash = createHash("sha256").update(process.version);
  for (const folder of [join(project, "api/src"), dirname(main)])
    for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
      const { ctimeMs, size } = statSync(join(folder, name));
      hash.update(`${name} ${ctimeMs} ${size}\n`);
    }
  return hash.digest("hex").slice(0, 16);
}

/** Prepares the start, and replaces this program by the supervisor. Returns only by an error. */
export async function becomeSupervisor(
  config: Config,
  environment: Environment,
  places: Plan["places"],
): Promise<never> {
  const { dataFolder, databaseUrl, tls } = config;
  const tag = tagOf(dataFolder);
  const exec = createExec();
  requireNames({ exec, tag, dataFolder }, true);
  requireReadable();
  const account = await ensureAccount(exec);
  if (tls !== null) await readTls(tls);
  if (needsConversion(dataFolder)) await convert(dataFolder, account, createLog(config.logLevel, "supervisor"));
  else prepareFolder(dataFolder, account);
  const controls = controlFolder(dataFolder);
  const temporary = join(controls, "tmp");
  // The agent has little garbage: with small young generations of the heap it needs 12 MB less.
  const agent = [process.execPath, "--max-semi-space-size=2", main, "agent"];
  const plan: Plan = {
    runFolder: `/run/brume-${tag}`,
    controlFolder: controls,
    account,
    lowPorts: [config.listen, config.dns.listen, config.redirect].some((each) => each !== null && isLow(each)),
    readable: [...code.filter((path) => existsSync(path)), process.execPath, ...socketFolder(databaseUrl)],
    commands: { agent, control: [process.execPath, main, "control"] },
    environments: {
      agent: { set: { BRUME_DATA: dataFolder }, omit: [...secrets, ...certificate] },
      control: {
        set: {
          BRUME_DATA: dataFolder,
          HOME: "/",
          TMPDIR: temporary,
          SQLITE_TMPDIR: temporary,
          NODE_COMPILE_CACHE: join(controls, compiledFolder, codeStamp()),
          // Calls through such a ring would avoid the filter of system calls.
          UV_USE_IO_URING: "0",
        },
        omit: [...certificate, "BRUME_BACKUPS"],
      },
    },
    tls: tls && { certificate: resolve(tls.certificate), key: resolve(tls.key) },
    places,
    grace,
    warns: config.logLevel !== "error",
  };
  const own = Object.entries(environment).filter(([name]) => !watch.includes(name));
  flushCompileCache();
  if (process.execve === undefined) throw new Error("this version of Node cannot replace its program");
  return process.execve(
    process.execPath,
    [process.execPath, supervisor, JSON.stringify(plan)],
    Object.fromEntries(own) as Record<string, string>,
  );
}

/** Throws if other users may not read the code, as after a clone with a umask of 077. Folders above the project do not matter. */
function requireReadable(): void {
  for (const path of [main, join(project, "node_modules"), join(project, "api/src"), process.execPath]) {
    const status = statSync(path);
    const needed = status.isDirectory() ? 0o005 : 0o004;
    if ((status.mode & needed) !== needed)
      throw new Error(
        `The user ${accountName} may not read ${path}. Run "chmod -R go+rX ${project}", or set BRUME_PROCESSES=1.`,
      );
  }
}

/** Returns the user of the control plane. A start without npm, as by systemd after an update, may be the first that needs it. */
async function ensureAccount(exec: Exec): Promise<Account> {
  const account = readAccount();
  if (account !== null) return account;
  await exec.run(["sh", join(project, "scripts/setup"), "user"]).catch(() => {});
  const created = readAccount();
  if (created !== null) return created;
  throw new Error(
    `The system user ${accountName}, which the control plane runs as, does not exist and could not be created. Create a system user and group of this name, or set BRUME_PROCESSES=1.`,
  );
}

/** Converts the folder of an earlier release. A service in one process, or a script, may use the database. */
async function convert(dataFolder: string, account: Account, log: Log): Promise<void> {
  const { databaseName, lockFile } = await import("../store/sqlite.ts");
  const file = join(dataFolder, databaseName);
  const held = lockFile(file, `database ${file}`);
  try {
    prepareFolder(dataFolder, account);
  } finally {
    held.close();
  }
  log(
    "info",
    `The database, the key and the token are now in ${controlFolder(dataFolder)}, which belongs to the user brume.`,
  );
}
