/** Measures requests to a service from outside: response time, processor time and memory of the service, and the waits of a prober meanwhile. */
import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Brume, freePort } from "./brume.ts";
import type { Waits } from "./prober.ts";
import { processorTime, start, untilReady } from "./process.ts";

/** A response without its body. */
export interface Response {
  readonly status: number;
  readonly bytes: number;
  readonly ms: number;
  /** The body, at most this many characters of it. */
  readonly text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const kept = 1_000_000;

/** Sends a request and reads the whole response. Rejects if the status is not 2xx. */
export function send(
  brume: Pick<Brume, "url" | "token">,
  method: string,
  path: string,
  options: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Response> {
  const begun = performance.now();
  const headers = { authorization: `Bearer ${brume.token}`, ...options.headers };
  return new Promise((resolve, reject) => {
    const sent = request(brume.url + path, { agent, method, headers }, (response) => {
      let bytes = 0;
      let text = "";
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (text.length < kept) text += chunk.toString("latin1");
      });
      response.on("error", reject);
      response.on("end", () => {
        const status = response.statusCode ?? 0;
        if (status < 200 || status > 299) reject(new Error(`${method} ${path}: ${status} ${text.slice(0, 400)}`));
        else resolve({ status, bytes, ms: performance.now() - begun, text });
      });
    });
    sent.on("error", reject);
    sent.end(options.body === undefined ? undefined : JSON.stringify(options.body));
  });
}

const statusOf = (pid: number | undefined, name: string): number =>
  Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Turns of the service's event loops, see `turns.ts`. */
export interface Turns {
  /** Milliseconds of processor time of the longest turn of the main thread. */
  readonly most: number;
  /** Milliseconds in which a request would wait more than 20 ms for the end of a turn of the main thread. */
  readonly blocked: number;
  /** Milliseconds in which the turns were measured. */
  readonly time: number;
  /** Milliseconds of processor time of the longest turn of another thread, such as the name server's. */
  readonly others: number;
}

/** Milliseconds after which a turn counts as blocked. */
const blockedAfter = 20;

/** Returns the turns that ended between two times, from the file of `turns.ts`. */
function turnsBetween(file: string, from: number, until: number): Turns {
  const text = existsSync(file) ? readFileSync(file, "latin1") : "";
  const lines = text.split("\n").map((line) => line.split(" ").map(Number));
  const within = lines.filter(([, end = 0]) => end >= from && end <= until);
  const main = within.filter(([thread]) => thread === 0).map(([, , took = 0]) => took);
  const others = within.filter(([thread]) => thread !== 0).map(([, , took = 0]) => took);
  const blocked = main.reduce((sum, took) => sum + Math.max(0, took - blockedAfter), 0);
  return { most: Math.max(0, ...main), blocked, time: until - from, others: Math.max(0, ...others) };
}

/** What an act cost. */
export interface Cost<T> {
  readonly result: T;
  readonly ms: number;
  /** Milliseconds of processor time of the service. */
  readonly processor: number;
  /** MB by which the resident memory of the service was above that before, at most. */
  readonly memory: number;
  readonly waits: Waits;
  readonly turns: Turns;
}

/** A running prober. */
export interface Prober {
  measure<T>(act: () => Promise<T>): Promise<Cost<T>>;
  /** Returns the waits of all measured acts. */
  close(): void;
}

/** Starts a prober of the service. `name`: a name that its name server serves. `turns`: file of `turns.ts`. */
export async function startProber(brume: Brume, name: string, turns: string): Promise<Prober> {
  const child: ChildProcess = fork(join(import.meta.dirname, "prober.ts"), [brume.url, String(brume.dnsPort), name]);
  const { pid } = brume.program.child;
  const take = async (): Promise<Waits> => {
    child.send("take");
    const [waits] = (await once(child, "message")) as [Waits];
    return waits;
  };
  await take();
  await new Promise((resolve) => setTimeout(resolve, 500));
  return {
    async measure(act) {
      await take();
      // Sets the peak to the present value.
      writeFileSync(`/proc/${pid}/clear_refs`, "5");
      const memory = statusOf(pid, "VmRSS");
      const before = processorTime(pid);
      const begun = performance.now();
      const from = Date.now();
      const result = await act();
      const ms = performance.now() - begun;
      const processor = processorTime(pid) - before;
      const peak = statusOf(pid, "VmHWM") - memory;
      // At least a second, so that one wait or turn of 20 ms is not counted as most of the time.
      const until = Math.max(Date.now(), from + 1000);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, until - Date.now())));
      return { result, ms, processor, memory: peak, waits: await take(), turns: turnsBetween(turns, from, until) };
    },
    close: () => child.disconnect(),
  };
}

/** Transfers a zone with `dig`, and returns its number of records. */
export async function transferZone(port: number, name: string): Promise<number> {
  const argv = ["-p", String(port), "@127.0.0.1", name, "AXFR", "+noall", "+stats", "+onesoa"];
  const { stdout } = await promisify(execFile)("dig", argv);
  return Number(/XFR size: (\d+) records/.exec(stdout)?.[1]);
}

/** Returns the milliseconds of processor time of a response of as many bytes from a bare server. */
export async function bareTime(bytes: number, count: number): Promise<number> {
  const port = await freePort();
  const program = start([process.execPath, join(import.meta.dirname, "bare.ts"), String(port), String(bytes)]);
  const bare = { url: `http://127.0.0.1:${port}`, token: "" };
  await untilReady(bare.url);
  for (let index = 0; index < count; index++) await send(bare, "GET", "/");
  const before = processorTime(program.child.pid);
  for (let index = 0; index < 10 * count; index++) await send(bare, "GET", "/");
  const spent = processorTime(program.child.pid) - before;
  await program.stop();
  return spent / (10 * count);
}
