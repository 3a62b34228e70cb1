/**
 * The thread that answers: sockets, zones and nothing else, so that neither a slow database nor a busy API is ever felt by a query.
 * The main thread sends zone changes as bytes; they are applied in slices between which the sockets are looked at.
 */
import { randomInt } from "node:crypto";
import type { Socket } from "node:dgram";
import { type AddressInfo, isIPv6, type Server } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { applyBatch } from "./change.ts";
import { createLatency } from "./latency.ts";
import { loadMmsg, type Mmsg } from "./mmsg.ts";
import { textOf } from "./name.ts";
import { createNotifier, keyOf, type Notifier, type Target } from "./notify.ts";
import { createResponder } from "./responder.ts";
import { createLimiter } from "./rrl.ts";
import { serveTcp } from "./tcp.ts";
import { createAccess } from "./transfer.ts";
import { createKey } from "./tsig.ts";
import { bindUdp, listenUdp, openUdp, type Served, serveUdp } from "./udp.ts";
import { createZones } from "./zones.ts";

export interface WorkerOptions {
  readonly host: string;
  readonly port: number;
  readonly rateLimit: number;
  readonly limitLoopback: boolean;
  readonly transfer: {
    readonly addresses: readonly string[];
    readonly keys: readonly { readonly name: string; readonly algorithm: string; readonly secret: string }[];
    readonly notify: readonly { readonly host: string; readonly port: number; readonly key?: string }[];
  };
}

export type ToWorker =
  | { readonly kind: "apply"; readonly id: number; readonly batch: ArrayBuffer }
  | { readonly kind: "withdraw"; readonly id: number; readonly zone: string; readonly serial: number }
  | { readonly kind: "observe"; readonly id: number };

/** All zones in columns: ten thousand objects would take the thread from its sockets for longer than a query may wait. */
export interface Observation {
  readonly names: string;
  readonly serials: Float64Array;
  /** 16 rcodes for each zone. */
  readonly counts: Float64Array;
  readonly p99: number;
}

export type FromWorker =
  | { readonly kind: "ready"; readonly port: number }
  | { readonly kind: "unable"; readonly code: string; readonly message: string }
  | { readonly kind: "applied"; readonly id: number; readonly served: readonly number[] }
  | { readonly kind: "withdrawn"; readonly id: number }
  | { readonly kind: "observed"; readonly id: number; readonly observation: Observation }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn" | "error";
      readonly message: string;
      readonly detail: object;
    };

/** How long changes may keep queries waiting. */
const SLICE_MS = 4;
/** Zones that are looked at between two looks at the sockets. */
const OBSERVE_STEP = 256;
const FAULTS_LOGGED = 20;
/** How often another free port is tried when the one that TCP got is taken for UDP. */
const PORT_TRIES = 10;

type Log = (level: "info" | "warn" | "error", message: string, detail: object) => void;

/** NOTIFY leaves from the address that we serve on: by it the secondaries know us. */
async function openNotifier(host: string, targets: readonly Target[], log: Log): Promise<Notifier | null> {
  if (targets.length === 0) return null;
  const sockets = new Map<boolean, Socket>();
  for (const v6 of new Set(targets.map((target) => isIPv6(target.host)))) {
    const source = v6 === isIPv6(host) ? host : v6 ? "::" : "0.0.0.0";
    const socket = openUdp(source);
    await bindUdp(socket, { address: source, port: 0 });
    sockets.set(v6, socket);
  }
  const notifier = createNotifier(
    targets,
    (message, target) => sockets.get(isIPv6(target.host))?.send(message, target.port, target.host),
    Date.now,
    () => randomInt(2 ** 16),
    (message, detail) => log("warn", message, detail),
  );
  for (const socket of sockets.values()) {
    socket.on("error", (fault) => log("warn", "NOTIFY socket", { error: fault.message }));
    socket.on("message", (packet, { address, port }) => notifier.receive(packet, address, port));
  }
  return notifier;
}

/** Listens by TCP and UDP on one port; gives the UDP side. A free one for TCP may be taken for UDP: then the next. */
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
    } catch (fault) {
      if (port !== 0 || tries === PORT_TRIES) throw fault;
      await new Promise((resolve) => tcp.close(resolve));
    }
  }
}

/** Starts the server on the thread's port. Rejects with the system's error when an address cannot be had. */
async function serve(
  options: WorkerOptions,
  send: (message: FromWorker) => void,
): Promise<(message: ToWorker) => void> {
  const log: Log = (level, message, detail) => send({ kind: "log", level, message, detail });
  const keys = new Map(
    options.transfer.keys
      .map(({ name, algorithm, secret }) => createKey(name, algorithm, secret))
      .map((key) => [key.name, key]),
  );
  const targets: Target[] = options.transfer.notify.map(({ host, port, key }) => ({
    host,
    port,
    key: keyOf(keys, key),
  }));
  const zones = createZones();
  const latency = createLatency();
  let faults = 0;
  const responder = createResponder({
    zones,
    limiter:
      options.rateLimit > 0 ? createLimiter(options.rateLimit, () => performance.now(), randomInt(2 ** 32)) : null,
    limitLoopback: options.limitLoopback,
    keys,
    mayTransfer: createAccess(options.transfer.addresses),
    now: Date.now,
    fault(fault) {
      if (faults++ < FAULTS_LOGGED)
        log("error", "a query could not be answered", { error: String((fault as Error).stack ?? fault) });
    },
  });

  const tcp = serveTcp(responder.tcp, () => performance.now());
  const mmsg = await loadMmsg().catch((fault: unknown) => {
    log("info", "DNS by UDP goes one datagram at a time: libc cannot be called", { reason: String(fault) });
    return null;
  });
  const udp = await listen(tcp.server, mmsg, options.host, options.port);
  serveUdp(udp, responder, latency);
  udp.socket.on("error", (fault) => log("warn", "UDP socket", { error: fault.message }));
  tcp.server.on("error", (fault) => log("warn", "TCP socket", { error: fault.message }));
  const notifier = await openNotifier(options.host, targets, log);

  const queue: ToWorker[] = [];
  let running: Generator<void, void> | null = null;
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
      yield* applyBatch(zones, message.batch, served, (zone) => notifier?.changed(zone.name));
      send({ kind: "applied", id: message.id, served });
    } else if (message.kind === "withdraw") {
      zones.withdraw(message.zone, message.serial);
      send({ kind: "withdrawn", id: message.id });
    } else {
      send({ kind: "observed", id: message.id, observation: yield* observe() });
    }
  }
  function* observe(): Generator<void, Observation> {
    const names: string[] = [];
    const serials = new Float64Array(zones.size);
    const counts = new Float64Array(zones.size * 16);
    for (const zone of zones.all()) {
      serials[names.length] = zone.authority.serial;
      counts.set(zone.counts, names.length * 16);
      names.push(textOf(zone.name));
      if (names.length % OBSERVE_STEP === 0) yield;
    }
    return { names: names.join("\n"), serials, counts, p99: latency.p99(performance.now()) };
  }

  send({ kind: "ready", port: udp.socket.address().port });
  return (message) => {
    queue.push(message);
    if (queue.length === 1 && running === null) work();
  };
}

if (parentPort !== null) {
  const main = parentPort;
  serve(workerData as WorkerOptions, (message) => main.postMessage(message)).then(
    (handle) => main.on("message", handle),
    (fault: unknown) => {
      const { code = "", message } = fault as NodeJS.ErrnoException;
      main.postMessage({ kind: "unable", code, message } satisfies FromWorker);
    },
  );
}
