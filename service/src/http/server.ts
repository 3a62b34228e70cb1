/**
 * The HTTP server: node:http below, the pipeline above, and between them what neither of them does alone: one request at a time
 * per connection, every answer with its headers whatever went wrong, limits on time and size, and an end that loses nothing.
 */
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
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
import { type CrowdLimits, createCrowd } from "./connectionlimits.ts";
import { createEventList, type FilterEvent } from "./events.ts";
import { connectionOf, createRequestIds } from "./exchange.ts";
import { createStreams } from "./feed.ts";
import type { Caller } from "./handler.ts";
import { createIdempotencyKeys } from "./idempotency.ts";
import { createLimiter } from "./limit.ts";
import { createMetrics } from "./metrics.ts";
import { createRouter } from "./path.ts";
import { stallTime } from "./payload.ts";
import { createPipeline, type Limits } from "./pipeline.ts";
import { createRateNote } from "./rateheaders.ts";
import { type AuditTable, createRefusalLog } from "./refusallog.ts";
import { createResponseCache } from "./responsecache.ts";
import { type Documents, type Readiness, serviceHandlers } from "./servicehandlers.ts";
import { createStop } from "./stop.ts";
import type { Tickets } from "./tickets.ts";
import { createUpgrades } from "./upgrade.ts";

/** Sizes in bytes, times in milliseconds. */
export interface HttpLimits extends Limits, CrowdLimits {
  readonly headersTime: number;
  readonly idleTime: number;
  readonly ping: number;
  readonly streamsPerToken: number;
  /** How fast requests with bad tokens are refused, for each network of clients. */
  readonly guesses: BrakeLimits;
}

/** docs/spec.md#defaults-and-limits. */
export const defaultLimits: HttpLimits = {
  headers: 16 * 1024,
  target: 8 * 1024,
  body: 1024 * 1024,
  headersTime: 30_000,
  bodyTime: 60_000,
  idleTime: 75_000,
  ping: 15_000,
  streamsPerToken: 20,
  guesses: { burst: 100, pace: 10, longest: 5000 },
  waiting: { total: 1024, perNetwork: 512 },
  serving: { total: 2048, perNetwork: 1024 },
};

export interface HttpOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly sealer: Sealer;
  readonly feed: Feed;
  /** The contract. */
  readonly operations: Readonly<Record<string, Operation>>;
  /** Handlers of all operations but those of the service itself and the events, which http has. */
  readonly handlers: Readonly<Record<string, AnyHandler>>;
  /** Throws `token_invalid` or `token_expired`. */
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  readonly audit: AuditTable;
  /** Only `starting` keeps the service from answering; what fails says so by its own faults. */
  readonly readiness: () => Readiness;
  /** Looks afresh before `/readyz` answers. */
  readonly look?: () => Promise<void>;
  readonly documents: Documents;
  /** Counts commits and all else that stable answers show; null: others write too. Without it nothing is kept. */
  readonly freshness?: () => number | null;
  /** What restricted tokens see of events; without it they see none. */
  readonly filterEvent?: FilterEvent;
  /** Resolves when these tasks have ended, or `ms` are over; without it nobody is waited for. */
  readonly ended?: (tasks: readonly number[], ms: number) => Promise<void>;
  /** Where other rooms put figures of their own. */
  readonly registry?: Registry;
  /** Of WebSockets; without them there are none. */
  readonly tickets?: Tickets;
  readonly requestIds?: () => string;
  /** Take header lines that end in a bare LF. */
  readonly lenient?: boolean;
  /** PEM texts. */
  readonly tls?: { readonly certificate: string; readonly key: string } | null;
  readonly limits?: Partial<HttpLimits>;
}

export interface Http {
  readonly server: Server;
  /** Resolves to `host:port` as a URL spells it; port 0 takes a free one. */
  listen(host: string, port: number): Promise<string>;
  /** Takes no new connection, lets what has begun finish within `graceMs`, then cuts the rest. Resolves when all is stored. */
  close(graceMs: number): Promise<void>;
}

/** Connections that do nothing get this long to bring their request when the service stops, in milliseconds. */
const lastMoment = 250;

