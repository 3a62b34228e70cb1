/**
 * Composition root of the service without its drivers: `createService` connects features, engine and HTTP server. `main.ts` passes
 * the real drivers and database. Tests pass a new database and simulated drivers, and run the same code.
 */
import { tmpdir } from "node:os";
import type { Location } from "@brume/api/catalog.ts";
import { contract } from "@brume/api/contract.ts";
import { limits } from "@brume/api/dns.ts";
import { describeApi } from "@brume/api/openapi.ts";
import type { Setting } from "@brume/api/setting.ts";
import { auditTable } from "./account/audit.ts";
import { createAuthenticator } from "./account/authenticator.ts";
import { accountRoutes } from "./account/routes.ts";
import { sessionRoutes } from "./account/sessionroutes.ts";
import { auditRows } from "./account/table.ts";
import type { Clock } from "./base/clock.ts";
import { once } from "./base/coalesce.ts";
import type { Log } from "./base/log.ts";
import type { Sealer } from "./base/secret.ts";
import { syncOperatorImages } from "./catalog/operatorimages.ts";
import { catalogRoutes } from "./catalog/routes.ts";
import { defaultKeep, type Keep } from "./config/retention.ts";
import { filterEventForToken } from "./dns/access.ts";
import { claimReconciler } from "./dns/claimreconciler.ts";
import { pastClaims } from "./dns/claimtable.ts";
import { dnsMetrics } from "./dns/metrics.ts";
import { type FetchZone, fetchZone } from "./dns/migrate.ts";
import { createZonePublisher, type ZonePublisher } from "./dns/publisher.ts";
import { delegationReconciler, historyPruner } from "./dns/reconciler.ts";
import { dnsRoutes } from "./dns/routes.ts";
import { retiredZones } from "./dns/table.ts";
import { createDocs } from "./docs/serve.ts";
import type { Consoles, Images, Machines } from "./drivers/machine/interface.ts";
import type { Nameserver } from "./drivers/nameserver/interface.ts";
import type { Router } from "./drivers/router/interface.ts";
import type { Sender } from "./drivers/webhook/interface.ts";
import { observeCommits } from "./engine/commit.ts";
import { createEngine, type Engine } from "./engine/engine.ts";
import { createFeed, eventPruner } from "./engine/event.ts";
import { endedTasks, pruneReconciler } from "./engine/prune.ts";
import { createPruneTime } from "./engine/prunetime.ts";
import { endedWithin } from "./engine/task.ts";
import { type CertificateCheck, createHealth, type ServiceState } from "./health.ts";
import type { DiskSettings } from "./http/diskspace.ts";
import { printEvent } from "./http/events.ts";
import { moveKeyTimes, storedKeys } from "./http/idempotency.ts";
import { createHttp, type Http, type HttpLimits } from "./http/server.ts";
import { createTickets } from "./http/tickets.ts";
import { createNetworks, type NetworkSettings } from "./network/networks.ts";
import { importFlow } from "./server/flow/import.ts";
import { addServerMetrics, printServerMetrics } from "./server/metrics.ts";
import { capacityOf } from "./server/model/capacity.ts";
import { retiredRows } from "./server/orphantable.ts";
import { allServerRoutes } from "./server/routes.ts";
import { createSampler } from "./server/sampler.ts";
import { createServers } from "./server/servers.ts";
import { sumAll } from "./server/sumtable.ts";
import type { UploadOptions } from "./server/upload.ts";
import { StorageError, type Store, withoutStorage } from "./store/db.ts";
import { webhookRoutes } from "./webhook/routes.ts";
import { endedDeliveries } from "./webhook/table.ts";
import { createWebhooks, type Webhooks } from "./webhook/worker.ts";

