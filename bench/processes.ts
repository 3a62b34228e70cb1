/**
 * Compares the service as one process with the service as agent and control plane: milliseconds from the start to the first response of
 * the API, CPU time of all processes until then, and their memory (PSS) a few seconds later. Each run has network, mount and process
 * namespaces of its own, with real engines and a new data folder. The second start is measured, when compiled code is cached. It runs the
 * built service, as `npm start` does. Then it compares requests: CPU time of all processes for each, which other work of the host changes
 * less than the time on the clock. Both kinds alternate, and the two runs of a round are compared; the result is the median of the rounds.
 * It fails if a limit is missed. `npm run bench -- processes`, or with the number of rounds: `npm run bench -- processes 5`, as root.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { medianOf } from "./lib/figures.ts";

interface Figures {
  readonly first: number;
  readonly cpu: number;
  readonly memory: number;
  /** Memory after the very first start, when no compiled code is cached. */
  readonly firstMemory: number;
  /** CPU time in microseconds of one request that reads a list, and of one that creates a record. */
  readonly read: number;
  readonly write: number;
}

const [role = "3", processes = ""] = process.argv.slice(2);
/** Requests of each kind; their CPU time is counted in units of 10 ms. */
const requests = 700;
if (role === "run") {
  console.log(JSON.stringify(await measure(processes)));
  process.exit();
}
if (process.getuid?.() !== 0) throw new Error("it needs root");
const space = ["--net", "--mount", "--pid", "--fork", "--mount-proc"];
const enter = 'ip link set lo up; mount -t tmpfs none /run; mkdir /run/netns; exec "$0" "$@"';
const all: Record<string, Figures[]> = { "1": [], "2": [] };
for (let round = 0; round < Number(role); round++)
  for (const [kind, figures] of Object.entries(all)) {
    const argv = [...space, "sh", "-c", enter, process.execPath, import.meta.filename, "run", kind];
    const { stdout, stderr } = spawnSync("unshare", argv, { encoding: "utf8" });
    const last = stdout.trim().split("\n").at(-1) ?? "";
    if (!last.startsWith("{")) throw new Error(stderr);
    figures.push(JSON.parse(last) as Figures);
  }
const median = (kind: string, of: keyof Figures): number => medianOf((all[kind] ?? []).map((one) => one[of]));
/** Compares the two runs of each round, which met the same other work of the host. */
const pairs = (of: keyof Figures, compare: (one: number, two: number) => number): number[] =>
  (all["1"] ?? []).map((one, round) => compare(one[of], all["2"]?.[round]?.[of] ?? Number.NaN));
const difference = (of: keyof Figures): number[] => pairs(of, (one, two) => two - one);
const ratio = (of: keyof Figures): number[] => pairs(of, (one, two) => two / one);
/** Shows the median, and the least and the largest of all rounds. */
const show = (values: readonly number[], digits: number): string =>
  `${medianOf(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`;
console.log(`processes of the service, median of ${role} rounds, with the range of the rounds`);
console.table(
  Object.fromEntries(
    (["first", "cpu", "memory", "firstMemory", "read", "write"] as const).map((of) => [
      {
        first: "first response, ms",
        cpu: "CPU time until then, ms",
        memory: "memory, MB",
        firstMemory: "memory after the very first start, MB",
        read: "CPU time of a read, µs",
        write: "CPU time of a write, µs",
      }[of],
      {
        "one process": median("1", of).toFixed(0),
        "two processes": median("2", of).toFixed(0),
        difference: show(difference(of), 0),
        ratio: show(ratio(of), 2),
      },
    ]),
  ),
);

/** What two processes may cost: milliseconds, megabytes, and ratios of CPU time. */
const limits = [
  { name: "first response", value: medianOf(difference("first")), most: 300 },
  { name: "memory", value: medianOf(difference("memory")), most: 60 },
  { name: "CPU time of a read, ratio", value: medianOf(ratio("read")), most: 1.05 },
  { name: "CPU time of a write, ratio", value: medianOf(ratio("write")), most: 1.05 },
];
for (const { name, value, most } of limits)
  console.log(`${value <= most ? "kept  " : "MISSED"} ${name}: ${value.toFixed(2)}, at most ${most}`);
if (limits.some(({ value, most }) => !(value <= most))) process.exitCode = 1;

/** Starts the service twice and measures the second start. */
async function measure(kind: string): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "brume-bench-"));
  try {
    const { memory } = await start(kind, folder, false);
    return { ...(await start(kind, folder, true)), firstMemory: memory };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts the service and measures it; `sends`: also the cost of requests, whose names are not used twice in one folder. */
async function start(kind: string, folder: string, sends: boolean): Promise<Omit<Figures, "firstMemory">> {
  const environment = {
    ...process.env,
    NODE_COMPILE_CACHE: join(folder, "compiled"),
    BRUME_DATA: folder,
    BRUME_PROCESSES: kind,
    BRUME_LISTEN: "127.0.0.1:18080",
    BRUME_DNS_LISTEN: "127.0.0.1:15353",
  };
  const begun = performance.now();
  const child = spawn(process.execPath, [join(import.meta.dirname, "../service/dist/main.js")], {
    env: environment,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  while (!(await fetch("http://127.0.0.1:18080/readyz").catch(() => null))) await sleep(5);
  const first = performance.now() - begun;
  const cpu = sum(cpuOf);
  await sleep(4000);
  const memory = sum(memoryOf);
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  const send = async (path: string, body?: object): Promise<void> => {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
    const sent = { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) };
    const response = await fetch(`http://127.0.0.1:18080${path}`, sent);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 200)}`);
  };
  /** Returns the CPU time of one call in microseconds. */
  const costOf = async (call: (at: number) => Promise<void>): Promise<number> => {
    for (let at = 0; at < requests / 4; at++) await call(-1 - at);
    const before = sum(cpuOf);
    for (let at = 0; at < requests; at++) await call(at);
    return ((sum(cpuOf) - before) * 1000) / requests;
  };
  const read = sends ? await costOf(() => send("/server")) : 0;
  const write = sends ? await costOf((at) => send("/dns", { Name: `d${at + requests}.example` })) : 0;
  child.kill("SIGTERM");
  await ended;
  return { first, cpu, memory, read, write };
}

/** Sums a figure over the processes of the service, without the engines. */
function sum(figureOf: (pid: string) => number): number {
  let total = 0;
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
    try {
      if (readlinkSync(`/proc/${pid}/exe`) === process.execPath) total += figureOf(pid);
    } catch {
      // It has ended.
    }
  }
  return total;
}
function memoryOf(pid: string): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1024;
}
/** User and system time, also of children that have ended, in milliseconds. */
function cpuOf(pid: string): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, 15).reduce((total, ticks) => total + Number(ticks) * 10, 0);
}
