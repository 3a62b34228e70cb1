/**
 * Creates the HTTP server: connects node:http to the pipeline and creates the parts they share (limits, streams, metrics, idempotency
 * keys). Each connection processes one request at a time. Closing the server waits for the requests that run.
 */

import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import type { Operation } from "@brume/api/operation.ts";
import type { Registry } from "prom-client";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Sealer } from "../base/secret.ts";
import type { Feed } from "../engine/event.ts";
import type { Store } from "../store/db.ts";
import { type AnyHandler, bindOperation } from "./bind.ts";
import { type BrakeLimits, createBrake } from "./brake.ts";
import { serveConnection } from "./connection.ts";
import { type ConnectionLimits, createConnectionTracker } from "./connectionlimits.ts";
import { createEventList, type FilterEvent } from "./events.ts";
import { connectionOf, createRequestIds } from "./exchange.ts";
import { createStreams } from "./feed.ts";
import type { Caller } from "./handler.ts";
import { createIdempotencyKeys } from "./idempotency.ts";
import { createLimiter, createSignInLimit, type Rate } from "./limit.ts";
import { createMetrics } from "./metrics.ts";
import { createPages, type Docs } from "./pages.ts";
import { createRouter } from "./path.ts";
import { stallTime } from "./payload.ts";
import { createPipeline, type Limits } from "./pipeline.ts";
import { createRateNote } from "./rateheaders.ts";
import { type AuditTable, createRefusalLog } from "./refusallog.ts";
import { createResponseCache } from "./responsecache.ts";
import { type Readiness, serviceHandlers } from "./servicehandlers.ts";
import { createStop } from "./stop.ts";
import type { Tickets } from "./tickets.ts";
import { createUpgrades } from "./upgrade.ts";

/** Sizes in bytes, times in milliseconds. */
export interface HttpLimits extends Limits, ConnectionLimits {
  /** Time for the head of a request. */
  readonly headersTime: number;
  /** Time that a connection may be without a request. */
  readonly idleTime: number;
  /** Time between two comments of an event stream. */
  readonly ping: number;
  readonly streamsPerToken: number;
  /** Rate at which requests with invalid tokens are rejected, for each client network. */
  readonly guesses: BrakeLimits;
  /** Attempts to sign in, for each client network. */
  readonly signIns: Rate;
}

/** The limits of docs/spec.md#defaults-and-limits. */
const defaultLimits: HttpLimits = {
  headers: 16 * 1024,
  target: 8 * 1024,
  body: 1024 * 1024,
  headersTime: 30_000,
  bodyTime: 60_000,
  idleTime: 75_000,
  ping: 15_000,
  streamsPerToken: 20,
  guesses: { burst: 100, pace: 10, longest: 5000 },
  signIns: { requests: 30, seconds: 60 },
  waiting: { total: 1024, perNetwork: 512 },
  serving: { total: 2048, perNetwork: 1024 },
};

