/** A PostgreSQL server that a test can pause (SIGSTOP), and a proxy in front of it that can drop all traffic without closing connections. */
import { type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { findAccount, findBinaries } from "./databases.ts";

/** A PostgreSQL server that only one test uses. */
export interface OwnServer {
  /** URL of an empty database. */
  readonly url: string;
  /** Path of its Unix socket. */
  readonly socket: string;
  /** Stops every process of the server, as if its host hangs. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);

/** Returns true if a process is stopped (state T of proc(5)) or has ended. */
function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return "TtZX".includes(stat[stat.lastIndexOf(")") + 2] ?? "X");
  } catch {
    return true;
  }
}

/** Settings for tests, which lose nothing in a power cut. */
const testSettings = ["-c", "fsync=off", "-c", "autovacuum=off"];

/** Starts a server that listens on a Unix socket only, and resolves when it accepts connections. */
export async function startPostgres(settings: readonly string[] = testSettings): Promise<OwnServer> {
  const folder = mkdtempSync(join(tmpdir(), "brume-pg-"));
  const account = findAccount();
  if (account.uid !== undefined && account.gid !== undefined) chownSync(folder, account.uid, account.gid);
  const log = openSync(join(folder, "log"), "a");
  const env = { PATH: "/usr/bin:/bin", LC_ALL: "C", LD_LIBRARY_PATH: process.env["LD_LIBRARY_PATH"] };
  const options: SpawnOptions = { ...account, env, cwd: folder, stdio: ["ignore", log, log] };
  const data = join(folder, "data");
  const init = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  const { status } = spawnSync(join(findBinaries(), "initdb"), init, options);
  if (status !== 0) throw new Error(`initdb failed: ${readFileSync(join(folder, "log"), "utf8")}`);
  const server = spawn(join(findBinaries(), "postgres"), ["-D", data, "-h", "", "-k", folder, ...settings], options);
  const ended = once(server, "exit");
  const pid = server.pid ?? 0;
  const url = `postgresql://postgres@/postgres?host=${folder}`;
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    const isReady = await client.connect().then(
      () => true,
      () => false,
    );
    if (isReady) {
      await client.end();
      break;
    }
    if (server.exitCode !== null) throw new Error(readFileSync(join(folder, "log"), "utf8"));
    await sleep(20);
  }
  const signal = (processes: readonly number[], name: NodeJS.Signals): void => {
    for (const each of processes)
      try {
        process.kill(each, name);
      } catch (error) {
        // A process of one connection ends by itself.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
  };
  /** Stops these processes, and returns when none of them executes: the kernel stops a process later than it accepts the signal. */
  const stop = (processes: readonly number[]): void => {
    signal(processes, "SIGSTOP");
    while (!processes.every(isStopped));
  };
  return {
    url,
    socket: join(folder, ".s.PGSQL.5432"),
    pause: () => {
      // The first process makes one process per connection, so it stops before its children are counted.
      stop([pid]);
      stop(childrenOf(pid));
    },
    resume: () => signal([...childrenOf(pid), pid], "SIGCONT"),
    async close() {
      if (server.exitCode === null) {
        signal([...childrenOf(pid), pid], "SIGCONT");
        server.kill("SIGQUIT");
        await ended;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A TCP proxy on 127.0.0.1. */
export interface Proxy {
  readonly port: number;
  /** Drops all traffic from now on and closes no connection. Open connections stay unusable after `pass`. */
  swallow(): void;
  /** Forwards new connections again. */
  pass(): void;
  close(): Promise<void>;
}

/** Starts a proxy from a free TCP port to a Unix socket. */
export async function startProxy(socket: string): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let swallows = false;
  const server = createServer((near) => {
    sockets.add(near);
    near.on("error", () => near.destroy());
    if (swallows) {
      near.resume();
      return;
    }
    const far = connect({ path: socket });
    sockets.add(far);
    far.on("error", () => far.destroy());
    let isLost = false;
    const relay = (from: Socket, to: Socket): void => {
      from.on("data", (bytes) => {
        isLost ||= swallows;
        if (!isLost) to.write(bytes);
      });
      from.on("close", () => {
        // In a network partition the close of one side does not reach the other.
        if (!swallows && !isLost) to.destroy();
      });
    };
    relay(near, far);
    relay(far, near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    port,
    swallow: () => {
      swallows = true;
    },
    pass: () => {
      swallows = false;
    },
    async close() {
      for (const each of sockets) each.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
