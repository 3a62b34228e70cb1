/**
 * Brume as an operator runs it: `main.ts` in a process of its own, on a fresh data folder (or a fresh PostgreSQL database) and free
 * ports, so that tests can kill it, take its disk away or measure its memory. It starts again on what it left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@brume/api/client.ts";
import pg from "pg";
import type { Snapshot } from "../../service/src/store/db.ts";
import { openPostgresSnapshot } from "../../service/src/store/postgres.ts";
import { connect, databaseName, openSqliteSnapshot } from "../../service/src/store/sqlite.ts";
import { type Kind, startDatabase } from "./databases.ts";

const main = fileURLToPath(new URL("../../service/src/main.ts", import.meta.url));

/** A line of the log; `level` as pino counts: 30 is info, 40 a warning, 50 an error. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [detail: string]: unknown;
}

export interface Process {
  readonly kind: Kind;
  readonly folder: string;
  /** Of token 1, with all scopes. */
  readonly token: string;
  /** Where it listens since the last start. */
  readonly url: string;
  readonly port: number;
  /** `host:port` of the name server. */
  readonly dns: string;
  readonly client: Client;
  readonly pid: number;
  /** Its settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** What it has logged since the last start. */
  readonly log: readonly LogLine[];
  /** Starts it on what is there; resolves when `/readyz` says that it is ready. */
  start(): Promise<void>;
  /** Starts it and kills it that many milliseconds later, ready or not. */
  stillbirth(ms: number): Promise<void>;
  /** Sends the signals and resolves to the exit code, null after a kill. */
  end(...signals: NodeJS.Signals[]): Promise<number | null>;
  /** Resident bytes. */
  memory(): number;
  /** The database as it is now, beside the process or after it. */
  snapshot(): Promise<Snapshot>;
  /** Changes the database behind the back of the process. */
  query(sql: string): Promise<void>;
  close(): Promise<void>;
}

export interface ProcessOptions {
  /** Instead of a new folder, which `close` removes. */
  readonly folder?: string;
  /** Shell text in front of the command. */
  readonly prefix?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Leaves the first start to the caller. */
  readonly unborn?: boolean;
}

const inherited = Object.entries(process.env).filter(([name]) => !/^(BRUME_|NODE_TEST)/.test(name));
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Makes everything ready and, unless told not to, starts it for the first time. */
export async function createProcess(kind: Kind, options: ProcessOptions = {}): Promise<Process> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "brume-process-"));
  const token = randomBytes(32).toString("hex");
  const database = kind === "postgres" ? await startDatabase(kind, { migrated: false }) : null;
  const env = {
    ...Object.fromEntries(inherited),
    BRUME_DATA: folder,
    BRUME_TOKEN: token,
    BRUME_LISTEN: "127.0.0.1:0",
    BRUME_DNS_LISTEN: "127.0.0.1:0",
    // Nobody is asked about the outside, and the zones can be compared whole.
    BRUME_DNS_RESOLVERS: ",",
    BRUME_DNS_TRANSFER: "127.0.0.1",
    // Host tests make real networks; to all others the machine is to stay as it is.
    BRUME_SIMULATE: "1",
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
    if (child !== null) throw new Error("it runs already");
    const line = `${options.prefix ?? ""} exec "$0" "$@"`;
    const born = spawn("sh", ["-c", line, process.execPath, main], { env, stdio: ["ignore", "ignore", "pipe"] });
    child = born;
    running.add(born);
    const lines: LogLine[] = [];
    log = lines;
    const raw: string[] = [];
    ended = once(born, "exit").then(([code]) => {
      running.delete(born);
      if (child === born) child = null;
      return code as number | null;
    });
    const reader = createInterface({ input: born.stderr as NodeJS.ReadableStream });
    return new Promise((resolve, reject) => {
      reader.on("line", (text) => {
        raw.push(text);
        if (!text.startsWith("{")) return;
        const said = JSON.parse(text) as LogLine;
        lines.push(said);
        if (said.msg !== "ready") return;
        url = `http://${String(said["address"])}`;
        dns = String(said["dns"]);
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
      if (client === null) throw new Error("it was never started");
      return client;
    },
    get pid() {
      return child?.pid ?? 0;
    },
    environment: Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith("BRUME_"))) as Record<
      string,
      string
    >,
    get log() {
      return log;
    },
    async start() {
      await launch();
      const answer = await fetch(`${url}/readyz`);
      if (answer.status !== 200) throw new Error(`it says that it is ready, and /readyz: ${await answer.text()}`);
    },
    async stillbirth(ms) {
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
      const asker = new pg.Client({ connectionString: database.address });
      await asker.connect();
      await asker.query(sql);
      await asker.end();
    },
    async close() {
      await created.end("SIGKILL");
      await database?.close();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    if (options.unborn !== true) await created.start();
  } catch (error) {
    await created.close();
    throw error;
  }
  return created;
}
