/** Starts the service as an operator does, with its own data folder, to measure it from outside. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Client, createClient } from "@brume/api/client.ts";
import { type Program, start, untilReady } from "./process.ts";

export interface Brume {
  readonly url: string;
  readonly token: string;
  readonly dnsPort: number;
  readonly folder: string;
  readonly client: Client;
  readonly program: Program;
  /** Milliseconds from the start of the process to the first 200 of `/readyz`. */
  readonly startMs: number;
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

/** Starts the service and waits until it is ready. `folder`: data of an earlier run. */
export async function startBrume(
  folder = mkdtempSync(join(tmpdir(), "brume-bench-")),
  settings: Readonly<Record<string, string>> = {},
): Promise<Brume> {
  mkdirSync(folder, { recursive: true });
  const [port, dnsPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const begun = performance.now();
  const program = start([process.execPath, join(root, "service/dist/main.js")], {
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
  });
  await untilReady(`${url}/readyz`);
  const startMs = performance.now() - begun;
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  return {
    url,
    token,
    dnsPort,
    folder,
    client: createClient({ url, token }),
    program,
    startMs,
    stop: (signal) => program.stop(signal),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
