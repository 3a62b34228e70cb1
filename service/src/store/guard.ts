/**
 * Monitors PostgreSQL on a connection of its own, with one query per second. A server that is paused or unreachable is detected within
 * seconds; all pending queries then fail instead of waiting for ever. For a service, the guard also holds the advisory lock that keeps
 * a second service off the database. PostgreSQL releases the lock with the connection, and without it nothing may be written. The
 * server detects a lost client after 6 s, the guard a lost server after 3 s, so the former holder stops writing before another starts,
 * which ends the session that the former one wrote with.
 */
import { hostname } from "node:os";
import type { Duplex } from "node:stream";
import pg from "pg";
import type { Log } from "../base/log.ts";
import { StorageError } from "./db.ts";

/** Watches the connection to PostgreSQL. */
export interface Guard {
  /** Returns null if the database responds and may be written, else the reason. */
  unavailable(): StorageError | null;
  /** Returns how often the lock was acquired, or null while this process may not have it. */
  foreignWrites(): number | null;
  /** Resolves as `work` does. Rejects immediately with a `StorageError` if the database is lost before. */
  during<T>(work: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** What the guard connects to, and what it calls when the database is lost. */
export interface GuardOptions {
  readonly url: string;
  /** Acquires the lock that only one service can hold. */
  readonly exclusive: boolean;
  readonly log: Log;
  /** Called when the database is lost, to close all connections. */
  onLost(): void;
}

/** Milliseconds between two checks. */
const checkPeriod = 1_000;
/** Milliseconds for one response, and for a connection. */
const responseTime = 2_000;
/** Milliseconds after a check in which this process surely has the lock: the server detects a lost client later. */
const freshTime = 5_000;
/** Milliseconds between two attempts to connect. */
const retryAfter = 500;
/** Milliseconds that a start waits for a lock whose holder may be dead. */
const lockTime = 8_000;

/** Key of the advisory lock: "brum" and 1. */
const lockKey = [0x62_72_75_6d, 1] as const;

/** Settings of a session with which the server detects within 6 s that an idle client is lost. */
export const keepalives = "-c tcp_keepalives_idle=3 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3";
/** Also for a client that has not received the last response: the server sends no keepalives then. */
const lossTime = "-c tcp_user_timeout=6000";

/** Name in PostgreSQL of the session with which the holder of the lock writes. */
export const writerName = "brume writer";
/** The server may still have a session of the former holder, and would store a commit that the network delivers late. */
const endWriters = `
  select pg_terminate_backend(pid, 1500) as ended from pg_stat_activity
   where application_name = $1 and datname = current_database() and usename = current_user`;

/** Closes the connection immediately, and its queries reject. `pg` has no public function for this while a query runs. */
export function cut(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: Duplex } }).connection.stream.destroy();
}

/**
 * Resolves as `work` does. Closes the client after `ms` milliseconds, which makes `work` reject. A response that arrived while this
 * process was busy is read first.
 */
export async function withDeadline<T>(client: pg.ClientBase, ms: number, work: Promise<T>): Promise<T> {
  let done = false;
  const timer = setTimeout(() => setImmediate(() => done || cut(client)), ms);
  try {
    return await work;
  } finally {
    done = true;
    clearTimeout(timer);
  }
}

interface Holder {
  readonly backend: number;
  readonly name: string;
}

/** Returns `brume PID SINCE HOST`, the name of the session in PostgreSQL, at most 63 bytes. */
const nameSelf = (): string =>
  `brume ${process.pid} ${new Date().toISOString().slice(0, 19)}Z ${hostname()}`.slice(0, 63);

function describeHolder(holder: Holder | undefined): string {
  const [, pid, since, host] = /^brume (\d+) (\S+) (\S+)$/.exec(holder?.name ?? "") ?? [];
  return pid === undefined ? `session ${holder?.backend ?? "unknown"}` : `host ${host}, pid ${pid}, since ${since}`;
}

