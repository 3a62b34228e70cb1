/**
 * Entry point: reads the configuration, opens the database, starts the drivers, creates the service and listens. It is the only module
 * that chooses concrete drivers and databases, and the only one that ends the process.
 */
import { randomBytes } from "node:crypto";
import { getServers } from "node:dns";
import { readFileSync } from "node:fs";
import { access, constants, mkdir, readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join, resolve } from "node:path";
import { createSecureContext } from "node:tls";
import { fileURLToPath } from "node:url";
import { ensureFirst } from "./account/first.ts";
import { openSealer } from "./account/key.ts";
import { parseAddresses } from "./base/address.ts";
import { systemClock } from "./base/clock.ts";
import { createLog, type Log } from "./base/log.ts";
import { quoteShell } from "./base/quote.ts";
import { ensureSecretFile, type KeptSecret } from "./base/secretfile.ts";
import { ConfigError } from "./config/value.ts";
import { type Config, loadConfig } from "./config.ts";
import { listAllDomains } from "./dns/table.ts";
import { createExec } from "./drivers/exec.ts";
import { chooseMachines } from "./drivers/machine/choose.ts";
import { createBuiltin } from "./drivers/nameserver/builtin/builtin.ts";
import { requireNames } from "./drivers/router/linux/installations.ts";
import { startRouter } from "./drivers/router/linux/start.ts";
import { closedExcept, resolversFor } from "./drivers/router/model/closedaddresses.ts";
import { tagOf } from "./drivers/router/model/name.ts";
import { createThreadSender } from "./drivers/webhook/thread.ts";
import { isBackupFolder, isOwnFolder } from "./server/flow/image.ts";
import { createService } from "./service.ts";
import { compactAtStart } from "./store/compact.ts";
import { StorageError, type Store } from "./store/db.ts";
import { migrate } from "./store/migrate.ts";

import { databaseName, lockFile, openSqlite } from "./store/sqlite.ts";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** Folder of the guest images that the set-up builds. */
const built = fileURLToPath(new URL("../../.engines/images", import.meta.url));

/** Seconds that running requests and steps get after SIGTERM. */
const graceSeconds = 10;

