/**
 * Brume as an operator runs it: its program in its own process, with a new data folder (or PostgreSQL database) and free ports. Tests can
 * kill it, fill its disk or measure its memory, and start it again on the same data.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient } from "@brume/api/client.ts";
import pg from "pg";
import type { Snapshot } from "../../service/src/store/db.ts";
import { openPostgresSnapshot } from "../../service/src/store/postgres.ts";
import { connect, databaseName, openSqliteSnapshot } from "../../service/src/store/sqlite.ts";
import { type Kind, startDatabase } from "./databases.ts";
import { serviceProgram } from "./program.ts";

/** A log line; `level` is pino's: 30 is info, 40 a warning, 50 an error. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [detail: string]: unknown;
}

/** A Brume process, running or not. */
export interface Process {
  readonly kind: Kind;
  readonly folder: string;
  /** The value of token 1, which has all scopes. */
  readonly token: string;
  /** Base URL since the last start. */
  readonly url: string;
  readonly port: number;
  /** `host:port` of the name server. */
  readonly dns: string;
  readonly client: Client;
  readonly pid: number;
  /** Its settings: the variables `BRUME_…`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Log lines since the last start. */
  readonly log: readonly LogLine[];
  /** Starts it on the existing data; resolves when `/readyz` answers 200. */
  start(): Promise<void>;
  /** Changes a setting for the next start. */
  set(name: `BRUME_${string}`, value: string): void;
  /** Starts it and kills it after `ms` milliseconds, ready or not. */
  startAndKill(ms: number): Promise<void>;
  /** Sends the signals and resolves to the exit code; null after SIGKILL. */
  end(...signals: NodeJS.Signals[]): Promise<number | null>;
  /** Resident memory, in bytes. */
  memory(): number;
  /** Opens a snapshot of the database, while the process runs or after its end. */
  snapshot(): Promise<Snapshot>;
  /** Runs SQL on the database without the process. */
  query(sql: string): Promise<void>;
  close(): Promise<void>;
}

export interface ProcessOptions {
  /** Data folder; default a new one, which `close` removes. */
  readonly folder?: string;
  /** Shell code before the command. */
  readonly prefix?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Does not start the process; the caller does. */
  readonly stopped?: boolean;
}

const inherited = Object.entries(process.env).filter(([name]) => !/^(BRUME_|NODE_TEST)/.test(name));
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Creates folder and database and, unless `stopped` is set, starts the process. */
export async function createProcess(kind: Kind, options: ProcessOptions = {}): Promise<Process> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "brume-process-"));
  const token = randomBytes(32).toString("hex");
  const database = kind === "postgres" ? await startDatabase(kind, { migrated: false }) : null;
  const env: NodeJS.ProcessEnv = {
    ...Object.fromEntries(inherited),
    BRUME_CONFIG: "",
    BRUME_DATA: folder,
    BRUME_TOKEN: token,
    BRUME_LISTEN: "127.0.0.1:0",
    BRUME_DNS_LISTEN: "127.0.0.1:0",
    // No external resolver; zone transfers are allowed, so that tests can compare complete zones.
    BRUME_DNS_RESOLVERS: ",",
    BRUME_DNS_TRANSFER: "127.0.0.1",
    // Only host tests change the networks of this host.
    BRUME_SIMULATE: "1",
    // Tests of two processes set 2; TEST_PROCESSES=2 runs all tests of real engines with two.
    BRUME_PROCESSES: process.env["TEST_PROCESSES"] ?? "1",
    ...(database !== null && { BRUME_DATABASE: database.address }),
    ...options.environment,
  };
  let child: ChildProcess | null = null;
  let ended: Promise<number | null> = Promise.resolve(null);
  let log: LogLine[] = [];
  let url = "";
  let dns = "";
  let client: Client | null = null;

  function launch(): Promise<void> {
    if (child !== null) throw new Error("the process is already running");
    const line = `${options.prefix ?? ""} exec "$0" "$@"`;
    const started = spawn("sh", ["-c", line, process.execPath, serviceProgram()], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child = started;
    running.add(started);
    const lines: LogLine[] = [];
    log = lines;
    const raw: string[] = [];
    ended = once(started, "exit").then(([code]) => {
      running.delete(started);
      if (child === started) child = null;
      return code as number | null;
    });
    const reader = createInterface({ input: started.stderr as NodeJS.ReadableStream });
    return new Promise((resolve, reject) => {
      reader.on("line", (text) => {
        raw.push(text);
        if (!text.startsWith("{")) return;
        const entry = JSON.parse(text) as LogLine;
        lines.push(entry);
        if (entry.msg !== "ready") return;
        url = `http://${String(entry["address"])}`;
        dns = String(entry["dns"]);
        client = createClient({ url, token, retries: 0 });
        resolve();
      });
      reader.once("close", () => reject(new Error(`Brume ended before it was ready: ${raw.join("\n")}`)));
    });
  }

  const created: Process = {
    kind,
    folder,
    token,
    get url() {
      return url;
    },
    get port() {
      return Number(new URL(url).port);
    },
    get dns() {
      return dns;
    },
    get client() {
      if (client === null) throw new Error("the process was never started");
      return client;
    },
    get pid() {
      return child?.pid ?? 0;
    },
    get environment() {
      const settings = Object.entries(env).filter(([name]) => name.startsWith("BRUME_"));
      return Object.fromEntries(settings) as Record<string, string>;
    },
    get log() {
      return log;
    },
    async start() {
      await launch();
      const response = await fetch(`${url}/readyz`);
      if (response.status !== 200)
        throw new Error(`the log contains ready, but /readyz returned: ${await response.text()}`);
    },
    set(name, value) {
      env[name] = value;
    },
    async startAndKill(ms) {
      const launched = launch().catch(() => {});
      await sleep(ms);
      await created.end("SIGKILL");
      await launched;
    },
    async end(...signals) {
      for (const signal of signals) child?.kill(signal);
      return ended;
    },
    memory() {
      const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${created.pid}/status`, "utf8")) ?? [];
      return Number(kilobytes) * 1024;
    },
    snapshot: () =>
      database === null ? openSqliteSnapshot(join(folder, databaseName)) : openPostgresSnapshot(database.address),
    async query(sql) {
      if (database === null) {
        const connection = connect(join(folder, databaseName), { readOnly: false });
        connection.script(sql);
        connection.close();
        return;
      }
      const connection = new pg.Client({ connectionString: database.address });
      await connection.connect();
      await connection.query(sql);
      await connection.end();
    },
    async close() {
      await created.end("SIGKILL");
      await database?.close();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    if (options.stopped !== true) await created.start();
  } catch (error) {
    await created.close();
    throw error;
  }
  return created;
}
