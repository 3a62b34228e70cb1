/** HTTP load with wrk: one thread on core 1, one request at a time on each connection. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pinned } from "./process.ts";

export interface Load {
  readonly url: string;
  readonly connections: number;
  /** Returns a Lua script for wrk. `run` is different for each run, for names that must be unique. */
  readonly script: (run: string) => string;
}

export interface Measured {
  /** Responses with 2xx or 3xx per second. */
  readonly rate: number;
  /** Latency in milliseconds. */
  readonly p50: number;
  readonly p99: number;
}

const toMs = (text: string): number => {
  const [, number = "0", unit = "ms"] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? [];
  return Number(number) * { us: 0.001, ms: 1, s: 1000 }[unit as "us" | "ms" | "s"];
};

/** Seconds of load before the measurement, so that code is compiled, caches are filled and connections open. */
const warmUp = 5;
const rounds = 12;
const seconds = 1;

/**
 * Returns the best round of each load. The loads alternate, so that other work of the host affects all of them. Throws if a response was
 * an error, because the rate of errors means nothing.
 */
export async function loadInTurns<const L extends readonly Load[]>(loads: L): Promise<{ [K in keyof L]: Measured }> {
  for (const { url, connections, script } of loads) await run(url, connections, warmUp, script("w"));
  const best: (Measured | undefined)[] = loads.map(() => undefined);
  for (let round = 0; round < rounds; round++)
    for (const [at, { url, connections, script }] of loads.entries()) {
      const measured = await run(url, connections, seconds, script(`m${round}-`));
      if (measured.rate > (best[at]?.rate ?? 0)) best[at] = measured;
    }
  return best as { [K in keyof L]: Measured };
}

async function run(url: string, connections: number, seconds: number, script: string): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "brume-wrk-"));
  const file = join(folder, "load.lua");
  writeFileSync(file, script);
  const [command = "", ...argv] = pinned(1, [
    "wrk",
    "-t1",
    `-c${connections}`,
    `-d${seconds}s`,
    "--latency",
    "-s",
    file,
    url,
  ]);
  try {
    const text = await new Promise<string>((resolve, reject) => {
      const child = spawn(command, argv, { stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (part) => {
          output += part;
        });
      child.once("error", reject);
      child.once("exit", (code) => (code === 0 ? resolve(output) : reject(new Error(output))));
    });
    if (/Non-2xx|Socket errors: connect [1-9]/.test(text)) throw new Error(`wrk met errors at ${url}:\n${text}`);
    const percentile = (name: string) => toMs(new RegExp(`^ +${name}%\\s+(\\S+)`, "m").exec(text)?.[1] ?? "");
    return { rate: Number(/Requests\/sec:\s+([\d.]+)/.exec(text)?.[1]), p50: percentile("50"), p99: percentile("99") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