/** Dependencies and settings of the HTTP server. */
export interface HttpOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly feed: Feed;
  /** The contract. */
  readonly operations: Readonly<Record<string, Operation>>;
  /** Handlers of all operations except those of the service itself and of events, which this folder has. */
  readonly handlers: Readonly<Record<string, AnyHandler>>;
  /** Returns the caller of a token. Throws `token_invalid` or `token_expired`. */
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  readonly audit: AuditTable;
  /** Only `starting` makes the service reject requests; operations whose dependencies fail report their own errors. */
  readonly readiness: () => Readiness;
  /** Refreshes the state that `readiness` returns, before `/readyz` responds. */
  readonly refreshReadiness?: () => Promise<void>;
  readonly openapi: () => string;
  /** Counts commits and all other changes of cacheable responses; null: other processes write too. Without it nothing is cached. */
  readonly freshness?: () => number | null;
  /** Returns the part of an event that a restricted token may see; without it they see none. */
  readonly filterEvent?: FilterEvent;
  /** Resolves when these tasks have ended, or after `ms` milliseconds; without it there is no waiting. */
  readonly ended?: (tasks: readonly number[], ms: number) => Promise<void>;
  /** Registry with the metrics of the other modules. */
  readonly registry?: Registry;
  /** Tickets for WebSockets; without them there are no WebSockets. */
  readonly tickets?: Tickets;
  /** Creates the ids of requests that send none. */
  readonly requestIds?: () => string;
  /** Accept header lines that end in a bare LF. */
  readonly lenient?: boolean;
  /** Yields the metrics of each server in the Prometheus format. */
  readonly serverMetrics?: () => AsyncIterable<string>;
  /** Folder of the built web console; absent: there is none. */
  readonly consoleFolder?: string | undefined;
  /** The pages at `/docs`; absent: there are none. */
  readonly docs?: Docs;
  /** Engines that are simulated, for `X-Simulated`; empty: none. */
  readonly simulated?: string;
  /** Folder for the files of large responses. Default: the temporary folder of the host. */
  readonly spoolFolder?: string;
  /** Certificate chain and key as PEM; null: no TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string } | null;
  readonly limits?: Partial<HttpLimits>;
}

/** The HTTP server. */
export interface Http {
  readonly server: Server;
  /** Resolves to `host:port` as in a URL; port 0 selects a free one. */
  listen(host: string, port: number): Promise<string>;
  /** Serves another certificate to new connections. Throws if key and certificate do not match, or without TLS. */
  setTls(tls: NonNullable<HttpOptions["tls"]>): void;
  /** Returns the number of requests that are being processed. */
  running(): number;
  /** Accepts no new connections, waits up to `graceMs` milliseconds for running requests, then closes all. Resolves when the audit is stored. */
  close(graceMs: number): Promise<void>;
}

/** Milliseconds that an idle connection stays open when the service stops, for a request that is under way. */
const idleGrace = 250;

async function* noPieces(): AsyncGenerator<string> {}
const noDocs = async (): Promise<string> => "";

