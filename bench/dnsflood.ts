/**
 * Measures what a flood of DNS queries does to others: a known name every 10 ms and a create through the API every 20 ms, without a flood,
 * with 120,000 random missing names per second, and with as many random existing names. Knot gets the same flood in the same run.
 * `npm run bench -- dnsflood [queries per second]`
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
  return spawn(process.execPath, [program, ...args], { stdio: ["ignore", "pipe", "ignore"] });
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

const at = (sorted: readonly number[], part: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(2);

async function measure(address: string, brume: Brume | null, kind: (typeof floods)[number] | null) {
  const dnsClient = await openDnsClient(address);
  const floodProcess = kind === null ? null : flood(address.slice(address.lastIndexOf(":") + 1), kind);
  let text = "";
  floodProcess?.stdout?.on("data", (chunk) => {
    text += chunk;
  });
  const flooded = floodProcess && new Promise((resolve) => floodProcess.once("close", resolve));
  await sleep(1500);
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
    "flood/s": Math.round(Number(text) / (seconds + 3)),
    "DNS p50 ms": at(dns, 0.5),
    "DNS p99 ms": at(dns, 0.99),
    lost,
    "POST p50 ms": api === null ? "-" : at(api, 0.5),
    "POST p99 ms": api === null ? "-" : at(api, 0.99),
  };
}

const reason = missing("knotd");
if (reason !== null) {
  console.log(`no comparison: ${reason}`);
  process.exit();
}
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
const knot = await startKnot(zones);
const rows: Record<string, unknown> = {};
for (const kind of [null, ...floods]) {
  const title = kind === null ? "no flood" : `random ${kind} names`;
  rows[`Knot, ${title}`] = await measure(knot.address, null, kind);
  rows[`built in, ${title}`] = await measure(`127.0.0.1:${brume.dnsPort}`, brume, kind);
}
console.table(rows);
agent.destroy();
await knot.close();
await brume.stop();
rmSync(folder, { recursive: true, force: true });
