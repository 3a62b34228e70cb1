/**
 * Measures the built-in name server and the cost of changes. It compares the server with Knot, with the same zone on the same core in
 * the same run, because only the ratio is meaningful on a host of unknown speed. Exits with 1 if queries cost too much compared with Knot.
 * `npm run bench -- dns [seconds per round [few|existing|missing]]`.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { readFile, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { createBuiltin } from "../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver, ZoneChange } from "../service/src/drivers/nameserver/interface.ts";
import { startKnot } from "../test/dns/knot.ts";
import { openDnsClient, query, target } from "../test/support/dnsclient.ts";
import { image, SOA, set } from "../test/support/zone.ts";
import { type Line, report } from "./lib/figures.ts";

const NAMES = 10_000;
const MANY = 1_000_000;
const ROUNDS = 6;
/** Queries for each second of processor time, compared with Knot. */
const WANTED = 0.8;
const [mode = "1.5", ...args] = process.argv.slice(2);
const run = promisify(execFile);

const zone = image("example.com", 1, [
  set("example.com", "NS", "ns1.example.com"),
  set("ns1.example.com", "A", "192.0.2.1"),
  ...Array.from({ length: NAMES }, (_, i) => set(`n${i}.example.com`, "A", `10.0.${i >> 8}.${i & 255}`)),
]);

/** Zone and query names of one comparison. */
interface Scenario {
  readonly title: string;
  readonly zone: () => ZoneChange;
  readonly names: () => string[];
}

const few = (): string[] => Array.from({ length: NAMES }, (_, i) => `n${(i * 7919) % NAMES}.example.com`);
/** Returns each name once, in a mixed order: 7,919 and the number of names have no common factor. */
const spread = (letter: string) => (): string[] =>
  Array.from({ length: MANY }, (_, i) => `${letter}${(i * 7919 + 17) % MANY}.example.com`);
const large = (): ZoneChange =>
  image("example.com", 1, [
    set("example.com", "NS", "ns1.example.com"),
    set("ns1.example.com", "A", "192.0.2.1"),
    ...Array.from({ length: MANY }, (_, i) =>
      set(`n${i}.example.com`, "A", `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`),
    ),
  ]);
const scenarios: Readonly<Record<string, Scenario>> = {
  few: { title: `${NAMES} names again and again`, zone: () => zone, names: few },
  existing: { title: `random existing names of ${MANY}`, zone: large, names: spread("n") },
  missing: { title: `random missing names in a zone of ${MANY}`, zone: large, names: spread("m") },
};

const openServer = (): Promise<Nameserver> =>
  createBuiltin({
    host: "127.0.0.1",
    port: 0,
    rateLimit: 0,
    transfer: { addresses: ["127.0.0.1"], keys: [], notify: [] },
    log: (level, message, detail) => console.error(level, message, detail),
  });

const exists = (command: string): Promise<boolean> =>
  run("sh", ["-c", `command -v ${command}`]).then(
    () => true,
    () => false,
  );

const pinned = availableParallelism() > 1 && (await exists("taskset"));
/** Starts a command on one core: that of the server or that of the load. */
const onCore = (core: 0 | 1): string[] => (pinned ? ["taskset", "-c", String(core)] : []);

interface Subject {
  readonly name: string;
  readonly address: string;
  readonly pid: number;
  close(): Promise<void>;
}

function startSelf(core: 0 | 1, ...rest: string[]): ChildProcess {
  const [command = "", ...list] = [...onCore(core), process.execPath, import.meta.filename, ...rest];
  return spawn(command, list, { stdio: ["pipe", "pipe", "inherit"] });
}

async function startOurs(scenario: string): Promise<Subject> {
  const child = startSelf(0, "serve", scenario);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const address = await new Promise<string>((resolve) => lines.once("line", resolve));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return { name: "built in", address, pid: child.pid ?? 0, close: () => (child.stdin?.end(), ended) };
}