/** Creates the HTTP server. Throws if an operation has no handler. */
export function createHttp(options: HttpOptions): Http {
  const { store, clock, log, feed, authenticate, audit, filterEvent = () => null } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const stop = createStop();
  const tracker = createConnectionTracker(limits);
  /** All TCP sockets, and the sockets that carry HTTP: with TLS they are different objects. */
  const sockets = new Set<Socket>();
  const httpSockets = new Set<Socket>();
  let running = 0;
  /** Set once: a service that has started is never `starting` again. */
  let started = false;

  const streams = createStreams({
    feed,
    clock,
    log,
    authenticate,
    filterEvent,
    ping: limits.ping,
    stall: stallTime(limits),
    most: limits.streamsPerToken,
  });
  const upgrades = options.tickets && createUpgrades({ tickets: options.tickets, stop, log });
  const metrics = createMetrics({ running: () => running, streams: streams.count }, options.registry);
  const refusals = createRefusalLog(store, audit, log);
  const limiter = createLimiter();
  const noteRate = createRateNote({ authenticate, limiter, clock });
  const keys = createIdempotencyKeys(store, options.sealer);

  const readiness = (): Readiness =>
    stop.requested ? { ...options.readiness(), Status: "stopping" } : options.readiness();
  const readReadiness = async (): Promise<Readiness> => {
    await options.refreshReadiness?.();
    return readiness();
  };
  const handlers: Readonly<Record<string, AnyHandler>> = {
    ...serviceHandlers(
      readReadiness,
      options.openapi,
      options.docs?.home ?? noDocs,
      metrics.text,
      options.serverMetrics ?? noPieces,
    ),
    listEvents: createEventList(feed, filterEvent),
    ...options.handlers,
  };
  const operations = new Map(
    Object.entries(options.operations).map(([name, operation]) => {
      const handler = handlers[name];
      if (handler === undefined) throw new Error(`Operation ${name} has no handler.`);
      return [name, bindOperation(name, operation, handler, metrics)];
    }),
  );
  const route = createRouter(options.operations);
  const unready = (): string | null => {
    if (stop.requested) return "The service is stopping.";
    started ||= options.readiness().Status !== "starting";
    return started ? null : "The service is starting.";
  };

  const settings = {
    // The parser counts target and headers together and less exactly than the pipeline, which enforces both limits.
    maxHeaderSize: limits.headers + limits.target + 8 * 1024,
    headersTimeout: limits.headersTime,
    // Only for bodies that are not read; the pipeline limits the time of those it reads.
    requestTimeout: limits.headersTime + 2 * limits.bodyTime,
    connectionsCheckingInterval: Math.min(1000, limits.headersTime / 4),
    keepAliveTimeout: limits.idleTime,
    requireHostHeader: false,
    // A request without a body needs no stream.
    optimizeEmptyRequests: true,
    insecureHTTPParser: options.lenient === true,
    ...(upgrades && { shouldUpgradeCallback: upgrades.accepts }),
  };
  const { tls } = options;
  const secure = tls ? createTlsServer({ ...settings, cert: tls.certificate, key: tls.key }) : null;
  const server: Server = secure ?? createServer(settings);
  server.maxHeadersCount = 0;
  // A client may close its side after its last request and still get the responses.
  Object.assign(server, { httpAllowHalfOpen: true });

  const respond = createPipeline({
    store,
    clock,
    log,
    audit,
    limits,
    route,
    operations,
    authenticate,
    limiter,
    limitSignIns: createSignInLimit(limits.signIns),
    keys,
    cache: createResponseCache(options.freshness ?? (() => null)),
    spoolFolder: options.spoolFolder ?? tmpdir(),
    streams,
    unready,
    stop,
    noteAudit: refusals.note,
    noteRate,
    pages: [
      ...(options.docs === undefined ? [] : [options.docs.pages]),
      ...(options.consoleFolder === undefined ? [] : [createPages(options.consoleFolder)]),
    ],
    ended: options.ended ?? (async () => {}),
  });
  serveConnection(server, {
    respond,
    route,
    unready,
    limits,
    clock,
    log,
    stop,
    requestIds: options.requestIds ?? createRequestIds(randomBytes(6).toString("hex")),
    simulated: options.simulated ?? "",
    noteAudit: refusals.note,
    recordUnknown: metrics.timer("none"),
    noteRate,
    tracker,
    brake: createBrake(limits.guesses),
    count: (change) => {
      running += change;
    },
  });
  tracker.attach(server);
  if (upgrades) {
    upgrades.attach(server);
    server.on("upgrade", ({ socket }) => tracker.startRequest(socket));
  }
  const track = (set: Set<Socket>) => (socket: Socket) => {
    set.add(socket);
    socket.once("close", () => set.delete(socket));
  };
  server.on("connection", track(sockets));
  server.on(tls ? "secureConnection" : "connection", track(httpSockets));

  return {
    server,
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, host, () => {
          server.off("error", reject);
          const { address, family, port: taken } = server.address() as AddressInfo;
          resolve(family === "IPv6" ? `[${address}]:${taken}` : `${address}:${taken}`);
        });
      }),
    setTls({ certificate, key }) {
      if (secure === null) throw new Error("The service was started without TLS.");
      secure.setSecureContext({ cert: certificate, key });
    },
    running: () => running,
    async close(graceMs) {
      stop.request();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      streams.close();
      upgrades?.close();
      const cutIdle = setInterval(
        () => {
          for (const socket of httpSockets) if (!connectionOf(socket).busy) socket.destroy();
          if (httpSockets.size === 0) for (const socket of sockets) socket.destroy();
        },
        Math.min(idleGrace, graceMs),
      );
      const cutAll = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed;
      clearInterval(cutIdle);
      clearTimeout(cutAll);
      metrics.close();
      await refusals
        .flush()
        .catch((error: unknown) => log("error", "Rejected requests are missing in the audit.", { error }));
    },
  };
}
