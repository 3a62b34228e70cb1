/**
 * The built-in name server, the driver that runs `worker.ts` in its own thread. This side encodes changes, sends all changes of one event
 * loop turn in one message, and restarts the thread on the same address if it ends. After a restart it requests all zones again, because it
 * keeps no copy of them.
 */
import { Worker } from "node:worker_threads";
import type { Log } from "../../../base/log.ts";
import { runInTurns } from "../../../base/turn.ts";
import type { Nameserver, NameserverStatus, ZoneChange, ZoneStatus } from "../interface.ts";
import { nameOf } from "../wire/name.ts";
import { createBatch } from "./change.ts";
import type { FromWorker, Observation, ToWorker, WorkerOptions } from "./worker.ts";

/** Options of `createBuiltin`. */
export interface BuiltinOptions {
  /** One address of the host, IPv4 or IPv6, not a wildcard: responses must leave from the address that received the query. */
  readonly host: string;
  /** Port for UDP and TCP; 0 selects a free one. */
  readonly port: number;
  /** Limit of equal responses per second to one network (/24, /56); 0 for no limit. */
  readonly rateLimit: number;
  /** Limit of all queries per second of one network over UDP; 0, the default, for no limit. */
  readonly queryLimit?: number;
  /** Whether to limit loopback too. Off by default, because its addresses cannot be forged from outside. */
  readonly limitLoopback?: boolean;
  /** File of the saved zones, for a fast start; by default none are saved. */
  readonly file?: string;
  /** Who may transfer zones (addresses and blocks: all zones; TSIG keys, RFC 8945: those in their scope), and the targets of NOTIFY. */
  readonly transfer: WorkerOptions["transfer"];
  readonly log: Log;
}

/** Sets from which on changes are encoded in slices: it would take a turn of the event loop. */
const LONG = 1024;
const isLong = (changes: readonly ZoneChange[]): boolean =>
  changes.reduce((sum, { sets }) => sum + sets.length, 0) >= LONG;

const RESTART_MS = { first: 50, most: 10_000 };
/** After this time in milliseconds a thread counts as started well: the next restart is fast again. */
const STEADY_MS = 60_000;

const RCODE_NAMES = [
  "NOERROR",
  "FORMERR",
  "SERVFAIL",
  "NXDOMAIN",
  "NOTIMP",
  "REFUSED",
  "YXDOMAIN",
  "YXRRSET",
  "NXRRSET",
  "NOTAUTH",
];

/** A call of `publish` with this number of changes. */
interface Publication {
  readonly count: number;
  resolve(served: readonly number[]): void;
  reject(reason: Error): void;
}

interface Waiting {
  settle(message: FromWorker): void;
  reject(reason: Error): void;
}

/** What runs `serve` of `worker.ts`. It emits `message`, `error` and `exit`. */
export interface Thread extends Pick<Worker, "on" | "terminate"> {
  postMessage(message: ToWorker, transfer: readonly ArrayBuffer[]): void;
}

const startThread = (options: WorkerOptions): Thread =>
  // A large young generation would cost up to 48 MB for garbage that lives as long as one query.
  new Worker(new URL("./worker.ts", import.meta.url), {
    workerData: options,
    resourceLimits: { maxYoungGenerationSizeMb: 8 },
  });