interface Load {
  readonly rate: number;
  readonly lost: number;
}

async function load(address: string, seconds: number, names = few()): Promise<Load> {
  if (!(await exists("dnsperf"))) {
    const child = startSelf(1, "load", address, String(seconds));
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    return JSON.parse(await new Promise<string>((resolve) => lines.once("line", resolve))) as Load;
  }
  const file = join(tmpdir(), `brume-bench-${process.pid}.txt`);
  await writeFile(file, names.map((name) => `${name} A\n`).join(""));
  const { host, port } = target(address);
  const options = ["-s", host, "-p", port, "-d", file, "-l", String(seconds), "-c", "10", "-q", "200"];
  const [command = "", ...list] = [...onCore(1), "dnsperf", ...options];
  const { stdout } = await run(command, list);
  await rm(file, { force: true });
  const figure = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? Number.NaN);
  return { rate: figure(/Queries per second:\s+([\d.]+)/), lost: figure(/Queries lost:\s+(\d+)/) };
}

/** Returns the CPU time of all threads of a process, in seconds. */
async function cpuOf(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "latin1")).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Returns the comparison by processor time; nothing without Knot. */
async function compareServers(seconds: number, key: string): Promise<Line[]> {
  const { title, names: namesOf, zone: zoneOf } = scenarios[key] as Scenario;
  const knot = (await exists("knotd")) ? { name: "Knot", ...(await startKnot([zoneOf()], onCore(0))) } : null;
  const ours = await startOurs(key);
  const names = namesOf();
  const subjects: Subject[] = knot === null ? [ours] : [knot, ours];
  const results = new Map<string, { rates: number[]; costs: number[]; lost: number }>();
  // Alternating, so that other work of the host affects both; the best round of each counts.
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, address, pid } of subjects) {
      const before = await cpuOf(pid);
      const { rate, lost } = await load(address, seconds, names);
      const result = results.get(name) ?? { rates: [], costs: [], lost: 0 };
      result.rates.push(rate);
      result.costs.push((((await cpuOf(pid)) - before) / (rate * seconds)) * 1e6);
      results.set(name, { ...result, lost: result.lost + lost });
    }
  }
  for (const subject of subjects) await subject.close();
  const best = results.get("Knot");
  const cheapest = (name: string): number => Math.min(...(results.get(name)?.costs ?? []));
  const rows = [...results].map(([server, { rates, costs, lost }]) => ({
    server,
    "queries/s": Math.round(Math.max(...rates)),
    "to Knot": best === undefined ? "-" : (Math.max(...rates) / Math.max(...best.rates)).toFixed(2),
    "CPU us/query": Math.min(...costs).toFixed(1),
    "CPU to Knot": best === undefined ? "-" : (cheapest("Knot") / cheapest(server)).toFixed(2),
    lost,
  }));
  console.log(`${title}, ${pinned ? "one core each for server and load" : "not pinned"}, best of ${ROUNDS}`);
  console.table(rows);
  if (knot === null) {
    console.log("knotd is not installed: no comparison");
    return [];
  }
  const value = cheapest("Knot") / cheapest(ours.name);
  return [{ what: `${title}: by processor time, part of Knot`, value, limit: WANTED, unit: "", atLeast: true }];
}

const quantile = (sorted: Float64Array, q: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] as number).toFixed(2);