/** Database, drivers and settings of the service. */
export interface ServiceOptions extends UploadOptions {
  readonly store: Store;
  readonly nameserver: Nameserver;
  /** The publisher of its zones, if it was started before; closed with the service. */
  readonly zones?: ZonePublisher;
  readonly router: Router;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly randomBytes: (bytes: number) => Uint8Array;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly version: string;
  readonly machines: Machines;
  readonly images: Images;
  readonly consoles: Consoles;
  /** Calls the listener when the drivers, in another process, are back; `isNew`: they have restarted. */
  readonly onReturn?: (listener: (isNew: boolean) => void) => void;
  /** Folder on the host with the folders of servers, as responses show it. */
  readonly serversFolder: string;
  /** Description of the machine driver for `/readyz`, such as `host: qemu, tcg`. */
  readonly machineDetail: string;
  /** Whether VMs and routers are real or simulated, as locations show it. */
  readonly engines: Pick<Location["Engines"], "Machine" | "Router">;
  /** vCPUs that may be allocated per core of the host. */
  readonly cpuOvercommit: number;
  readonly networks: Omit<NetworkSettings, "deviceOf">;
  /** Sends webhook requests. Closed with the service. */
  readonly sender: Sender;
  /** Names of the automatic NS records. */
  readonly dnsNames: readonly string[];
  /** Addresses of resolvers for lookups of foreign zones. Empty: no lookups. Null: the resolvers of the host. */
  readonly resolvers: readonly string[] | null;
  /** Port of the name servers of parent zones. Default 53. */
  readonly parentPort?: number;
  /** Replaces the network fetch of a domain's records from its present name servers, for tests. */
  readonly fetchZone?: FetchZone;
  /** Data folder, and the free bytes below which the service warns. Without it the disk is not checked. */
  readonly disk?: DiskSettings;
  /** The settings as clients see them. Absent: none are listed. */
  readonly settings?: readonly Setting[];
  /** Retention of tables that grow with use, and milliseconds between two prunings. */
  readonly keep?: { readonly caps?: Partial<Keep>; readonly period?: number };
  /** Accepts malformed HTTP/1.1 requests of old clients (`insecureHTTPParser` of Node). */
  readonly lenientHttp: boolean;
  /** PEM texts. Null: HTTP without TLS. */
  readonly tls: { readonly certificate: string; readonly key: string } | null;
  /** Returns the check of the certificate for `/readyz`, and when it expires, in ms since 1970. Absent: no TLS. */
  readonly certificate?: CertificateCheck;
  /** Folder of the built web console; absent: there is none. */
  readonly consoleFolder?: string;
  readonly limits?: Partial<HttpLimits>;
}

/** The service, after `createService`. */
export interface Service {
  /** The database; changes through it are visible in responses and events at once. */
  readonly store: Store;
  /** Serves another certificate to new connections. */
  readonly setTls: Http["setTls"];
  /** Starts the HTTP server, the name server's zones and the engine. Resolves to `host:port` when all stored zones are served. */
  listen(host: string, port: number): Promise<string>;
  /**
   * Stops accepting requests and work. Running requests get `graceMs` milliseconds, then running steps the same. Store, drivers and
   * name server stay open: the caller closes them.
   */
  close(graceMs: number): Promise<void>;
}

const minute = 60_000;
const prunables = [...auditRows, storedKeys, endedTasks, retiredZones, ...pastClaims, endedDeliveries, retiredRows];
/** Milliseconds between two health checks, and between two writes of the last use of tokens. */
const checkPeriod = 5000;
const sshPort = 22;
/** Milliseconds that running webhook requests get when the service stops. */
const webhookGrace = 2000;

/**
 * Builds the service from a database, drivers and settings: all features, the engine with its flows and reconcilers, and the HTTP
 * server. Nothing listens or runs until `listen` is called.
 */
