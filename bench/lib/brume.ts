/** Starts the service as an operator does, with its own data folder, to measure it from outside. */
import { createSocket } from "node:dgram";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Client, createClient } from "@brume/api/client.ts";
import { query } from "../../test/support/dnsclient.ts";
import { type Program, pin, processorTime, start, untilReady } from "./process.ts";

export interface Brume {
  readonly url: string;
  readonly token: string;
  readonly dnsPort: number;
  readonly folder: string;
  readonly client: Client;
  readonly program: Program;
  /** Milliseconds from the start of the process to the first 200 of `/readyz`. */
  readonly startMs: number;
  /** Milliseconds of processor time that the process had used then. */
  readonly startProcessor: number;
  /** Milliseconds from the start of the process to the first DNS answer with data, and its processor time; NaN without a name. */
  readonly dnsMs: number;
  readonly dnsProcessor: number;
  /** Stops it. The data folder stays. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  remove(): void;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}

const root = resolve(import.meta.dirname, "../..");

/** Milliseconds between two queries until the first answer. */
const queryPeriod = 5;

/** Resolves when the name server on a local port answers a query for the A records of `name` with data. */
async function untilAnswered(port: number, name: string): Promise<void> {
  const socket = createSocket("udp4");
  const packet = query(name, 1);
  const timer = setInterval(() => socket.send(packet, port, "127.0.0.1"), queryPeriod);
  try {
    // The number of answers is in bytes 6 and 7.
    await new Promise<void>((done) => socket.on("message", (bytes) => bytes.readUInt16BE(6) > 0 && done()));
  } finally {
    clearInterval(timer);
    socket.close();
  }
}

/**
 * Starts the service and waits until it is ready. `folder`: data of an earlier run. `name`: a name whose first DNS answer is measured.
 * `isPinned`: from then on it has one core, so that the programs that measure do not compete with it.
 */
export async function startBrume(
  folder = mkdtempSync(join(tmpdir(), "brume-bench-")),
  settings: Readonly<Record<string, string>> = {},
  name: string | null = null,
  { isPinned = true } = {},
): Promise<Brume> {
  mkdirSync(folder, { recursive: true });
  const [port, dnsPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const begun = performance.now();
  // It starts as for a user, with all cores; what is measured later has one.
  const own = { isPinned: false };
  const program = start(
    [process.execPath, join(root, "service/dist/main.js")],
    {
      NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compiled"),
      BRUME_CONFIG: "",
      BRUME_DATA: folder,
      BRUME_LISTEN: `127.0.0.1:${port}`,
      BRUME_DNS_LISTEN: `127.0.0.1:${dnsPort}`,
      BRUME_DNS_RESOLVERS: ",",
      BRUME_LOG: "warn",
      // Other benchmarks measure networks.
      BRUME_SIMULATE: "1",
      ...settings,
    },
    own,
  );
  const spent = () => ({ ms: performance.now() - begun, processor: processorTime(program.child.pid) });
  const answered = name === null ? { ms: Number.NaN, processor: Number.NaN } : untilAnswered(dnsPort, name).then(spent);
  await untilReady(`${url}/readyz`);
  const ready = spent();
  const dns = await answered;
  if (isPinned) pin(program.child.pid);
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  return {
    url,
    token,
    dnsPort,
    folder,
    client: createClient({ url, token }),
    program,
    startMs: ready.ms,
    startProcessor: ready.processor,
    dnsMs: dns.ms,
    dnsProcessor: dns.processor,
    stop: (signal) => program.stop(signal),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