async function measureVisibility(): Promise<void> {
  const server = await openServer();
  await server.publish([zone]);
  const { host, port } = target((await server.observe()).address);
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.connect(Number(port), host, resolve));
  const times = new Float64Array(NAMES);
  let misses = 0;
  for (let i = 0; i < NAMES; i++) {
    const bytes = [11, i >> 16, (i >> 8) & 255, i & 255];
    const change = { zone: "example.com", base: i + 1, serial: i + 2, soa: SOA };
    const started = performance.now();
    await server.publish([{ ...change, sets: [set(`n${i % 100}.example.com`, "A", bytes.join("."))] }]);
    times[i] = performance.now() - started;
    const answer = await new Promise<Buffer>((resolve) => {
      socket.once("message", resolve);
      socket.send(query(`n${i % 100}.example.com`, 1, { edns: 0 }));
    });
    if (!answer.subarray(-4).equals(Buffer.from(bytes))) misses++;
  }
  times.sort();
  console.log(
    `publish, then query at once: ${NAMES} times, ${misses} misses; publish ms p50 ${quantile(times, 0.5)}, p99 ${quantile(times, 0.99)}`,
  );
  socket.close();
  await server.close();
}

async function measureChanges(seconds: number): Promise<void> {
  const server = await openServer();
  await server.publish([zone]);
  const { address } = await server.observe();
  const loading = load(address, seconds + 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  let serial = 1;
  let refused = 0;
  const cpu = process.threadCpuUsage();
  const started = performance.now();
  while (performance.now() - started < seconds * 1000) {
    const calls: Promise<readonly number[]>[] = [];
    for (let i = 0; i < 100; i++) {
      const sets = [set(`n${serial % NAMES}.example.com`, "A", `10.9.${(serial >> 8) & 255}.${serial & 255}`)];
      calls.push(server.publish([{ zone: "example.com", base: serial, serial: ++serial, soa: SOA, sets }]));
    }
    for (const served of await Promise.all(calls)) if (served.length !== 1) refused++;
    const ahead = serial / 10 - (performance.now() - started);
    if (ahead > 1) await new Promise((resolve) => setTimeout(resolve, ahead));
  }
  const took = (performance.now() - started) / 1000;
  const { user, system } = process.threadCpuUsage(cpu);
  const { rate } = await loading;
  const [status] = (await server.observe()).zones;
  console.log(
    `changes of one set while ${Math.round(rate)} queries/s are served: ${Math.round((serial - 1) / took)}/s, ` +
      `${((user + system) / (serial - 1)).toFixed(1)} us of the main thread each, serial ${status?.serial === serial ? "as sent" : "WRONG"}, ${refused} refused`,
  );
  await server.close();
}

/** Sends a query every 10 ms until `ended`. Returns the response times in milliseconds, in ascending order. */
async function probe(address: string, ended: Promise<unknown>): Promise<Float64Array> {
  const dnsClient = await openDnsClient(address);
  const times: number[] = [];
  let isRunning = true;
  void ended.finally(() => {
    isRunning = false;
  });
  while (isRunning) {
    const before = performance.now();
    if ((await dnsClient.exchange(query("ns1.example.com", 1), 10_000)) === null) throw new Error("no response");
    times.push(performance.now() - before);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  dnsClient.close();
  return Float64Array.from(times).sort();
}

/** Measures queries while a zone of a million records is transferred, by Knot's tool and with Knot in the same run. */
async function measureTransfer(): Promise<void> {
  const knot = (await exists("knotd"))
    ? {
        name: "Knot",
        ...(await startKnot([large()], onCore(0), {
          config: "acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n",
          zone: "    acl: all\n",
        })),
      }
    : null;
  for (const subject of [knot, await startOurs("existing")]) {
    if (subject === null) continue;
    const { host, port } = target(subject.address);
    const quiet = await probe(subject.address, new Promise((resolve) => setTimeout(resolve, 3000)));
    const before = performance.now();
    const argv = [...onCore(1), "dig", "-p", port, `@${host}`, "example.com", "AXFR", "+noall", "+stats"];
    const transferred = run(argv[0] as string, argv.slice(1));
    const busy = await probe(subject.address, transferred);
    const took = (performance.now() - before) / 1000;
    const size = /XFR size: (\d+) records/.exec((await transferred).stdout)?.[1];
    console.log(
      `${subject.name}: ${size} records transferred in ${took.toFixed(1)} s; queries ms p50 ${quantile(busy, 0.5)} (${quantile(quiet, 0.5)} before), longest ${quantile(busy, 1)} (${quantile(quiet, 1)})`,
    );
    await subject.close();
  }
}

async function measureSize(zones: number, perZone: number): Promise<void> {
  const child = startSelf(0, "size", String(zones), String(perZone));
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) console.log(line);
}

async function reportSize(zones: number, perZone: number): Promise<void> {
  const megabytes = (): number => process.memoryUsage.rss() / 2 ** 20;
  const empty = megabytes();
  const server = await openServer();
  const started = performance.now();
  for (let from = 0; from < zones; from += 100) {
    const images: ZoneChange[] = [];
    for (let i = from; i < Math.min(zones, from + 100); i++) {
      const sets = Array.from({ length: perZone }, (_, j) =>
        set(`host-${j}.zone${i}.example`, "A", `10.0.${(j >> 8) & 255}.${j & 255}`),
      );
      images.push(image(`zone${i}.example`, 1, sets));
    }
    await server.publish(images);
  }
  const loaded = (performance.now() - started) / 1000;
  const dnsClient = await openDnsClient((await server.observe()).address);
  const count = 2000;
  const times = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const name = `zone${(i * 7919) % zones}.example`;
    const at = Math.floor(i / zones);
    const change = {
      zone: name,
      base: 1 + at,
      serial: 2 + at,
      soa: SOA,
      sets: [set(`new-${i}.${name}`, "A", "192.0.2.1")],
    };
    const before = performance.now();
    const [serial] = await server.publish([change]);
    times[i] = performance.now() - before;
    if (serial !== change.serial) throw new Error(`change ${i} was not applied`);
  }
  await dnsClient.exchange(query("new-1.zone1.example", 1));
  times.sort();
  console.log(
    `${zones} zones, ${zones * perZone} records: loaded in ${loaded.toFixed(1)} s, process ${Math.round(megabytes())} MB (empty ${Math.round(empty)} MB); ` +
      `change of one set ms p50 ${quantile(times, 0.5)}, p99 ${quantile(times, 0.99)}, most ${quantile(times, 1)}`,
  );
  dnsClient.close();
  await server.close();
}