/** Returns whether the holder is a living process of this host: then waiting for its lock is useless. */
function isAlive(holder: Holder | undefined): boolean {
  const [, pid, , host] = /^brume (\d+) (\S+) (\S+)$/.exec(holder?.name ?? "") ?? [];
  if (pid === undefined || host !== hostname().slice(0, host?.length)) return false;
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

const findHolder = `
  select a.pid as backend, a.application_name as name
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
   where l.locktype = 'advisory' and l.granted and l.objsubid = 2
     and l.database = (select oid from pg_database where datname = current_database())
     and l.classid = $1 and l.objid = $2`;

/** Connects and acquires the lock. Rejects with an `Error` if another service holds it, or with an error of `pg`. */
export async function createGuard({ url, exclusive, log, onLost }: GuardOptions): Promise<Guard> {
  const self = nameSelf();
  let client: pg.Client | null = null;
  let reason: StorageError | null = null;
  /** Rejects the pending calls of `during`. */
  const waiting = new Set<(error: Error) => void>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** Number of times that the lock was acquired. */
  let acquired = 0;
  /** Start (ms) of the last check with a response. */
  let checkedAt = performance.now();

  /** Opens a connection, not yet used by the guard. */
  async function connect(): Promise<pg.Client> {
    const began = performance.now();
    const made = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: responseTime,
      application_name: self,
      options: `${keepalives} ${lossTime}`,
      keepAlive: true,
    });
    made.on("error", () => onConnectionLost(made, "the connection was lost"));
    await made.connect();
    checkedAt = began;
    return made;
  }

  const query = async (on: pg.Client, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await withDeadline(on, responseTime, on.query(text, values))).rows as Record<string, unknown>[];

  /** Acquires the lock if `exclusive`, and ends former writers. Returns undefined, or the holder if another session has it or still writes. */
  async function acquireLock(on: pg.Client): Promise<{ holder: Holder | undefined } | undefined> {
    if (!exclusive) return undefined;
    const [row] = await query(on, "select pg_try_advisory_lock($1, $2) as taken", [...lockKey]);
    if (row?.["taken"] === true) {
      const writers = await query(on, endWriters, [writerName]);
      return writers.every(({ ended }) => ended === true) ? undefined : { holder: undefined };
    }
    const [holder] = (await query(on, findHolder, [...lockKey])) as unknown as Holder[];
    return { holder };
  }

  function report(level: "warn" | "error", text: string, cause?: unknown): StorageError {
    const error = new StorageError(text, { cause });
    // Logged once per outage, not at every attempt.
    if (reason?.message !== text) log(level, text);
    reason = error;
    return error;
  }

  function onConnectionLost(which: pg.Client, why: string): void {
    if (which !== client || closed) return;
    client = null;
    clearTimeout(timer);
    cut(which);
    const error = report("warn", `PostgreSQL does not respond: ${why}.`);
    for (const reject of waiting) reject(error);
    waiting.clear();
    onLost();
    timer = setTimeout(() => void reconnect(), 0);
  }

  function planCheck(): void {
    timer = setTimeout(() => {
      const checked = client;
      if (checked === null) return;
      const began = performance.now();
      const onTimeout = () => onConnectionLost(checked, `no response within ${responseTime / 1000} s`);
      const onResponse = (): void => {
        checkedAt = began;
        planCheck();
      };
      query(checked, "select 1").then(onResponse, onTimeout);
    }, checkPeriod);
    timer.unref();
  }

  /** Connects and acquires the lock again. Repeats until both succeed. */
  async function reconnect(): Promise<void> {
    let made: pg.Client | undefined;
    try {
      made = await connect();
      const refusal = await acquireLock(made);
      if (refusal === undefined && !closed) {
        client = made;
        reason = null;
        acquired += 1;
        log("info", "PostgreSQL responds again.");
        planCheck();
        return;
      }
      const { holder } = refusal ?? {};
      // The server has not detected yet that our former connection is lost.
      if (holder?.name === self) await query(made, "select pg_terminate_backend($1)", [holder.backend]);
      else if (!closed)
        report(
          "error",
          `Another Brume service has taken the database (${describeHolder(holder)}): this service does not write to it.`,
        );
    } catch (error) {
      if (!closed) report("warn", `PostgreSQL does not respond: ${(error as Error).message}.`, error);
    }
    if (made !== undefined) cut(made);
    if (closed) return;
    timer = setTimeout(() => void reconnect(), retryAfter);
    timer.unref();
  }

  const first = await connect();
  try {
    for (const until = performance.now() + lockTime; ; ) {
      const refusal = await acquireLock(first);
      if (refusal === undefined) break;
      if (performance.now() > until || isAlive(refusal.holder))
        throw new Error(
          `the database is in use by another Brume service (${describeHolder(refusal.holder)}): stop that one first, or give this one a database of its own`,
        );
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  } catch (error) {
    closed = true;
    cut(first);
    throw error;
  }
  client = first;
  acquired += 1;
  planCheck();

  return {
    unavailable: () => reason,
    foreignWrites: () => (exclusive && reason === null && performance.now() - checkedAt < freshTime ? acquired : null),
    during(work) {
      if (reason !== null) return Promise.reject(reason);
      return new Promise((resolve, reject) => {
        waiting.add(reject);
        // Promise.race with one promise for the whole life of the service would keep every result in memory.
        void work.then(resolve, reject).then(() => waiting.delete(reject));
      });
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      const last = client;
      client = null;
      if (last !== null) await last.end().catch(() => {});
    },
  };
}
