/**
 * The service over its ports: features, engine and HTTP put together. Tests build it on a fresh database and a free port;
 * everything above the ports is the same as in `main`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Location } from "@brume/api/catalog.ts";
import { contract } from "@brume/api/contract.ts";
import { limits } from "@brume/api/dns.ts";
import { renderDocs } from "@brume/api/docs.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { sql } from "kysely";
import { auditTable } from "./account/audit.ts";
import { createAuthenticator } from "./account/authenticator.ts";
import { accountRoutes } from "./account/routes.ts";
import { auditRows } from "./account/table.ts";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import type { Sealer } from "./base/secret.ts";
import { syncOperatorImages } from "./catalog/operatorimages.ts";
import { catalogRoutes } from "./catalog/routes.ts";
import { defaultKeep, type Keep } from "./config.ts";
import { filterEventForToken } from "./dns/access.ts";
import { claimReconciler } from "./dns/claimreconciler.ts";
import { pastClaims } from "./dns/claimtable.ts";
import { dnsMetrics } from "./dns/metrics.ts";
import { type FetchZone, fetchZone } from "./dns/migrate.ts";
import { createZonePublisher } from "./dns/publisher.ts";
import { delegationReconciler, historyPruner } from "./dns/reconciler.ts";
import { dnsRoutes } from "./dns/routes.ts";
import { retiredZones } from "./dns/table.ts";
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
import { createDiskNews } from "./http/diskevents.ts";
import { createDiskWatch, type DiskSettings, type DiskState, describeDisk, withoutStorage } from "./http/diskspace.ts";
import { printEvent } from "./http/events.ts";
import { moveKeyTimes, storedKeys } from "./http/idempotency.ts";
import { createHttp, type HttpLimits } from "./http/server.ts";
import type { Readiness } from "./http/servicehandlers.ts";
import { createTickets } from "./http/tickets.ts";
import { createNetworks, type NetworkSettings } from "./network/networks.ts";
import { importFlow } from "./server/flow/import.ts";
import { addServerMetrics } from "./server/metrics.ts";
import { capacityOf } from "./server/model/capacity.ts";
import { countOrphans, retiredRows } from "./server/orphantable.ts";
import { allServerRoutes } from "./server/routes.ts";
import { createSampler } from "./server/sampler.ts";
import { createServers } from "./server/servers.ts";
import { sumAll } from "./server/table.ts";
import { StorageError, type Store } from "./store/db.ts";
import { webhookRoutes } from "./webhook/routes.ts";
import { endedDeliveries } from "./webhook/table.ts";
import { createWebhooks, type Webhooks } from "./webhook/worker.ts";

export interface ServiceOptions {
  readonly store: Store;
  readonly nameserver: Nameserver;
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
  /** What the machines are, for people: `host: qemu, tcg`. */
  readonly machineDetail: string;
  /** What is real here. */
  readonly engines: Pick<Location["Engines"], "Machine" | "Router">;
  /** Processors of servers that one core of the host is counted for. */
  readonly cpuOvercommit: number;
  readonly networks: Omit<NetworkSettings, "deviceOf">;
  /** The way to the endpoints of webhooks. Closed with the service. */
  readonly sender: Sender;
  /** Names in the automatic NS set. */
  readonly dnsNames: readonly string[];
  /** Servers to ask about the outside; empty: nobody; null: the machine's own. */
  readonly resolvers: readonly string[] | null;
  /** Of the name servers of parents; 53 if absent. */
  readonly parentPort?: number;
  /** Instead of fetching over the network what a domain has where it is served at present. */
  readonly fetchZone?: FetchZone;
  /** Where the data is, and how many bytes may be free before that is worth a warning; without it the disk is not watched. */
  readonly disk?: DiskSettings;
  /** How much is kept of what grows with use, and milliseconds from one look at it to the next. */
  readonly keep?: { readonly caps?: Partial<Keep>; readonly period?: number };
  readonly lenientHttp: boolean;
  /** PEM texts. */
  readonly tls: { readonly certificate: string; readonly key: string } | null;
  readonly limits?: Partial<HttpLimits>;
}

export interface Service {
  /** Resolves to `host:port` once everything that was stored is served and requests are answered. */
  listen(host: string, port: number): Promise<string>;
  /** Finishes what has begun, for at most `graceMs` milliseconds, and leaves store and name server open. */
  close(graceMs: number): Promise<void>;
}