export function createService(options: ServiceOptions): Service {
  const { nameserver, machines, images, consoles, clock, random, sealer, dnsNames, resolvers } = options;
  const log = withoutStorage(options.log);
  const store = observeCommits(options.store);
  const { caps: ownCaps, period = minute } = options.keep ?? {};
  const caps = { ...defaultKeep, ...ownCaps };
  const { days, count } = caps.event;
  const feed = createFeed({ store, clock, log, age: days * 1440 * minute, count, taken: () => webhooks.processed() });
  const pruneTime = createPruneTime(store, clock);
  const authenticator = createAuthenticator(store, clock);
  const { zones = createZonePublisher({ store, nameserver, nameServers: dnsNames, log }) } = options;
  const metrics = dnsMetrics(nameserver);
  const networkSettings = { ...options.networks, deviceOf: (nic: number) => machines.deviceOf(nic) };
  const networks = createNetworks({
    ...options,
    store,
    random: options.randomBytes,
    settings: networkSettings,
    ended: (task, wanted) => engine.ended(task, wanted),
  });
  const { locations } = options.networks;
  const servers = createServers({
    ...options,
    store,
    pruneTime,
    log,
    networks,
    random: options.randomBytes,
    surroundings: networkSettings,
    sendsSshBanner: async (network, address) =>
      (await options.router.readBanner(network, address, sshPort))?.startsWith("SSH-") === true,
  });
  const sampler = createSampler({ store, clock, pruneTime, machines: servers.machineStatus, networks: networks.live });
  addServerMetrics(metrics.registry, store, sampler, servers.machineStatus);
  const importing = { ...options, store, log };
  const importer = importFlow(importing);
  const tickets = createTickets(clock, options.randomBytes);
  const context = {
    store,
    clock,
    log,
    sealer,
    machines,
    consoles,
    serversFolder: options.serversFolder,
    servers,
    locations,
    tickets,
    cpuOvercommit: options.cpuOvercommit,
    position: store.position,
    power: servers.power,
    condition: servers.condition,
    ended: (task: number, wanted?: Parameters<Engine["ended"]>[1]) => engine.ended(task, wanted),
  };
  const webhooks: Webhooks = createWebhooks({
    ...options,
    store,
    feed,
    hasRequests: () => http.running() > 0,
    print: printEvent,
  });
  const { parentPort: port = 53 } = options;
  const delegation = delegationReconciler(store, clock, { nameServers: dnsNames, resolvers, port }, zones.served);
  const claims = claimReconciler({ store, clock, zones, nameServers: dnsNames, resolvers, delegation });
  const claimTools = {
    store,
    clock,
    random: options.randomBytes,
    ended: (task: number, wanted?: Parameters<Engine["ended"]>[1]) => engine.ended(task, wanted),
    reconciler: claims,
  };
  const fetch: FetchZone = (domain) => fetchZone(domain, { deadlineMs: limits.importSeconds * 1000, resolvers });
  let state: ServiceState = "starting";
  const health = createHealth({
    store,
    clock,
    log,
    zones,
    metrics,
    machines: servers.machineStatus,
    networks: networks.live,
    disk: options.disk,
    certificate: options.certificate,
    details: { machine: options.machineDetail, router: options.networks.engines },
  });

  const describe = () => describeApi(contract, { version: options.version });
  const openapi = once(() => JSON.stringify(describe()));
  const http = createHttp({
    store,
    clock,
    log,
    sealer,
    feed,
    tickets,
    operations: contract,
    handlers: {
      ...accountRoutes(clock, authenticator, (tx, project, isBlocked, by) =>
        isBlocked ? servers.commands.block(tx, project, by) : servers.commands.unblock(tx, project, by),
      ),
      ...sessionRoutes(clock, authenticator),
      ...catalogRoutes({
        clock,
        locations,
        settings: options.settings ?? [],
        engines: { ...options.engines, NameServer: "builtin" },
        ipv6: options.networks.publicPool6 !== null,
        async capacity(db) {
          // Without a response of the machine driver no capacity is free.
          const status = await servers.machineStatus.observeServers([]).catch(() => null);
          return capacityOf(
            status?.capacity ?? { cores: 0, memory: 0, disk: 0, diskFree: 0 },
            await sumAll(db),
            options.cpuOvercommit,
          );
        },
      }),
      ...allServerRoutes(context, sampler, importing, importer),
      ...dnsRoutes(
        { clock, zones, nameServers: dnsNames, snapshot: store.snapshot, fetchZone: options.fetchZone ?? fetch },
        delegation,
        claimTools,
        () => metrics.last().zones,
      ),
      ...networks.handlers,
      ...webhookRoutes({ ...options, reconciler: webhooks.reconciler, wake: webhooks.wake }),
    },
    authenticate: authenticator.authenticate,
    audit: auditTable,
    readiness: () => health.readiness(state),
    refreshReadiness: health.check,
    openapi,
    docs: createDocs(describe, options.consoleFolder),
    freshness() {
      const stored = store.position();
      // While nothing can be stored, servers show what was observed instead of what is stored.
      if (stored === null || store.blocked() !== null) return null;
      return stored + zones.revision() + servers.machineStatus.revision();
    },
    filterEvent: filterEventForToken,
    ended: (tasks, ms) =>
      endedWithin(
        engine.ended,
        tasks.map((task) => ({ task })),
        ms,
      ),
    registry: metrics.registry,
    serverMetrics: () => printServerMetrics(sampler),
    consoleFolder: options.consoleFolder,
    spoolFolder: options.disk?.folder ?? tmpdir(),
    lenient: options.lenientHttp,
    simulated: Object.entries(options.engines)
      .flatMap(([name, kind]) => (kind === "sim" ? name : []))
      .join(", "),
    tls: options.tls,
    ...(options.limits !== undefined && { limits: options.limits }),
  });
  const engine = createEngine({
    store,
    flows: [...servers.flows, importer],
    reconcilers: [
      delegation,
      claims,
      historyPruner(store, { time: pruneTime, cap: caps.version, period }),
      ...networks.reconcilers,
      ...servers.reconcilers,
      sampler.reconciler,
      eventPruner(feed, pruneTime, period),
      pruneReconciler({ store, time: pruneTime, prunables, caps, period }),
      webhooks.reconciler,
    ],
    clock,
    random,
    log,
    alone: store.alone,
    async onClockSet(tx, step) {
      await networks.moveTimes(tx, step);
      await moveKeyTimes(tx, step);
    },
  });
  options.onReturn?.((isNew) => {
    if (!isNew || state !== "running") return;
    untilStored("networks after a restart of the drivers", networks.applyAll).catch((error: unknown) =>
      log("error", "Could not apply all networks after a restart of the drivers.", { error }),
    );
  });
  const flushTokenUse = (): Promise<void> =>
    authenticator
      .flush()
      .catch((error: unknown) => log("error", "Could not store when tokens were last used.", { error }));
  const healthTimer = setInterval(() => {
    void health.check();
    void flushTokenUse();
  }, checkPeriod);
  healthTimer.unref();

  /**
   * Runs work that reads and stores. If the database cannot do that, tries again later: reads and DNS must work with a full disk or a damaged
   * table.
   */
  async function untilStored(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      log("error", `Could not store ${what}; retrying in ${checkPeriod / 1000} s.`, { error });
      const again = (): void => {
        if (state !== "stopping")
          untilStored(what, work).catch((cause: unknown) => log("error", `Could not store ${what}.`, { error: cause }));
      };
      setTimeout(again, checkPeriod).unref();
    }
  }

  async function writeStartRows(): Promise<void> {
    await syncOperatorImages(store, await images.listOperatorImages(), clock.now());
    await networks.begin();
  }

  return {
    store,
    setTls: http.setTls,
    async listen(host, port) {
      await untilStored("sums of servers and orphans", servers.noteOrphans).catch((error: unknown) =>
        log("error", "Could not search the host for orphans; the next check tries again.", { error }),
      );
      await untilStored("numbers of addresses", networks.recount);
      const address = await http.listen(host, port);
      await untilStored("operator images and networks", writeStartRows);
      await zones.loaded;
      await health.check();
      engine.run();
      state = "running";
      return address;
    },
    async close(graceMs) {
      state = "stopping";
      clearInterval(healthTimer);
      await http.close(graceMs);
      await webhooks.stop(Math.min(graceMs, webhookGrace));
      await engine.drain(graceMs);
      await sampler
        .flush()
        .catch((error: unknown) => log("error", "Could not store the latest server metrics.", { error }));
      servers.close();
      zones.close();
      feed.close();
      await flushTokenUse();
    },
  };
}