/** Load for hosts without dnsperf: keeps a window of queries full. */
async function generate(address: string, seconds: number): Promise<Load> {
  const { host, port } = target(address);
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.connect(Number(port), host, resolve));
  const packets = Array.from({ length: NAMES }, (_, i) => query(`n${i}.example.com`, 1, { edns: 0 }));
  let sent = 0;
  let received = 0;
  const sendQuery = (): void => socket.send(packets[sent++ % NAMES] as Buffer);
  socket.on("message", () => {
    received++;
    sendQuery();
  });
  for (let i = 0; i < 200; i++) sendQuery();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  socket.removeAllListeners("message").close();
  return { rate: received / seconds, lost: Math.max(0, sent - received - 200) };
}

if (mode === "serve") {
  const server = await openServer();
  await server.publish([(scenarios[args[0] ?? "few"] as Scenario).zone()]);
  console.log((await server.observe()).address);
  process.stdin.on("end", () => void server.close()).resume();
} else if (mode === "load") {
  console.log(JSON.stringify(await generate(args[0] ?? "", Number(args[1]))));
} else if (mode === "size") {
  await reportSize(Number(args[0]), Number(args[1]));
} else if (mode === "transfer") {
  await measureTransfer();
} else {
  const seconds = Number(mode);
  const lines: Line[] = [];
  for (const key of args.length > 0 ? args : Object.keys(scenarios))
    lines.push(...(await compareServers(seconds, key)));
  if (args.length === 0) {
    await measureVisibility();
    await measureChanges(seconds);
    await measureTransfer();
    await measureSize(1_000, 100);
    await measureSize(10_000, 100);
  }
  // Without Knot nothing has a limit.
  if (lines.length > 0) process.exitCode = report(lines) ? 0 : 1;
}
