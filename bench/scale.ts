/**
 * Measures the cost of many records: time until the service is ready and memory with 100,000, and whether a read and a create take as
 * long with 1,000,000 as with 10,000. Requests are sequential on one connection. `npm run bench -- scale`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Brume, startBrume } from "./lib/brume.ts";
import { fill } from "./lib/fill.ts";

const each = 100;
const rounds = 4000;
const warmUp = 2000;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function send(brume: Brume, method: string, path: string, body?: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request(
      brume.url + path,
      { agent, method, headers: { authorization: `Bearer ${brume.token}` } },
      (answer) => {
        answer.resume();
        answer.on("end", () =>
          answer.statusCode === 200 ? resolve() : reject(new Error(`${path}: ${answer.statusCode}`)),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Returns the milliseconds of one request: median and 99th percentile. */
async function measure(act: (i: number) => Promise<void>): Promise<{ p50: number; p99: number }> {
  const took: number[] = [];
  for (let i = 0; i < warmUp + rounds; i++) {
    const begun = performance.now();
    await act(i);
    if (i >= warmUp) took.push(performance.now() - begun);
  }
  took.sort((a, b) => a - b);
  return { p50: took[rounds >> 1] ?? 0, p99: took[Math.floor(rounds * 0.99)] ?? 0 };
}

interface Figures {
  readonly startMs: number;
  readonly memory: number;
  readonly read: { p50: number; p99: number };
  readonly create: { p50: number; p99: number };
}

async function at(records: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "brume-scale-"));
  try {
    const domains = records / each;
    await fill(folder, domains, each);
    // The second start finds the files in the page cache, as a restart does.
    await (await startBrume(folder)).stop();
    const brume = await startBrume(folder);
    const memory = brume.program.memory();
    // Ids far apart, so that no index page and no cached response is used twice in a row.
    const any = (i: number, of: number) => ((i * 7919) % of) + 1;
    const read = await measure((i) => send(brume, "GET", `/dns/record/${any(i, records)}`));
    const create = await measure((i) =>
      send(
        brume,
        "POST",
        "/dns/recorda",
        JSON.stringify({ DomainId: any(i, domains), Name: `new-${i}`, IP: "192.0.2.1" }),
      ),
    );
    await brume.stop();
    return { startMs: brume.startMs, memory, read, create };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const show = (records: number, { startMs, memory, read, create }: Figures) => ({
  "start ms": Math.round(startMs),
  "memory MB": Math.round(memory),
  "read p50 ms": read.p50.toFixed(3),
  "read p99 ms": read.p99.toFixed(3),
  "create p50 ms": create.p50.toFixed(3),
  "create p99 ms": create.p99.toFixed(3),
  records,
});

const small = await at(10_000);
const middle = await at(100_000);
const large = await at(1_000_000);
console.table([show(10_000, small), show(100_000, middle), show(1_000_000, large)]);
console.table({
  "1,000,000 records of 10,000: read, median": (large.read.p50 / small.read.p50).toFixed(2),
  "1,000,000 records of 10,000: create, median": (large.create.p50 / small.create.p50).toFixed(2),
});
