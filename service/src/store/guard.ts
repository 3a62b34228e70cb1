/**
 * Watches PostgreSQL on a connection of its own. It asks every second, so that a server that is paused, or that the network no longer
 * reaches, is known as away within seconds: then everything that waits for it fails at once instead of waiting without end. For a service
 * it also holds the advisory lock that keeps a second service off the database. PostgreSQL drops that lock with the connection; while it
 * is not held nothing may be written. Its keepalives let the server notice a lost client (6 s) later than this notices a lost
 * server (3 s), so the former holder has stopped writing before another can begin.
 */
import { hostname } from "node:os";
import type { Duplex } from "node:stream";
import pg from "pg";
import type { Log } from "../base/log.ts";
import { StorageError } from "./db.ts";

export interface Guard {
  /** Null: the database answers and may be written. Else why not. */
  unavailable(): StorageError | null;
  /** Resolves as `work` does; rejects at once with a `StorageError` when the database goes away before. */
  during<T>(work: Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface GuardOptions {
  readonly url: string;
  /** Holds the lock that one service has of a database. */
  readonly exclusive: boolean;
  readonly log: Log;
  /** Called when the database is away, to cut what waits for it. */
  onLost(): void;
}

const beat = 1_000;
/** Milliseconds for one answer, and for a connection. */
const patience = 2_000;
const retryAfter = 500;
/** Milliseconds that a start waits for a lock whose holder may be dead. */
const inheritance = 8_000;

/** Of the advisory lock: "brum" and 1. */
const lockKey = [0x62_72_75_6d, 1] as const;

/** Settings of a session: the server notices within 6 s that its client is lost. */
export const keepalives = "-c tcp_keepalives_idle=3 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3";

/** Ends the connection now: what waits for it rejects. `pg` has no public way to do this while a query runs. */
export function cut(client: pg.ClientBase): void {
  (client as unknown as { connection: { stream: Duplex } }).connection.stream.destroy();
}

/**
 * Resolves as `work` does, and cuts the client after `ms`, which makes `work` reject. A reply that has arrived while this process
 * was busy is read first.
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

/** `brume PID SINCE HOST`: what PostgreSQL shows of the session, at most 63 bytes. */
const nameSelf = (): string =>
  `brume ${process.pid} ${new Date().toISOString().slice(0, 19)}Z ${hostname()}`.slice(0, 63);

function describeHolder(holder: Holder | undefined): string {
  const [, pid, since, host] = /^brume (\d+) (\S+) (\S+)$/.exec(holder?.name ?? "") ?? [];
  return pid === undefined ? `session ${holder?.backend ?? "unknown"}` : `host ${host}, pid ${pid}, since ${since}`;
}

/** On this machine a holder that lives can be seen, and is not waited for. */
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

/** Connects and takes the lock. Rejects with a plain error when another service holds it, else with what `pg` throws. */
export async function createGuard({ url, exclusive, log, onLost }: GuardOptions): Promise<Guard> {
  const self = nameSelf();
  let client: pg.Client | null = null;
  let reason: StorageError | null = null;
  let lost = Promise.withResolvers<never>();
  lost.promise.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** A connection that is not yet the guard's. */
  async function connect(): Promise<pg.Client> {
    const made = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: patience,
      application_name: self,
      options: keepalives,
      keepAlive: true,
    });
    made.on("error", () => lose(made, "the connection was lost"));
    await made.connect();
    return made;
  }

  const ask = async (asked: pg.Client, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
    (await withDeadline(asked, patience, asked.query(text, values))).rows as Record<string, unknown>[];

  /** Undefined when the lock is taken or not wanted, else who holds it. */
  async function take(asked: pg.Client): Promise<{ holder: Holder | undefined } | undefined> {
    if (!exclusive) return undefined;
    const [row] = await ask(asked, "select pg_try_advisory_lock($1, $2) as taken", [...lockKey]);
    if (row?.["taken"] === true) return undefined;
    const [holder] = (await ask(asked, findHolder, [...lockKey])) as unknown as Holder[];
    return { holder };
  }

  function say(level: "warn" | "error", text: string, cause?: unknown): StorageError {
    const error = new StorageError(text, { cause });
    // Once, however long it lasts and however often it is tried.
    if (reason?.message !== text) log(level, text);
    reason = error;
    return error;
  }

  function lose(which: pg.Client, why: string): void {
    if (which !== client || closed) return;
    client = null;
    clearTimeout(timer);
    cut(which);
    lost.reject(say("warn", `PostgreSQL does not respond: ${why}.`));
    onLost();
    timer = setTimeout(() => void regain(), 0);
  }

  function watch(): void {
    timer = setTimeout(() => {
      const asked = client;
      if (asked === null) return;
      ask(asked, "select 1").then(watch, () => lose(asked, `it was silent for ${patience / 1000} s`));
    }, beat);
    timer.unref();
  }

  /** Connects again and takes the lock again. Tries until it has both. */
  async function regain(): Promise<void> {
    let made: pg.Client | undefined;
    try {
      made = await connect();
      const refusal = await take(made);
      if (refusal === undefined && !closed) {
        client = made;
        reason = null;
        lost = Promise.withResolvers<never>();
        lost.promise.catch(() => {});
        log("info", "PostgreSQL responds again.");
        watch();
        return;
      }
      const { holder } = refusal ?? {};
      // The server has not noticed yet that our former connection is lost.
      if (holder?.name === self) await ask(made, "select pg_terminate_backend($1)", [holder.backend]);
      else if (!closed)
        say(
          "error",
          `Another Brume service has taken the database (${describeHolder(holder)}): nothing is written here.`,
        );
    } catch (error) {
      if (!closed) say("warn", `PostgreSQL does not respond: ${(error as Error).message}.`, error);
    }
    if (made !== undefined) cut(made);
    if (closed) return;
    timer = setTimeout(() => void regain(), retryAfter);
    timer.unref();
  }

  const first = await connect();
  try {
    for (const until = performance.now() + inheritance; ; ) {
      const refusal = await take(first);
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
  watch();

  return {
    unavailable: () => reason,
    during: (work) => (reason !== null ? Promise.reject(reason) : Promise.race([work, lost.promise])),
    async close() {
      closed = true;
      clearTimeout(timer);
      const last = client;
      client = null;
      if (last !== null) await last.end().catch(() => {});
    },
  };
}
