/**
 * Measures what a flood of DNS queries does to others: a known name every 10 ms and a create through the API every 20 ms, without a flood,
 * with 120,000 random missing names per second, and with as many random existing names. Knot gets the same flood in the same run. Exits
 * with 1 if a limit is missed, also if the host was too busy to send the flood. `npm run bench -- dnsflood [queries per second]`
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startKnot } from "../test/dns/knot.ts";
import { openDnsClient, query } from "../test/support/dnsclient.ts";
import { image, set } from "../test/support/zone.ts";
import { type Brume, startBrume } from "./lib/brume.ts";
import { type Line, report } from "./lib/figures.ts";
import { fill } from "./lib/fill.ts";
import { missing } from "./lib/process.ts";

const rate = Number(process.argv[2] ?? 120_000);
const seconds = 4;
const each = 1000;
const domains = 100;

const folder = mkdtempSync(join(tmpdir(), "brume-flood-"));
const floods = ["missing", "existing"] as const;

function flood(port: string, kind: (typeof floods)[number]): ChildProcess {
  const program = join(import.meta.dirname, "lib/dnssend.ts");
  const args = [port, rate, seconds + 3, kind, domains, each].map(String);
  return spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let created = 0;

function create(brume: Brume): Promise<void> {
  const body = JSON.stringify({ DomainId: 1 + (created % domains), Name: `new-${created++}`, IP: "192.0.2.1" });
  const headers = { authorization: `Bearer ${brume.token}` };
  return new Promise((resolve, reject) => {
    const sent = request(`${brume.url}/dns/recorda`, { agent, method: "POST", headers }, (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`a create returned ${response.statusCode}`));
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Repeats a call until `end`. Returns the milliseconds of each call, in ascending order. */
async function times(pause: number, end: number, act: () => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  while (performance.now() < end) {
    const before = performance.now();
    await act();
    took.push(performance.now() - before);
    await sleep(pause);
  }
  return took.sort((a, b) => a - b);
}

const at = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;

/** Queries per second that were sent, and the waits of the measured requests in milliseconds. */
interface Figures {
  readonly flood: number;
  readonly dns: { readonly median: number; readonly p99: number; readonly lost: number; readonly count: number };
  readonly api: { readonly median: number; readonly p99: number };
}

async function measure(address: string, brume: Brume | null, kind: (typeof floods)[number] | null): Promise<Figures> {
  const dnsClient = await openDnsClient(address);
  const floodProcess = kind === null ? null : flood(address.slice(address.lastIndexOf(":") + 1), kind);
  let text = "";
  floodProcess?.stdout?.on("data", (chunk) => {
    text += chunk;
  });
  const flooded = floodProcess && new Promise((resolve) => floodProcess.once("close", resolve));
  // The queries are composed before the first is sent, which takes seconds on a busy host.
  if (floodProcess !== null)
    await Promise.race([flooded, new Promise((resolve) => floodProcess.stderr?.once("data", resolve))]);
  await sleep(500);
  const end = performance.now() + seconds * 1000;
  let lost = 0;
  const queries = times(10, end, async () => {
    if ((await dnsClient.exchange(query("h1.zone-1.example", 1), 1000)) === null) lost++;
  });
  const creating = brume === null ? null : times(20, end, () => create(brume));
  const [dns, api] = await Promise.all([queries, creating]);
  await flooded;
  dnsClient.close();
  return {
    flood: Number(text) / (seconds + 3),
    dns: { median: at(dns, 0.5), p99: at(dns, 0.99), lost, count: dns.length },
    api: { median: at(api ?? [], 0.5), p99: at(api ?? [], 0.99) },
  };
}

const reason = missing("knotd");
if (reason !== null) console.log(`no comparison: ${reason}`);
const data = join(folder, "data");
await fill(data, domains, each);
const brume = await startBrume(data);
const zones = Array.from({ length: domains }, (_, i) =>
  image(
    `zone-${i}.example`,
    1,
    Array.from({ length: each }, (_, j) => set(`h${j}.zone-${i}.example`, "A", "192.0.2.1")),
  ),
);
const knot = reason === null ? await startKnot(zones) : null;
const rows: Record<string, unknown> = {};
const show = (name: string, { flood, dns, api }: Figures): void => {
  rows[name] = {
    "flood/s": Math.round(flood),
    "DNS p50 ms": dns.median.toFixed(2),
    "DNS p99 ms": dns.p99.toFixed(2),
    lost: dns.lost,
    "POST p50 ms": api.median.toFixed(2),
    "POST p99 ms": api.p99.toFixed(2),
  };
};
const lines: Line[] = [];
let quiet = Number.NaN;
for (const kind of [null, ...floods]) {
  const title = kind === null ? "no flood" : `random ${kind} names`;
  if (knot !== null) show(`Knot, ${title}`, await measure(knot.address, null, kind));
  const ours = await measure(`127.0.0.1:${brume.dnsPort}`, brume, kind);
  show(`built in, ${title}`, ours);
  if (kind === null) quiet = ours.api.median;
  else
    lines.push(
      {
        what: `${title}: part of the flood that was sent`,
        value: ours.flood / rate,
        limit: 0.9,
        unit: "",
        atLeast: true,
      },
      { what: `${title}: DNS, lost queries`, value: (100 * ours.dns.lost) / ours.dns.count, limit: 1, unit: "%" },
      { what: `${title}: DNS, median`, value: ours.dns.median, limit: 2, unit: "ms" },
      {
        what: `${title}: POST, median compared with no flood`,
        value: ours.api.median / quiet,
        limit: 2,
        unit: "times",
      },
    );
}
console.table(rows);
process.exitCode = report(lines) ? 0 : 1;
agent.destroy();
await knot?.close();
await brume.stop();
rmSync(folder, { recursive: true, force: true });
