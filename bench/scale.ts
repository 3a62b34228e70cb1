/**
 * Measures the cost of many records: time from the start to the first DNS answer and to ready, memory, and whether a read and a create take
 * as long with 1,000,000 as with 10,000. Requests are sequential on one connection. Exits with 1 if a limit is missed. `npm run bench -- scale`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Brume, startBrume } from "./lib/brume.ts";
import { report } from "./lib/figures.ts";
import { fill } from "./lib/fill.ts";

const each = 100;
/** Starts from saved zones; the fastest counts. */
const starts = 4;
const rounds = 4000;
const warmUp = 2000;
/** Parts of the requests of a kind: that with the lowest median counts, because other programs slow a host down for seconds. */
const parts = 4;

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
  for (let i = 0; i < warmUp; i++) await act(i);
  let best = { p50: Infinity, p99: Infinity };
  for (let part = 0; part < parts; part++) {
    const took: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const begun = performance.now();
      await act(warmUp + part * rounds + i);
      took.push(performance.now() - begun);
    }
    took.sort((a, b) => a - b);
    const p50 = took[rounds >> 1] ?? 0;
    if (p50 < best.p50) best = { p50, p99: took[Math.floor(rounds * 0.99)] ?? 0 };
  }
  return best;
}

/** A start, in milliseconds and processor time of the process. */
type Start = Pick<Brume, "startMs" | "startProcessor" | "dnsMs" | "dnsProcessor">;

interface Figures {
  /** The first start, which reads all records. */
  readonly first: Start;
  /** The fastest of the later ones, which serve saved zones. */
  readonly start: Start;
  readonly memory: number;
  readonly read: { p50: number; p99: number };
  readonly create: { p50: number; p99: number };
}

async function at(records: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "brume-scale-"));
  try {
    const domains = records / each;
    await fill(folder, domains, each);
    const name = `h${each - 1}.zone-${domains - 1}.example`;
    const first = await startBrume(folder, {}, name);
    await first.stop();
    let brume = await startBrume(folder, {}, name);
    let start: Start = brume;
    for (let round = 1; round < starts; round++) {
      await brume.stop();
      brume = await startBrume(folder, {}, name);
      if (brume.dnsMs < start.dnsMs) start = brume;
    }
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
    return { first, start, memory, read, create };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const showStart = ({ dnsMs, dnsProcessor, startMs, startProcessor }: Start): string =>
  `${Math.round(dnsMs)} (${dnsProcessor}), ${Math.round(startMs)} (${startProcessor})`;

const show = (records: number, { first, start, memory, read, create }: Figures) => ({
  "first start: DNS, ready; ms (processor)": showStart(first),
  "later starts": showStart(start),
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
const isKept = report([
  { what: "100,000 records: start to the first DNS answer", value: middle.start.dnsMs, limit: 500, unit: "ms" },
  { what: "100,000 records: start to ready", value: middle.start.startMs, limit: 1000, unit: "ms" },
  { what: "1,000,000 records: start to the first DNS answer", value: large.start.dnsMs, limit: 2000, unit: "ms" },
  { what: "1,000,000 records: start to ready", value: large.start.startMs, limit: 3000, unit: "ms" },
  { what: "1,000,000 records: memory after the start", value: large.memory, limit: 300, unit: "MB" },
  { what: "read, 1,000,000 compared with 10,000", value: large.read.p50 / small.read.p50, limit: 1.5, unit: "times" },
  {
    what: "create, 1,000,000 compared with 10,000",
    value: large.create.p50 / small.create.p50,
    limit: 1.5,
    unit: "times",
  },
]);
process.exitCode = isKept ? 0 : 1;
