/**
 * The service over its ports: features, engine and HTTP put together. Tests build it on a fresh database and a free port;
 * everything above the ports is the same as in `main`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { contract } from "@brume/api/contract.ts";
import { limits } from "@brume/api/dns.ts";
import { renderDocs } from "@brume/api/docs.ts";
import { describeApi } from "@brume/api/openapi.ts";
import { sql } from "kysely";
import { createAuthenticator } from "./account/authenticator.ts";
import { auditKeeper } from "./account/keeper.ts";
import { accountRoutes, writeAudit } from "./account/routes.ts";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import type { Sealer } from "./base/secret.ts";
import { createZones, delegationKeeper, historyKeeper } from "./dns/keeper.ts";
import { dnsMetrics } from "./dns/metrics.ts";
import { type FetchZone, fetchZone } from "./dns/migrate.ts";
import { dnsRoutes } from "./dns/routes.ts";
import { veil } from "./dns/sight.ts";
import type { Nameserver } from "./drivers/nameserver/port.ts";
import { hearCommits } from "./engine/commit.ts";
import { createEngine } from "./engine/engine.ts";
import { createFeed, eventKeeper } from "./engine/event.ts";
import { keeper } from "./engine/flow.ts";
import type { Readiness } from "./http/own.ts";
import { createHttp, type HttpLimits } from "./http/server.ts";
import type { Store } from "./store/db.ts";

export interface ServiceOptions {
  readonly store: Store;
  readonly nameserver: Nameserver;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly version: string;
  /** Names in the automatic NS set. */
  readonly dnsNames: readonly string[];
  /** Servers to ask about the outside; empty: nobody; null: the machine's own. */
  readonly resolvers: readonly string[] | null;
  /** Instead of fetching over the network what a domain has where it is served at present. */
  readonly fetchZone?: FetchZone;
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

const hour = 3_600_000;
/** Milliseconds between looks at the name server for `/readyz` and figures, and writes of when tokens were last used. */
const beat = 5000;
/** Milliseconds after which a database that says nothing counts as not answering. */
const mostSilence = 1000;

export function createService(options: ServiceOptions): Service {
  const { nameserver, clock, random, log, dnsNames, resolvers } = options;
  const store = hearCommits(options.store);
  const feed = createFeed({ store, clock, log });
  const authenticator = createAuthenticator(store, clock);
  const zones = createZones({ store, nameserver, nameServers: dnsNames, log });
  const figures = dnsMetrics(nameserver);
  const delegation = delegationKeeper(store, clock, dnsNames, resolvers);
  const fetch: FetchZone = (domain) => fetchZone(domain, { deadlineMs: limits.importSeconds * 1000, resolvers });
  let state: "starting" | "running" | "stopping" = "starting";
  let databaseAnswers = true;

  /** Asks database and name server how they are. */
  async function look(): Promise<void> {
    const asked = sql`select 1`.execute(store.read).then(
      () => true,
      () => false,
    );
    const patience = new AbortController();
    const silent = sleep(mostSilence, false, { signal: patience.signal }).catch(() => false);
    databaseAnswers = await Promise.race([asked, silent]);
    patience.abort();
    await figures.look();
  }

  function readiness(): Readiness {
    const { ready, detail, address } = figures.last();
    const trouble = zones.trouble();
    const checks = [
      { Name: "database", Ok: databaseAnswers, Detail: databaseAnswers ? store.kind : `${store.kind} does not answer` },
      { Name: "nameserver", Ok: ready && trouble === null, Detail: ready ? (trouble ?? address) : detail },
    ];
    const isWell = checks.every(({ Ok }) => Ok);
    const status = state === "running" ? (isWell ? "ready" : "failing") : state;
    return { Status: status, Checks: checks };
  }

  const describe = () => describeApi(contract, { version: options.version });
  const documents = { openapi: once(() => JSON.stringify(describe())), docs: once(() => renderDocs(describe())) };
  const http = createHttp({
    store,
    clock,
    log,
    sealer: options.sealer,
    feed,
    operations: contract,
    handlers: {
      ...accountRoutes(clock, authenticator),
      ...dnsRoutes({ clock, zones, nameServers: dnsNames, fetchZone: options.fetchZone ?? fetch }, delegation),
    },
    authenticate: authenticator.authenticate,
    audit: writeAudit,
    readiness,
    look,
    documents,
    freshness: () => (store.kind === "sqlite" ? store.commits() + zones.steps() : null),
    veil,
    registry: figures.registry,
    lenient: options.lenientHttp,
    tls: options.tls,
    ...(options.limits !== undefined && { limits: options.limits }),
  });
  const keyKeeper = keeper({
    name: "http.keys",
    subject: "service",
    single: true,
    period: hour,
    run: async () => void (await http.pruneKeys()),
  });
  const engine = createEngine({
    store,
    flows: [],
    keepers: [delegation, historyKeeper(store, clock), eventKeeper(feed, clock), auditKeeper(store, clock), keyKeeper],
    clock,
    random,
    log,
    alone: store.kind === "sqlite",
  });
  const noteUse = (): Promise<void> =>
    authenticator.flush().catch((error: unknown) => log("error", "The last use of tokens was not written.", { error }));
  const heart = setInterval(() => {
    void look();
    void noteUse();
  }, beat);
  heart.unref();

  return {
    async listen(host, port) {
      const address = await http.listen(host, port);
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
      await engine.drain(graceMs);
      zones.close();
      feed.close();
      await noteUse();
    },
  };
}

/** Makes a text when it is first wanted, and never again. */
function once(make: () => string): () => string {
  let text: string | undefined;
  return () => (text ??= make());
}
