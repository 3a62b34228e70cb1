/**
 * The thread of the name server: sockets and zones only, so that a slow database or a busy API never delays a query. The main thread sends
 * zone changes as bytes; they are applied in slices, between which queries are served.
 */
import { randomInt } from "node:crypto";
import type { Socket } from "node:dgram";
import { type AddressInfo, type Server, SocketAddress } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { isVersion6 } from "../../../base/address.ts";
import { systemClock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import { createLimiter, type Limiter, QUERY_SLIP } from "../answer/ratelimit.ts";
import { createResponder } from "../answer/responder.ts";
import type { SavedState } from "../interface.ts";
import { type Catalog, createCatalog } from "../transfer/catalog.ts";
import { createNotifier, keyOf, type Notifier, type Target } from "../transfer/notify.ts";
import type { SecondaryState } from "../transfer/secondary.ts";
import { createAccess } from "../transfer/transfer.ts";
import { createTransfers } from "../transfer/transfers.ts";
import { createKey, type KeyOptions } from "../transfer/tsig.ts";
import { loadMmsg, type Mmsg } from "../transport/mmsg.ts";
import { createOverload, type Overload } from "../transport/overload.ts";
import { serveTcp } from "../transport/tcp.ts";
import { bindUdp, listenUdp, openUdp, type Served, serveUdp } from "../transport/udp.ts";
import { lowerCase, textOf } from "../wire/name.ts";
import { createArchive } from "./archive.ts";
import { applyBatch } from "./change.ts";
import { createLatency } from "./latency.ts";
import { createZones } from "./zones.ts";

/** Options of the thread; see `BuiltinOptions`. */
export interface WorkerOptions {
  readonly host: string;
  readonly port: number;
  readonly rateLimit: number;
  readonly queryLimit: number;
  readonly limitLoopback: boolean;
  /** File of the saved zones; null: none are saved. */
  readonly file: string | null;
  readonly transfer: {
    readonly addresses: readonly string[];
    readonly keys: readonly KeyOptions[];
    readonly notify: readonly { readonly host: string; readonly port: number; readonly key?: string }[];
    /** Name of the catalog zone (RFC 9432); absent: none is served. */
    readonly catalog?: string | null;
  };
}

/** Requests from the main thread. `id` identifies the response. */
export type ToWorker =
  | { readonly kind: "apply"; readonly id: number; readonly batch: ArrayBuffer }
  | { readonly kind: "withdraw"; readonly id: number; readonly zone: string; readonly serial: number }
  | { readonly kind: "loaded"; readonly id: number }
  | { readonly kind: "saved"; readonly id: number }
  | { readonly kind: "adopt"; readonly id: number; readonly zones: readonly string[] }
  | { readonly kind: "save"; readonly id: number; readonly mark: string | null }
  | { readonly kind: "observe"; readonly id: number };

/** The state of all zones in columns: ten thousand objects would block queries for too long. */
export interface Observation {
  readonly names: string;
  readonly serials: Float64Array;
  /** 16 response code counters for each zone. */
  readonly counts: Float64Array;
  readonly p99: number;
  /** Serials in the order of the zones; 0: none confirmed. */
  readonly secondaries: readonly (Omit<SecondaryState, "confirmed"> & { readonly serials: Float64Array })[];
}

/** Responses and reports of the thread. */
export type FromWorker =
  | { readonly kind: "ready"; readonly port: number }
  | { readonly kind: "unable"; readonly code: string; readonly message: string }
  | { readonly kind: "applied"; readonly id: number; readonly served: readonly number[] }
  | { readonly kind: "done"; readonly id: number }
  | { readonly kind: "saved"; readonly id: number; readonly state: SavedState | null }
  | { readonly kind: "unsaved"; readonly id: number; readonly reason: string }
  | { readonly kind: "observed"; readonly id: number; readonly observation: Observation }
  | {
      readonly kind: "log";
      readonly level: Parameters<Log>[0];
      readonly message: string;
      readonly detail: object;
    };

/** Milliseconds that changes may delay queries. */
const SLICE_MS = 4;
/** Zones that are read between two checks of the sockets. */
const OBSERVE_STEP = 256;
const ERRORS_LOGGED = 20;
/** Milliseconds between two reports of dropped queries. */
const REPORT_MS = 10_000;
/** Attempts to find a free port that is free for both TCP and UDP. */
const PORT_TRIES = 10;

/** Opens the sockets for NOTIFY. It is sent from the served address, by which secondaries identify us. `ahead`: see `createNotifier`. */
async function openNotifier(
  host: string,
  targets: readonly Target[],
  log: Log,
  ahead: (name: string, serial: number) => void,
): Promise<Notifier | null> {
  if (targets.length === 0) return null;
  const sockets = new Map<boolean, Socket>();
  for (const v6 of new Set(targets.map((target) => isVersion6(target.host)))) {
    const source = v6 === isVersion6(host) ? host : v6 ? "::" : "0.0.0.0";
    const socket = openUdp(source);
    await bindUdp(socket, { address: source, port: 0 });
    sockets.set(v6, socket);
  }
  const notifier = createNotifier(
    targets,
    (message, target) => sockets.get(isVersion6(target.host))?.send(message, target.port, target.host),
    systemClock,
    () => randomInt(2 ** 16),
    log,
    ahead,
  );
  for (const socket of sockets.values()) {
    socket.on("error", (error) => log("warn", "NOTIFY socket failed", { error: error.message }));
    socket.on("message", (packet, { address, port }) => notifier.receive(packet, address, port));
  }
  return {
    ...notifier,
    close() {
      notifier.close();
      for (const socket of sockets.values()) socket.close();
    },
  };
}

/** Listens for TCP and UDP on one port and returns the UDP side. If the selected port is taken for UDP, another is tried. */
async function listen(tcp: Server, mmsg: Mmsg | null, host: string, port: number): Promise<Served> {
  for (let tries = 1; ; tries++) {
    await new Promise<void>((resolve, reject) => {
      tcp.once("error", reject);
      tcp.listen(port, host, () => {
        tcp.off("error", reject);
        resolve();
      });
    });
    try {
      return await listenUdp(mmsg, host, (tcp.address() as AddressInfo).port);
    } catch (error) {
      if (port !== 0 || tries === PORT_TRIES) throw error;
      await new Promise((resolve) => tcp.close(resolve));
    }
  }
}

const limiterOf = (rate: number, slip?: number): Limiter | null =>
  rate > 0 ? createLimiter(rate, () => performance.now(), randomInt(2 ** 32), slip) : null;

/** Logs how many queries were dropped, if any, until the timer is cleared. */
function reportDrops(overload: Overload, log: Log): NodeJS.Timeout {
  let before = 0;
  return setInterval(() => {
    const dropped = overload.dropped - before;
    before = overload.dropped;
    if (dropped > 0)
      log("warn", "More DNS queries came than could be answered", { dropped, seconds: REPORT_MS / 1000 });
  }, REPORT_MS).unref();
}

/** A server that listens. */
export interface Serving {
  /** Handles a request; its response is sent later. */
  receive(message: ToWorker): void;
  /** Closes the sockets and ends the timers, as the end of the thread does. */
  close(): void;
}

/** Starts the server. Rejects with the system's error when it cannot listen on the address. */
export async function serve(options: WorkerOptions, send: (message: FromWorker) => void): Promise<Serving> {
  const log: Log = (level, message, detail = {}) => send({ kind: "log", level, message, detail });
  const keys = new Map(options.transfer.keys.map(createKey).map((key) => [key.name, key]));
  const targets: Target[] = options.transfer.notify.map(({ host, port, key }) => ({
    // In the notation of the sockets.
    host: new SocketAddress({ address: host, family: isVersion6(host) ? "ipv6" : "ipv4" }).address,
    port,
    key: keyOf(keys, key),
  }));
  const zones = createZones(randomInt(2 ** 32));
  let notifier: Notifier | null = null;
  const { catalog: catalogName = null } = options.transfer;
  const catalog: Catalog | null =
    catalogName === null
      ? null
      : createCatalog(catalogName, zones, systemClock, () => {
          const { name, serial } = catalog as Catalog;
          notifier?.changed({ name, group: 0, serial: serial() }, true);
        });
  const latency = createLatency();
  let errors = 0;
  const transfers = createTransfers();
  const responder = createResponder({
    zones,
    limiter: limiterOf(options.rateLimit),
    queries: limiterOf(options.queryLimit, QUERY_SLIP),
    limitLoopback: options.limitLoopback,
    keys,
    mayTransfer: createAccess(options.transfer.addresses),
    catalog,
    transfers,
    ...(targets.length > 0 && {
      noteClient: (...what: Parameters<Notifier["noteClient"]>) => notifier?.noteClient(...what),
    }),
    now: Date.now,
    error(error) {
      if (errors++ < ERRORS_LOGGED)
        log("error", "Could not respond to a query", { error: String((error as Error).stack ?? error) });
    },
  });

  const tcp = serveTcp(responder.tcp, () => performance.now());
  const mmsg = await loadMmsg().catch((error: unknown) => {
    log("info", "DNS over UDP handles one datagram per system call, because libc cannot be called", {
      reason: String(error),
    });
    return null;
  });
  const udp = await listen(tcp.server, mmsg, options.host, options.port);
  const overload = createOverload();
  serveUdp(udp, responder, latency, overload);
  const reports = reportDrops(overload, log);
  udp.socket.on("error", (error) => log("warn", "UDP socket of the name server failed", { error: error.message }));
  tcp.server.on("error", (error) => log("warn", "TCP socket of the name server failed", { error: error.message }));
  notifier = await openNotifier(options.host, targets, log, (name, serial) => {
    if (name === catalog?.name) catalog.exceed(serial);
  });

  const archive = createArchive(options.file, zones);
  const queue: ToWorker[] = [];
  let running: Generator<void, void> | null = archive.restore();
  const work = (): void => {
    const until = performance.now() + SLICE_MS;
    while (running !== null || queue.length > 0) {
      running ??= perform(queue.shift() as ToWorker);
      if (running.next().done === true) running = null;
      if (performance.now() > until) {
        setImmediate(work);
        return;
      }
    }
  };
  function* perform(message: ToWorker): Generator<void, void> {
    if (message.kind === "apply") {
      const served: number[] = [];
      yield* applyBatch(zones, message.batch, served, ({ name, group, identity, authority }, before) => {
        notifier?.changed({ name, group, serial: authority.serial });
        if (before?.identity !== identity) catalog?.touch();
      });
      send({ kind: "applied", id: message.id, served });
    } else if (message.kind === "withdraw") {
      zones.withdraw(message.zone, message.serial);
      const name = lowerCase(message.zone);
      if (zones.get(name) === undefined) {
        notifier?.gone(name);
        catalog?.touch();
      }
      send({ kind: "done", id: message.id });
    } else if (message.kind === "loaded") {
      catalog?.load();
      send({ kind: "done", id: message.id });
    } else if (message.kind === "saved") {
      send({ kind: "saved", id: message.id, state: archive.state() });
    } else if (message.kind === "adopt") {
      yield* archive.adopt(message.zones, ({ name, group, authority }) => {
        notifier?.changed({ name, group, serial: authority.serial });
        catalog?.touch();
      });
      send({ kind: "done", id: message.id });
    } else if (message.kind === "save") {
      const { id } = message;
      archive.save(message.mark).then(
        () => send({ kind: "done", id }),
        (error: unknown) => send({ kind: "unsaved", id, reason: String(error) }),
      );
    } else {
      send({ kind: "observed", id: message.id, observation: yield* observe() });
    }
  }
  function* observe(): Generator<void, Observation> {
    const names: string[] = [];
    const serials = new Float64Array(zones.size);
    const counts = new Float64Array(zones.size * 16);
    const known = notifier?.observe() ?? [];
    const secondaries = known.map(({ address, reachable, behind, lag }) => {
      return { address, reachable, behind, lag, serials: new Float64Array(zones.size) };
    });
    for (const zone of zones.all()) {
      serials[names.length] = zone.authority.serial;
      counts.set(zone.counts, names.length * 16);
      for (const [i, { serials }] of secondaries.entries())
        serials[names.length] = known[i]?.confirmed.get(zone.name) ?? 0;
      names.push(textOf(zone.name));
      if (names.length % OBSERVE_STEP === 0) yield;
    }
    return { names: names.join("\n"), serials, counts, p99: latency.p99(performance.now()), secondaries };
  }

  send({ kind: "ready", port: udp.socket.address().port });
  work();
  return {
    receive(message) {
      queue.push(message);
      if (queue.length === 1 && running === null) work();
    },
    close() {
      queue.length = 0;
      running = null;
      clearInterval(reports);
      notifier?.close();
      catalog?.close();
      transfers.close();
      tcp.close();
      udp.socket.close();
    },
  };
}

if (parentPort !== null) {
  const main = parentPort;
  serve(workerData as WorkerOptions, (message) => main.postMessage(message)).then(
    ({ receive }) => main.on("message", receive),
    (error: unknown) => {
      const { code = "", message } = error as NodeJS.ErrnoException;
      main.postMessage({ kind: "unable", code, message } satisfies FromWorker);
    },
  );
}