/** Starts the server. Rejects when it cannot listen, with an error that states what to do. `start` creates the thread; tests replace it. */
export async function createBuiltin(
  options: BuiltinOptions,
  start: (options: WorkerOptions) => Thread = startThread,
): Promise<Nameserver> {
  const { log, limitLoopback = false, ...rest } = options;
  let workerOptions: WorkerOptions = {
    host: rest.host,
    port: rest.port,
    rateLimit: rest.rateLimit,
    queryLimit: rest.queryLimit ?? 0,
    limitLoopback,
    file: rest.file ?? null,
    transfer: rest.transfer,
  };
  const waiting = new Map<number, Waiting>();
  const listeners: (() => void)[] = [];
  const batch = createBatch();
  let gathered: Publication[] = [];
  /** Number of calls that are encoded, or wait for those. */
  let pending = 0;
  let latest = Promise.resolve();
  let worker: Thread | null = null;
  let untouched = true;
  let failure = "starting";
  let closed = false;
  let launching = Promise.resolve();
  let lastId = 0;
  let pause = RESTART_MS.first;
  let timer: NodeJS.Timeout | null = null;

  const stopped = (): Error => new Error(`the name server is not running: ${failure}`);

  const send = (make: (id: number) => ToWorker, wait: Waiting, transfer: ArrayBuffer[] = []): void => {
    if (worker === null) return wait.reject(stopped());
    const id = ++lastId;
    waiting.set(id, wait);
    worker.postMessage(make(id), transfer);
  };

  const flush = (): void => {
    if (gathered.length === 0) return;
    const calls = gathered;
    gathered = [];
    sendBatch(batch.take(), calls);
  };

  const sendBatch = (bytes: ArrayBuffer, calls: readonly Publication[]): void => {
    const settle = (message: FromWorker): void => {
      if (message.kind !== "applied") return;
      let from = 0;
      for (const call of calls) call.resolve(message.served.slice(from, (from += call.count)));
    };
    const reject = (reason: Error): void => {
      for (const call of calls) call.reject(reason);
    };
    send((id) => ({ kind: "apply", id, batch: bytes }), { settle, reject }, [bytes]);
  };

  /** Encodes many sets in slices. Never rejects. */
  const sendLong = async (changes: readonly ZoneChange[], call: Publication): Promise<void> => {
    flush();
    const long = createBatch();
    try {
      await runInTurns(long.addInTurns(changes));
      sendBatch(long.take(), [call]);
    } catch (error) {
      call.reject(error as Error);
    }
  };

  /** Calls `act` when the changes of earlier calls are sent: at once, unless some are being encoded in slices. */
  const inOrder = (act: () => Promise<void> | void): void => {
    const acting = pending === 0 ? act() : latest.then(act);
    if (acting === undefined) return;
    pending++;
    latest = acting.finally(() => {
      pending--;
    });
  };

  /** Sends a request after the changes of earlier calls. Resolves to what `read` returns of the response. */
  const request = <T>(make: (id: number) => ToWorker, read: (message: FromWorker) => T): Promise<T> =>
    new Promise((resolve, reject) => {
      const settle = (message: FromWorker): void => {
        try {
          resolve(read(message));
        } catch (error) {
          reject(error);
        }
      };
      inOrder(() => {
        flush();
        send(make, { settle, reject });
      });
    });

  const fail = (reason: string): void => {
    worker = null;
    failure = reason;
    const error = stopped();
    flush();
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };

  const receive = (message: FromWorker): void => {
    if (message.kind === "log") log(message.level, message.message, message.detail);
    if (!("id" in message)) return;
    const wait = waiting.get(message.id);
    waiting.delete(message.id);
    wait?.settle(message);
  };

  /** Starts a thread and resolves when it listens. */
  const launch = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const thread = start(workerOptions);
      const started = performance.now();
      let ready = false;
      let reason = "its thread ended";
      thread.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          if (closed) {
            void thread.terminate();
            return;
          }
          ready = true;
          worker = thread;
          untouched = true;
          workerOptions = { ...workerOptions, port: message.port };
          resolve();
        } else if (message.kind === "unable") {
          reason = explain(message.code, message.message, workerOptions);
          // Ends the thread with the sockets that it opened.
          void thread.terminate();
        } else {
          receive(message);
        }
      });
      thread.on("error", (error) => {
        reason = error instanceof Error ? error.message : String(error);
      });
      thread.on("exit", () => {
        if (!ready) return reject(new Error(reason));
        if (closed) return;
        fail(reason);
        if (performance.now() - started > STEADY_MS) pause = RESTART_MS.first;
        log("error", "The name server thread ended; restarting it", { reason, pause });
        restart();
      });
    });

  const relaunch = async (): Promise<void> => {
    try {
      launching = launch();
      await launching;
    } catch (error) {
      if (closed) return;
      failure = (error as Error).message;
      log("error", "Could not start the name server; will retry", { reason: failure, pause });
      restart();
      return;
    }
    log("info", "The name server runs again", { address: addressOf(workerOptions) });
    for (const listener of listeners) listener();
  };

  const restart = (): void => {
    timer = setTimeout(() => void relaunch(), pause);
    pause = Math.min(pause * 2, RESTART_MS.most);
  };

  await launch();

  return {
    publish(changes) {
      if (worker === null) return Promise.reject(stopped());
      if (changes.length === 0) return Promise.resolve([]);
      untouched = false;
      return new Promise((resolve, reject) => {
        const call = { count: changes.length, resolve, reject };
        inOrder(() => {
          if (isLong(changes)) return sendLong(changes, call);
          try {
            batch.add(changes);
          } catch (error) {
            return reject(error);
          }
          if (gathered.push(call) === 1) setImmediate(flush);
        });
      });
    },
    withdraw(zone, serial) {
      const name = nameOf(zone);
      return request(
        (id) => ({ kind: "withdraw", id, zone: name, serial }),
        () => {},
      );
    },
    loaded: () =>
      request(
        (id) => ({ kind: "loaded", id }),
        () => {},
      ),
    saved() {
      return new Promise((resolve, reject) => {
        const settle = (message: FromWorker): void => resolve(message.kind === "saved" ? message.state : null);
        send((id) => ({ kind: "saved", id }), { settle, reject });
      });
    },
    adopt(zones) {
      untouched = false;
      const names = zones.map(nameOf);
      return request(
        (id) => ({ kind: "adopt", id, zones: names }),
        () => {},
      );
    },
    save: (mark) =>
      request(
        (id) => ({ kind: "save", id, mark }),
        (message) => {
          if (message.kind === "unsaved") throw new Error(message.reason);
        },
      ),
    observe() {
      const address = addressOf(workerOptions);
      const absent = () => ({ ready: false, address, detail: failure, zones: [], secondaries: [], p99: 0 });
      if (worker === null) return Promise.resolve(absent());
      const read = (message: FromWorker): NameserverStatus =>
        message.kind === "observed" ? statusOf(message.observation, address) : absent();
      return request((id) => ({ kind: "observe", id }), read).catch(absent);
    },
    onStart(listener) {
      listeners.push(listener);
      // A listener registered after the start would otherwise miss it.
      if (worker !== null && untouched) setImmediate(listener);
    },
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      const thread = worker;
      fail("closed");
      await thread?.terminate();
      // A thread that starts ends when it is ready: if the process ended while koffi loads, koffi would abort it.
      await launching.catch(() => {});
    },
  };
}