async function start(config: Config): Promise<void> {
  const log = createLog(config.logLevel);
  for (const name of config.unknown) log("warn", `${name} is set, but Brume has no setting of this name.`);
  const tls = config.tls && (await readTls(config.tls));
  await mkdir(config.dataFolder, { recursive: true, mode: 0o700 }).catch(throwNaming("BRUME_DATA"));
  const kept = config.token === null ? ensureSecretFile(config.dataFolder, "token") : null;

  const database = join(config.dataFolder, databaseName);
  const store =
    config.databaseUrl === null ? await openSqlite(database, { log, check: true }) : await openServer(config, log);
  await migrate(store);
  if (config.databaseUrl === null) await compactAtStart(store, database, log);
  const sealer = await openSealer(store, config.key, config.dataFolder, log);
  const tokenInForce = await ensureFirst(store, systemClock, kept?.value ?? config.token ?? "").catch(
    unlessStorage(true),
  );
  const nameserver = await createBuiltin({
    ...config.dns.listen,
    rateLimit: config.dns.rateLimit,
    transfer: config.dns.transfer,
    log,
  }).catch(throwNaming("BRUME_DNS_LISTEN"));
  const { dataFolder, simulate } = config;
  const tag = tagOf(dataFolder);
  const { opened, forwarders } = config.network;
  const { pools, limits } = config.network;
  const driverOptions = {
    exec: createExec(),
    tag,
    dataFolder,
    simulate,
    opened,
    pools,
    limits,
    log,
    now: systemClock.now,
  };
  // Claims the names of this data folder before any driver lists objects of these names on the host.
  if (!simulate) requireNames(driverOptions, true);
  const { backupFolder } = config;
  if (backupFolder !== null) await access(backupFolder, constants.W_OK).catch(throwNaming("BRUME_BACKUPS"));
  const backups = backupFolder === null ? null : { folder: resolve(backupFolder), isBackup: isBackupFolder };
  const choice = chooseMachines({
    ...driverOptions,
    built,
    backups,
    isOwn: isOwnFolder,
    diskLimits: config.disk,
    random: Math.random,
  });
  const [found, chosen] = await Promise.all([startRouter(driverOptions), choice]).catch(async (error: unknown) => {
    // The driver's probes on the host end and clean up, also when the service does not start.
    await choice.catch(() => {});
    throw error;
  });
  const { driver } = chosen;
  // The Linux router sees new devices by itself. The simulated one is notified.
  if (found.plug !== null) driver.onDevice(found.plug);
  for (const line of [...chosen.lines, ...found.lines]) process.stdout.write(`engines: ${line}\n`);
  const own = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
  const resolvers = resolversFor(getServers(), own, opened);
  if (resolvers.usable.length === 0 && resolvers.closed.length > 0 && forwarders.length === 0)
    log("warn", "Guests get no name server: they cannot reach those of the host. Set BRUME_GUEST_DNS.", {
      closed: resolvers.closed,
    });
  const service = createService({
    store,
    nameserver,
    router: found.router,
    machines: driver,
    images: driver,
    consoles: driver,
    machineDetail: chosen.detail,
    engines: { Machine: chosen.kind, Router: found.kind },
    cpuOvercommit: config.cpuOvercommit,
    sender: createThreadSender({ allow: config.webhookAllow }),
    clock: systemClock,
    random: Math.random,
    randomBytes,
    log,
    sealer,
    version,
    networks: {
      locations: config.locations,
      publicPools: config.network.publicPools.map(parsePool("BRUME_PUBLIC_POOL")),
      publicPool6:
        config.network.publicPool6 === null ? null : parsePool("BRUME_PUBLIC_POOL6")(config.network.publicPool6),
      sharedBlocks: config.network.sharedPools.map(parsePool("BRUME_SHARED_POOL")),
      nat: config.network.nat,
      publicAddress: config.network.publicAddress,
      wireguardPort: config.network.wireguardPort,
      engines: found.detail,
      offers: found.offers,
      resolvers: resolvers.usable,
      forwarders,
      closed: closedExcept(opened),
    },
    keep: { caps: config.keep },
    disk: { folder: dataFolder, low: config.diskLow * 1e6 },
    dnsNames: config.dns.names,
    resolvers: config.dns.resolvers,
    lenientHttp: config.lenientHttp,
    tls,
  });

  let stoppingSince: number | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    // Under npm, Ctrl-C sends SIGINT twice at once. Only a signal at least 1 s later exits immediately.
    if (stoppingSince !== null) return Date.now() - stoppingSince < 1000 ? undefined : process.exit(1);
    stoppingSince = Date.now();
    log("info", `${signal}: finishing the running requests.`);
    service
      .close(graceSeconds * 1000)
      .then(() => Promise.all([nameserver.close(), found.router.close(), driver.close()]))
      .then(() => store.close())
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log("error", "The service did not stop cleanly.", { error });
          process.exit(1);
        },
      );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);

  const address = await service.listen(config.listen.host, config.listen.port).catch((error: unknown) => {
    throw explain(error as NodeJS.ErrnoException, config.listen);
  });
  const dns = (await nameserver.observe()).address;
  const [first] = await listAllDomains.all(store.read, { after: 0, limit: 1 }).catch(unlessStorage([]));
  const url = `${config.tls ? "https" : "http"}://${address}`;
  const hint = tokenInForce
    ? hintOfToken(config, kept)
    : { line: "token 1 was deleted; use another token", shell: "YOUR-TOKEN" };
  process.stdout.write(startText(url, hint, dns, first?.ascii ?? null));
  log("info", "ready", { address, dns, database: store.kind, pid: process.pid });
}

/** Opens PostgreSQL exclusively, and locks the data folder as with SQLite. */
async function openServer({ databaseUrl, dataFolder }: Config, log: Log): Promise<Store> {
  const { openPostgres } = await import("./store/postgres.ts");
  const folder = lockFile(join(dataFolder, databaseName), `data folder ${dataFolder}`);
  const store = await openPostgres(databaseUrl ?? "", { log, exclusive: true }).catch(throwNaming("BRUME_DATABASE"));
  const close = () => store.close().finally(() => folder.close());
  return { ...store, close };
}

/** Returns `otherwise` for a `StorageError`: with a full or damaged disk the service still starts and serves reads. The store logged it. */
const unlessStorage =
  <T>(otherwise: T) =>
  (error: unknown): T => {
    if (error instanceof StorageError) return otherwise;
    throw error;
  };

