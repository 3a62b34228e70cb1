/**
 * Starts the service in this process: opens the database, connects to the drivers of the host, creates the service and listens. In one
 * process it has the drivers itself; as the control plane it reaches them through the agent.
 */
import { randomBytes } from "node:crypto";
import { getServers } from "node:dns";
import { mkdir, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureFirst } from "./account/first.ts";
import { openSealer } from "./account/key.ts";
import { parseAddresses } from "./base/address.ts";
import { systemClock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { limitHeap, releaseMemory, releaseWhenIdle } from "./base/memory.ts";
import { ensureSecretFile } from "./base/secretfile.ts";
import type { ShownSetting } from "./config/report.ts";
import type { Config } from "./config.ts";
import { createZonePublisher } from "./dns/publisher.ts";
import { contentsVersion } from "./dns/savedzones.ts";
import { listAllDomains } from "./dns/table.ts";
import type { Nameserver } from "./drivers/nameserver/interface.ts";
import { closedExcept, resolversFor } from "./drivers/router/model/closedaddresses.ts";
import { createThreadSender } from "./drivers/webhook/thread.ts";
import type { Host } from "./host.ts";
import { openCertificate } from "./launch/certificate.ts";
import type { KeyTexts } from "./launch/parent.ts";
import { release } from "./release.ts";
import { hintOfToken, startText } from "./starttext.ts";
import { compactAtStart } from "./store/compact.ts";
import { StorageError, type Store, withoutStorage } from "./store/db.ts";
import { migrate } from "./store/migrate.ts";
import { databaseName, lockFile, openSqlite } from "./store/sqlite.ts";

/** Folder of the data that the command `brume` of this clone finds without settings. The control plane has another working folder. */
const defaultData = fileURLToPath(new URL("../../data", import.meta.url));

/** Seconds that running requests and steps get after SIGTERM. */
const graceSeconds = 10;

/** The process that `startService` runs in. */
export interface Surroundings {
  readonly log: Log;
  /** Folder of database, key and token. */
  readonly folder: string;
  /** PEM texts of the operator's certificate; null: there is none. */
  readonly tls: KeyTexts | null;
  /** Calls the listener when its files have changed. */
  readonly onTls: (listener: (tls: KeyTexts) => void) => void;
  /** Whether the introduction for people is printed. */
  readonly introduces: boolean;
  /** The settings as clients of the API see them. */
  readonly settings: readonly ShownSetting[];
  /** The name server, which `openNameserver` has started. */
  readonly nameserver: Promise<Nameserver>;
  /** Opens the drivers, or connects to the agent. */
  readonly openHost: () => Promise<Host>;
}

/** Starts the service; resolves when it serves requests. SIGTERM and SIGINT then stop it and end the process. */
export async function startService(
  config: Config,
  { log, folder, tls, onTls, introduces, settings, nameserver: startingNameserver, openHost }: Surroundings,
): Promise<void> {
  limitHeap();
  releaseWhenIdle();
  for (const name of config.unknown) log("warn", `${name} is set, but Brume has no setting of this name.`);
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch(throwNaming("BRUME_DATA"));
  const kept = config.token === null ? ensureSecretFile(folder, "token") : null;

  const database = join(folder, databaseName);
  const store =
    config.databaseUrl === null
      ? await openSqlite(database, { log, check: true })
      : await openServer(config, folder, log);
  await migrate(store);
  if (config.databaseUrl === null) await compactAtStart(store, database, log);
  const sealer = await openSealer(store, config.key, folder, log);
  const tokenInForce = await ensureFirst(store, systemClock, kept?.value ?? config.token ?? "").catch(
    unlessStorage(true),
  );
  const nameserver = await startingNameserver.catch(throwNaming("BRUME_DNS_LISTEN"));
  const certificate = await openCertificate(config, { log, folder, tls, onTls });
  // Queries are answered before the engines of the host are ready.
  const zones = createZonePublisher({
    store,
    nameserver,
    nameServers: config.dns.names,
    log: withoutStorage(log),
    version: contentsVersion,
  });
  // Neither do they wait for the modules of the API, which take the processor.
  await zones.adopted;
  const { opened, forwarders } = config.network;
  const { machines, images, uploads, consoles, router, description, onReturn, close } = await openHost();
  for (const line of !introduces ? [] : [...description.machines.lines, ...description.router.lines])
    process.stdout.write(`engines: ${line}\n`);
  const localAddresses = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
  const resolvers = resolversFor(getServers(), localAddresses, opened);
  if (resolvers.usable.length === 0 && resolvers.closed.length > 0 && forwarders.length === 0)
    log("warn", "Guests get no name server: they cannot reach those of the host. Set BRUME_GUEST_DNS.", {
      closed: resolvers.closed,
    });
  // Loaded only now: zones do not wait for the modules of the API.
  const { createService } = await import("./service.ts");
  const service = createService({
    store,
    nameserver,
    zones,
    router,
    machines,
    images,
    uploads,
    uploadHours: config.uploadHours,
    consoles,
    ...(onReturn !== undefined && { onReturn }),
    serversFolder: join(config.dataFolder, "servers"),
    machineDetail: description.machines.detail,
    engines: { Machine: description.machines.kind, Router: description.router.kind },
    cpuOvercommit: config.cpuOvercommit,
    sender: createThreadSender({ allow: config.webhookAllow }),
    clock: systemClock,
    random: Math.random,
    randomBytes,
    log,
    sealer,
    version: release,
    networks: {
      locations: config.locations,
      publicPools: config.network.publicPools.map(parsePool("BRUME_PUBLIC_POOL")),
      publicPool6:
        config.network.publicPool6 === null ? null : parsePool("BRUME_PUBLIC_POOL6")(config.network.publicPool6),
      sharedBlocks: config.network.sharedPools.map(parsePool("BRUME_SHARED_POOL")),
      nat: config.network.nat,
      publicAddress: config.network.publicAddress,
      wireguardPort: config.network.wireguardPort,
      engines: description.router.detail,
      offers: description.router.offers,
      resolvers: resolvers.usable,
      forwarders,
      closed: closedExcept(opened),
    },
    settings,
    keep: { caps: config.keep },
    disk: { folder, low: config.diskLow * 1e6 },
    dnsNames: config.dns.names,
    resolvers: config.dns.resolvers,
    consoleFolder: fileURLToPath(new URL("../../console/dist", import.meta.url)),
    lenientHttp: config.lenientHttp,
    tls: certificate?.pair ?? null,
    ...(certificate !== null && { certificate: certificate.check }),
  });

  let stoppingSince: number | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    // Under npm, Ctrl-C sends SIGINT twice at once. Only a signal at least 1 s later exits immediately.
    if (stoppingSince !== null) return Date.now() - stoppingSince < 1000 ? undefined : process.exit(1);
    stoppingSince = Date.now();
    log("info", `${signal}: finishing the running requests.`);
    (certificate?.close() ?? Promise.resolve())
      .then(() => service.close(graceSeconds * 1000))
      .then(() => Promise.all([zones.save().then(() => nameserver.close()), close()]))
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
  // All zones were loaded.
  releaseMemory();
  const dns = (await nameserver.observe()).address;
  const [first] = await listAllDomains.all(store.read, { after: 0, limit: 1 }).catch(unlessStorage([]));
  await certificate?.begin(service, { zones, nameserver }, Number(address.split(":").at(-1)));
  const url = `${certificate ? "https" : "http"}://${address}`;
  // The command line finds this installation by the file.
  await writeFile(join(folder, "url"), `${url}\n`).catch((error: unknown) =>
    log("warn", "The file url was not written.", { error }),
  );
  if (introduces)
    process.stdout.write(
      startText({
        url: nameUrl(url, certificate?.name ?? null),
        token: tokenInForce ? hintOfToken(config.dataFolder, kept) : "token 1 was deleted; use another token",
        dns,
        domain: first?.ascii ?? null,
        dataFolder: config.dataFolder === defaultData ? null : config.dataFolder,
        hasTokenFile: kept !== null,
      }),
    );
  log("info", "ready", { address, dns, database: store.kind, pid: process.pid });
}

/** Returns the URL with the name of the certificate instead of the address. */
const nameUrl = (url: string, name: string | null): string =>
  name === null
    ? url
    : url.replace(/\/\/.*:(\d+)$/, (_, port: string) => `//${name}${port === "443" ? "" : `:${port}`}`);

/** Opens PostgreSQL exclusively, and locks the data folder as with SQLite. */
async function openServer({ databaseUrl, dataFolder }: Config, own: string, log: Log): Promise<Store> {
  const { openPostgres } = await import("./store/postgres.ts");
  const folder = lockFile(join(own, databaseName), `data folder ${dataFolder}`);
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