export function createHttp(options: HttpOptions): Http {
  const { store, clock, log, feed, authenticate, audit, filterEvent = () => null } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const stop = createStop();
  const crowd = createCrowd(limits);
  /** All connections, and those of them that speak HTTP; under TLS these are others. */
  const sockets = new Set<Socket>();
  const speaking = new Set<Socket>();
  let running = 0;
  /** A service that has started never goes back to it, and need not be asked again. */
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
    stop.asked ? { ...options.readiness(), Status: "stopping" } : options.readiness();
  const readAfresh = async (): Promise<Readiness> => {
    await options.look?.();
    return readiness();
  };
  const handlers: Readonly<Record<string, AnyHandler>> = {
    ...serviceHandlers(readAfresh, options.documents, metrics.text),
    listEvents: createEventList(feed, filterEvent),
    ...options.handlers,
  };
  const operations = new Map(
    Object.entries(options.operations).map(([name, operation]) => {
      const handler = handlers[name];
      if (handler === undefined) throw new Error(`operation ${name} has no handler`);
      const { path } = operation;
      const read = Object.values(options.operations).find((other) => other.method === "GET" && other.path === path);
      return [name, bindOperation(name, operation, handler, metrics, read)];
    }),
  );
  const route = createRouter(options.operations);
  const unready = (): string | null => {
    if (stop.asked) return "The service is stopping.";
    started ||= options.readiness().Status !== "starting";
    return started ? null : "The service is starting.";
  };

  const settings = {
    // The parser counts target and headers together and more roughly than the pipeline, which decides.
    maxHeaderSize: limits.headers + limits.target + 8 * 1024,
    headersTimeout: limits.headersTime,
    // Only for bodies that nobody reads; those that somebody reads have a time of their own.
    requestTimeout: limits.headersTime + 2 * limits.bodyTime,
    connectionsCheckingInterval: Math.min(1000, limits.headersTime / 4),
    keepAliveTimeout: limits.idleTime,
    requireHostHeader: false,
    // A request without a body need not be made a stream that ends.
    optimizeEmptyRequests: true,
    insecureHTTPParser: options.lenient === true,
    ...(upgrades && { shouldUpgradeCallback: upgrades.wants }),
  };
  const { tls } = options;
  const server: Server = tls
    ? createTlsServer({ ...settings, cert: tls.certificate, key: tls.key })
    : createServer(settings);
  server.maxHeadersCount = 0;
  // A client may close its side when it has asked all it wants, and still get its answers.
  Object.assign(server, { httpAllowHalfOpen: true });

  const answer = createPipeline({
    store,
    clock,
    log,
    audit,
    limits,
    route,
    operations,
    authenticate,
    limiter,
    keys,
    memory: createResponseCache(options.freshness ?? (() => null)),
    streams,
    unready,
    stop,
    noteAudit: refusals.note,
    noteRate,
    ended: options.ended ?? (async () => {}),
  });
  serveConnection(server, {
    answer,
    route,
    unready,
    limits,
    clock,
    log,
    stop,
    requestIds: options.requestIds ?? createRequestIds(randomBytes(6).toString("hex")),
    noteAudit: refusals.note,
    noteUnknown: metrics.timer("none"),
    noteRate,
    crowd,
    brake: createBrake(limits.guesses),
    count: (change) => {
      running += change;
    },
  });
  crowd.attend(server);
  if (upgrades) {
    upgrades.attend(server);
    server.on("upgrade", ({ socket }) => crowd.hold(socket));
  }
  const keep = (set: Set<Socket>) => (socket: Socket) => {
    set.add(socket);
    socket.once("close", () => set.delete(socket));
  };
  server.on("connection", keep(sockets));
  server.on(tls ? "secureConnection" : "connection", keep(speaking));

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
    async close(graceMs) {
      stop.ask();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      streams.close();
      upgrades?.close();
      const cutIdle = setInterval(
        () => {
          for (const socket of speaking) if (!connectionOf(socket).busy) socket.destroy();
          if (speaking.size === 0) for (const socket of sockets) socket.destroy();
        },
        Math.min(lastMoment, graceMs),
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
        .catch((error: unknown) => log("error", "Refused requests are missing from the audit.", { error }));
    },
  };
}