/** Throws the error again with the name of its setting in front. */
const throwNaming = (setting: string) => (error: unknown) => {
  throw new Error(`${setting}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
};

/** Parses an address block. Throws with the name of the setting. */
const parsePool = (setting: string) => (text: string) => {
  try {
    return parseAddresses(text);
  } catch (error) {
    return throwNaming(setting)(error);
  }
};

/** Reads both PEM files and checks that certificate and key match. Throws with the name of the setting. */
async function readTls(files: NonNullable<Config["tls"]>): Promise<NonNullable<Config["tls"]>> {
  const certificate = await readFile(files.certificate, "utf8").catch(throwNaming("BRUME_TLS_CERT"));
  const key = await readFile(files.key, "utf8").catch(throwNaming("BRUME_TLS_KEY"));
  try {
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    throwNaming("BRUME_TLS_CERT and BRUME_TLS_KEY")(error);
  }
  return { certificate, key };
}

/** Describes why the API cannot listen, and what to do. Returns an unknown error as it is. */
function explain(error: NodeJS.ErrnoException, { host, port }: Config["listen"]): Error {
  const why: Partial<Record<string, string>> = {
    EADDRINUSE: "is in use by another program: stop it (ss -lntp shows it) or choose another address with BRUME_LISTEN",
    EACCES: "needs more privileges: a port below 1024 needs CAP_NET_BIND_SERVICE",
    EADDRNOTAVAIL: "is not an address of this host: choose another with BRUME_LISTEN",
  };
  const sentence = why[error.code ?? ""];
  return sentence === undefined ? error : new Error(`${host}:${port} ${sentence}.`);
}

/** How to get token 1. */
interface TokenHint {
  /** For people. */
  readonly line: string;
  /** Shell text for use inside double quotes. */
  readonly shell: string;
}

/** Shows the token itself only once, when it is created, and only on a terminal: others can read a journal or a file. */
function hintOfToken({ dataFolder }: Config, kept: KeptSecret | null): TokenHint {
  if (kept === null) return { line: "the value of BRUME_TOKEN", shell: "$BRUME_TOKEN" };
  const path = join(dataFolder, "token");
  const shell = `$(cat ${quoteShell(path)})`;
  if (!kept.isNew) return { line: `in ${path}`, shell };
  if (!process.stdout.isTTY) return { line: `created now, in ${path}`, shell };
  return { line: `${kept.value}\n         (shown only once; it is in ${path})`, shell };
}

/** Returns the text that the start prints: addresses, token, and example commands to paste. `domain`: one that is served already. */
function startText(url: string, token: TokenHint, dns: string, domain: string | null): string {
  const colon = dns.lastIndexOf(":");
  const server = `@${dns.slice(0, colon).replace(/[[\]]/g, "")} -p ${dns.slice(colon + 1)}`;
  const curl = `curl -sS -w '\\n' -H "Authorization: Bearer ${token.shell}" ${url}`;
  const lines =
    domain === null
      ? [
          "Create a domain with an address and query it:",
          "",
          `  ${curl}/dns -d '{"Name":"example.com","Ip":"192.0.2.10"}'`,
          `  dig +short ${server} example.com`,
        ]
      : [
          "List the domains and query the first one:",
          "",
          `  ${curl}/dns`,
          `  dig +noall +answer ${server} ${domain} SOA`,
        ];
  return [
    "",
    "Brume is ready.",
    "",
    `  API    ${url}        (reference: ${url}/docs)`,
    `  Token  ${token.line}`,
    `  DNS    ${dns}, UDP and TCP`,
    "",
    ...lines,
    "",
    "Create a server and wait until SSH works (the response contains the password):",
    "",
    `  ${curl}/server -H 'Prefer: wait=60' -d '{"Name":"web-1","RAM":256,"HDD":1,"WaitFor":"Ssh"}'`,
    "",
    "Ctrl-C stops the service. Servers and networks continue, and all confirmed changes are stored. To remove them from this host: npm run down",
    "",
    "",
  ].join("\n");
}

try {
  await start(loadConfig(process.env));
} catch (error) {
  // Errors that we throw on purpose are sentences for operators. All others are bugs and need the stack.
  const isExpected =
    error instanceof ConfigError ||
    error instanceof StorageError ||
    (error instanceof Error && error.constructor === Error);
  const text =
    isExpected || !(error instanceof Error) ? (error instanceof Error ? error.message : String(error)) : error.stack;
  process.stderr.write(`Brume did not start: ${text}\n`);
  process.exit(1);
}