function addressOf({ host, port }: WorkerOptions): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function statusOf(observation: Observation, address: string): NameserverStatus {
  const { serials, counts, p99 } = observation;
  const names = serials.length === 0 ? [] : observation.names.split("\n");
  const zones = names.map((zone, i) => zoneStatus(zone, serials[i] as number, counts.subarray(i * 16, i * 16 + 16)));
  const secondaries = observation.secondaries.map(({ serials: confirmed, ...rest }) => ({
    ...rest,
    serials: new Map(
      names.map((name, i) => [name, confirmed[i] as number] as const).filter(([, serial]) => serial > 0),
    ),
  }));
  return { ready: true, address, detail: `built in, ${zones.length} zones`, zones, secondaries, p99 };
}

/** Returns the status of one zone; counters are named as in RFC 6895 section 2.3, only for response codes that occurred. */
export function zoneStatus(zone: string, serial: number, counts: ArrayLike<number>): ZoneStatus {
  const rcodes: Record<string, number> = {};
  let queries = 0;
  for (let rcode = 0; rcode < counts.length; rcode++) {
    const count = counts[rcode] as number;
    queries += count;
    if (count > 0) rcodes[RCODE_NAMES[rcode] ?? `RCODE${rcode}`] = count;
  }
  return { zone, serial, queries, rcodes };
}

function explain(code: string, message: string, options: WorkerOptions): string {
  const address = addressOf(options);
  if (code === "EACCES") {
    return `not allowed to listen on ${address}: ports below 1024 need root or CAP_NET_BIND_SERVICE; give the service that right or choose a port from 1024 up`;
  }
  if (code === "EADDRINUSE") {
    return `${address} is in use by another program, often a resolver of the host: stop it (find it with ss -lntup) or choose another address or port`;
  }
  if (code === "EADDRNOTAVAIL")
    return `${options.host} is not an address of this host: choose one that \`ip address\` shows`;
  return `the name server cannot start on ${address}: ${message}`;
}