const minute = 60_000;
const prunables = [...auditRows, storedKeys, endedTasks, retiredZones, ...pastClaims, endedDeliveries, retiredRows];
/** Milliseconds between looks at the name server for `/readyz` and figures, and writes of when tokens were last used. */
const beat = 5000;
const sshPort = 22;
/** Milliseconds that webhooks under way get when the service stops. */
const webhookGrace = 2000;
/** Milliseconds after which a database that says nothing counts as not answering. */
const mostSilence = 1000;

export function createService(options: ServiceOptions): Service {
  const { nameserver, machines, images, consoles, clock, random, sealer, dnsNames, resolvers } = options;
  const log = withoutStorage(options.log);
  const store = observeCommits(options.store);
  const caps = { ...defaultKeep, ...options.keep?.caps };
  const { period = minute } = options.keep ?? {};
  const { days, count } = caps.event;
  const feed = createFeed({ store, clock, log, age: days * 1440 * minute, count, taken: () => webhooks.processed() });
  const pruneTime = createPruneTime(store, clock);
  const authenticator = createAuthenticator(store, clock);
  const zones = createZonePublisher({ store, nameserver, nameServers: dnsNames, log });
  const figures = dnsMetrics(nameserver);
  const surroundings = { ...options.networks, deviceOf: (nic: number) => machines.deviceOf(nic) };
  const networks = createNetworks({
    ...options,
    store,
    random: options.randomBytes,
    settings: surroundings,
    ended: (task, wanted) => engine.ended(task, wanted),
  });
  const { locations } = options.networks;
  const servers = createServers({
    store,
    clock,
    pruneTime,
    log,
    sealer,
    machines,
    images,
    consoles,
    networks,
    random: options.randomBytes,
    surroundings,
    sendsSshBanner: async (network, address) =>
      (await options.router.readBanner(network, address, sshPort))?.startsWith("SSH-") === true,
  });
  const sampler = createSampler({ store, clock, pruneTime, machines: servers.machineStatus, networks: networks.live });
  addServerMetrics(figures.registry, store, sampler);
  const importing = { store, clock, images };
  const importer = importFlow(importing);
  const tickets = createTickets(clock, options.randomBytes);
  const context = {
    store,
    clock,
    log,
    sealer,
    machines,
    consoles,
    servers,
    locations,
    tickets,
    cpuOvercommit: options.cpuOvercommit,
    power: servers.power,
    ended: (task: number, wanted?: Parameters<Engine["ended"]>[1]) => engine.ended(task, wanted),
  };
  const webhooks: Webhooks = createWebhooks({ ...options, store, feed, print: printEvent });
  const { parentPort: port = 53 } = options;
  const parents = { nameServers: dnsNames, resolvers, port };
  const delegation = delegationReconciler(store, clock, parents, zones.served);
  const claims = claimReconciler({ store, clock, zones, nameServers: dnsNames, resolvers, delegation });
  const claimTools = {
    store,
    clock,
    random: options.randomBytes,
    ended: (task: number, wanted?: Parameters<Engine["ended"]>[1]) => engine.ended(task, wanted),
    reconciler: claims,
  };
  const fetch: FetchZone = (domain) => fetchZone(domain, { deadlineMs: limits.importSeconds * 1000, resolvers });
  let state: "starting" | "running" | "stopping" = "starting";
  let databaseAnswers = true;
  const diskWatch = createDiskWatch({ ...options.disk, log, registry: figures.registry });
  const diskNews = createDiskNews(store);
  let disk: DiskState | null = null;
  let machineState = { ready: true, detail: "not asked yet" };
  let orphans = 0;

  /** Asks how those are who are asked by nobody else; the router is watched. */
  async function look(): Promise<void> {
    const asked = sql`select 1`.execute(store.read).then(
      () => true,
      () => false,
    );
    const patience = new AbortController();
    const silent = sleep(mostSilence, false, { signal: patience.signal }).catch(() => false);
    databaseAnswers = (await Promise.race([asked, silent])) && store.trouble() === null;
    patience.abort();
    const machine = servers.machineStatus.look().then(
      ({ ready, detail }) => ({ ready, detail }),
      () => ({ ready: false, detail: "the machines do not answer" }),
    );
    disk = await diskWatch.look();
    await diskNews.tell(disk, clock.now()).catch(store.trouble);
    await figures.look();
    machineState = await machine;
    orphans = await countOrphans(store.read).catch(() => orphans);
  }

  function readiness(): Readiness {
    const { ready, detail, address } = figures.last();
    const router = networks.live.last();
    const trouble = zones.loadProblem();
    const checks = [
      {
        Name: "database",
        Ok: databaseAnswers,
        Detail: databaseAnswers ? store.kind : (store.trouble() ?? `${store.kind} does not answer`),
      },
      {
        Name: "machine",
        Ok: machineState.ready,
        Detail: `${machineState.ready ? options.machineDetail : machineState.detail}${tellOrphans(orphans)}`,
      },
      {
        Name: "disk",
        Ok: store.blocked() === null && disk?.isLow !== true,
        Detail: store.blocked() ?? describeDisk(disk),
      },
      { Name: "router", Ok: router.ready, Detail: router.ready ? options.networks.engines : router.detail },
      { Name: "nameserver", Ok: ready && trouble === null, Detail: ready ? (trouble ?? address) : detail },
    ];
    // With a full disk reads and the name server go on.
    const isWell = checks.every(({ Name, Ok }) => Ok || Name === "disk");
    const status = state === "running" ? (isWell ? "ready" : "failing") : state;
    return { Status: status, Checks: checks };
  }

  const describe = () => describeApi(contract, { version: options.version });
  const documents = { openapi: once(() => JSON.stringify(describe())), docs: once(() => renderDocs(describe())) };
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
      ...catalogRoutes({
        clock,
        locations,
        engines: { ...options.engines, NameServer: "builtin" },
        ipv6: options.networks.publicPool6 !== null,
        async capacity(db) {
          // With machines that do not answer nothing is free.
          const status = await servers.machineStatus.look().catch(() => null);
          return capacityOf(
            status?.capacity ?? { cores: 0, memory: 0, disk: 0, diskFree: 0 },
            await sumAll(db),
            options.cpuOvercommit,
          );
        },
      }),
      ...allServerRoutes(context, sampler, importing, importer),
      ...dnsRoutes(
        { clock, zones, nameServers: dnsNames, fetchZone: options.fetchZone ?? fetch },
        delegation,
        claimTools,
      ),
      ...networks.handlers,
      ...webhookRoutes({ ...options, reconciler: webhooks.reconciler, wake: webhooks.wake }),
    },
    authenticate: authenticator.authenticate,
    audit: auditTable,
    readiness,
    look,
    documents,
    freshness: () => (store.processes === "one" ? store.commits() + zones.revision() : null),
    filterEvent: filterEventForToken,
    ended: (tasks, ms) =>
      endedWithin(
        engine.ended,
        tasks.map((task) => ({ task })),
        ms,
      ),
    registry: figures.registry,
    lenient: options.lenientHttp,
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
  const noteUse = (): Promise<void> =>
    authenticator.flush().catch((error: unknown) => log("error", "The last use of tokens was not written.", { error }));
  const heart = setInterval(() => {
    void look();
    void noteUse();
  }, beat);
  heart.unref();

  /** What a start writes. A full disk keeps nobody from reading and from being answered by DNS: then it is written later. */
  async function begin(): Promise<void> {
    try {
      await syncOperatorImages(store, await images.listOperatorImages(), clock.now());
      await networks.begin();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      log("error", "What a start has to write could not be stored; trying again.", { error });
      const again = (): void => {
        if (state !== "stopping")
          begin().catch((fault: unknown) => log("error", "The start is not complete.", { error: fault }));
      };
      setTimeout(again, beat).unref();
    }
  }

  return {
    async listen(host, port) {
      await servers.noteOrphans().catch((error: unknown) => {
        if (error instanceof StorageError) throw error;
        log("error", "What is on the host was not compared with the database; trying again.", { error });
      });
      const address = await http.listen(host, port);
      await begin();
      await zones.loaded;
      await look();
      engine.run();
      state = "running";
      return address;
    },
    async close(graceMs) {
      state = "stopping";
      clearInterval(heart);
      await http.close(graceMs);
      await webhooks.stop(Math.min(graceMs, webhookGrace));
      await engine.drain(graceMs);
      await sampler
        .flush()
        .catch((error: unknown) => log("error", "How busy servers were of late was not written.", { error }));
      servers.close();
      zones.close();
      feed.close();
      await noteUse();
    },
  };
}

const tellOrphans = (count: number): string =>
  count === 0 ? "" : `; ${count} on the host that the database does not know: GET /orphan`;

/** Makes a text when it is first wanted, and never again. */
function once(make: () => string): () => string {
  let text: string | undefined;
  return () => (text ??= make());
}
