/**
 * Measures whether costs grow with what exists: an installation with a zone of 1,000,000 records, 20,000 simulated servers, 5,000 networks
 * and 1,000,000 events, compared with 1 % of it, and what large reads cost the requests beside them. Prints a table and exits with 1 if a
 * limit is missed. `npm run bench -- size`; `npm run bench -- size 10` measures with 10 % instead of 100 %, and
 * `npm run bench -- size 10 postgres` on PostgreSQL. Without arguments the table also contains the limits of the benchmarks that compare
 * with something else: names with Knot, floods, PostgreSQL with SQLite, starts, and a firewall with nft.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../test/support/postgresserver.ts";
import { type Brume, startBrume } from "./lib/brume.ts";
import { type Line, medianOf, mostOf, report } from "./lib/figures.ts";
import { measureOthers } from "./lib/others.ts";
import { type Cost, type Response, send, startProber, type Turns, transferZone } from "./lib/probe.ts";
import { idleMemory, processorTime } from "./lib/process.ts";
import { fillSize, type Size, settings } from "./lib/sizefill.ts";
import { measureGrowth } from "./lib/sizegrow.ts";
import { type ListCosts, measureLists } from "./lib/sizelists.ts";
import { measurePages, reads } from "./lib/sizereads.ts";

const largest = Number(process.argv[2] ?? 100);
const isPostgres = process.argv[3] === "postgres";
const scales = [1, 10, 100].filter((scale) => scale <= largest);
const sizeOf = (scale: number): Size => ({
  records: scale * 10_000,
  servers: scale * 200,
  networks: scale * 50,
  events: scale * 10_000,
});

/** Numbers of requests: those of each kind together take longer than the checks in the background. */
const changes = 300;
const newNetworks = 600;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const json = { "content-type": "application/json" };
/** A response that the cache does not have. */
const uncached = { prefer: "handling=strict" };

interface Figures {
  readonly startMs: number;
  readonly dnsMs: number;
  readonly quietMs: number;
  readonly memory: number;
  readonly reads: ReadonlyMap<string, Cost<Response>>;
  /** Milliseconds by name of the change. */
  readonly changes: ReadonlyMap<string, number>;
  readonly lists: ListCosts;
  readonly firewall: number;
  readonly waits: { readonly p99: number; readonly most: number; readonly dns: number };
  readonly turns: Turns;
  /** MB when the service is idle again after all. */
  readonly memoryAfter: number;
  /** A transfer of the large zone by a secondary. */
  readonly transfer: Cost<unknown>;
}

/** Waits until only drift checks and samples remain, or a minute. Resolves to the milliseconds from the start until then. */
async function untilQuiet({ program, startMs }: Brume): Promise<number> {
  const { pid } = program.child;
  const begun = performance.now();
  for (let before = processorTime(pid); ; ) {
    await wait(1000);
    const now = processorTime(pid);
    const took = performance.now() - begun;
    if (now - before < 300 || took > 60_000) return startMs + took - 1000;
    before = now;
  }
}

async function at(scale: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "brume-size-"));
  const database = isPostgres ? await startPostgres([]) : null;
  const own = { ...settings, ...(database !== null && { BRUME_DATABASE: database.url }) };
  try {
    // The first start creates the schema and the shared network.
    await (await startBrume(folder, own)).stop();
    const filling = performance.now();
    await fillSize(folder, sizeOf(scale), database?.url ?? null);
    console.log(`${scale} %: filled in ${Math.round((performance.now() - filling) / 1000)} s`);
    const turns = join(folder, "turns");
    const monitor = { NODE_OPTIONS: `--import ${join(import.meta.dirname, "lib/turns.ts")}`, TURNS: turns };
    // The zones are read from the database once, and saved, and the networks are applied once.
    const earlier = await startBrume(folder, own);
    await untilQuiet(earlier);
    await earlier.stop();
    // It keeps all cores, as for a user: V8 collects garbage in several threads, which would take the only core from the main thread.
    const brume = await startBrume(folder, { ...own, ...monitor }, "h1.large.example", { isPinned: false });
    const quietMs = await untilQuiet(brume);
    const memory = await idleMemory(`${scale} %: after the start`, brume.program);
    const prober = await startProber(brume, "h1.large.example", turns);
    const all: Cost<unknown>[] = [];
    const measureQuietly = async <T>(act: () => Promise<T>): Promise<Cost<T>> => {
      const cost = await prober.measure(act);
      all.push(cost);
      return cost;
    };
    const measure = async <T>(name: string, act: () => Promise<T>): Promise<Cost<T>> => {
      const cost = await measureQuietly(act);
      const { http, dns } = cost.waits;
      console.log(
        `${scale} %: ${name}: ${cost.ms.toFixed(1)} ms, processor ${cost.processor} ms, memory +${cost.memory.toFixed(0)} MB, longest turn ${cost.turns.most} ms, longest wait ${mostOf(http).toFixed(1)} ms, DNS ${mostOf(dns).toFixed(1)} ms`,
      );
      return cost;
    };
    const idle = await measure("nothing for 10 s", () => wait(10_000));
    /** Returns the processor time without what the prober and the background cost in this time. */
    const ownTime = ({ processor, ms }: Cost<unknown>): number => processor - (idle.processor / idle.ms) * ms;
    /** Measures a read three times. Its memory is the median, because V8 enlarges its heap at times, without what an idle service fills. */
    const measureRead = async <T>(name: string, act: () => Promise<T>): Promise<Cost<T>> => {
      const costs = [await measure(name, act), await measure(name, act), await measure(name, act)] as const;
      const own = costs.map(({ memory, ms }) => Math.max(0, memory - (idle.memory / idle.ms) * ms));
      return { ...costs[0], memory: medianOf(own) };
    };
    const measured = new Map<string, Cost<Response>>();
    for (const { name, path, headers } of reads)
      measured.set(
        name,
        await measureRead(name, () => send(brume, "GET", path, { headers: { ...uncached, ...headers } })),
      );
    const transferred = await measureRead("transfer of the zone (AXFR)", () =>
      transferZone(brume.dnsPort, "large.example"),
    );
    if (transferred.result < sizeOf(scale).records) throw new Error(`${transferred.result} records were transferred`);
    const times = new Map<string, number>();
    const untilEnded = async (ids: readonly number[], state: "Active" | "gone"): Promise<void> => {
      for (const id of ids)
        for (;;) {
          const now = await send(brume, "GET", `/server/${id}`, { headers: uncached }).catch(() => null);
          if (
            state === "gone" ? now === null : (JSON.parse(now?.text ?? "{}") as { State?: string }).State === "Active"
          )
            break;
          await wait(20);
        }
    };
    const repeated = async (
      name: string,
      count: number,
      act: (index: number) => Promise<number>,
      after?: () => Promise<void>,
    ) => {
      const took: number[] = [];
      const cost = await measure(name, async () => {
        for (let index = 0; index < count; index++) took.push(await act(index));
        await after?.();
      });
      times.set(`${name}: response`, medianOf(took));
      times.set(`${name}: processor time`, ownTime(cost) / count);
    };
    for (const [name, { response, processor }] of await measurePages(brume, measureQuietly, ownTime)) {
      times.set(`${name}: response`, response);
      times.set(`${name}: processor time`, processor);
    }
    const created: number[] = [];
    const post = async (path: string, body: object) => {
      const response = await send(brume, "POST", path, { body, headers: json });
      return { ms: response.ms, answer: JSON.parse(response.text) as { ID: number } };
    };
    await repeated(
      "POST /server",
      changes,
      async (index) => {
        const { ms, answer } = await post("/server", { Name: `new-${index}`, CPU: 1, RAM: 128, HDD: 1 });
        created.push(answer.ID);
        return ms;
      },
      () => untilEnded(created, "Active"),
    );
    await repeated(
      "DELETE /server",
      changes,
      async (index) => (await send(brume, "DELETE", `/server/${created[index]}`)).ms,
      () => untilEnded(created, "gone"),
    );
    await repeated(
      "POST /server-batch of 100",
      10,
      async (index) => {
        const body = { Name: `batch-${index}-{n}`, Count: 100, CPU: 1, RAM: 128, HDD: 1 };
        return (await post("/server-batch", body)).ms;
      },
      async () => {
        for (;;) {
          const left = await send(brume, "GET", "/server?state=New&limit=1", { headers: uncached });
          if (left.text === "[]") break;
          await wait(100);
        }
      },
    );
    await repeated(
      "POST /publicnetwork",
      newNetworks,
      async (index) => (await post("/publicnetwork", { Name: `new-${index}` })).ms,
    );

    await repeated("import of 10 records into the zone", changes, async (index) => {
      const ZoneFile = Array.from({ length: 10 }, (_, at) => `new-${index}-${at} 300 IN A 192.0.2.1`).join("\n");
      return (await send(brume, "PUT", "/dns/1/zonefile", { body: { ZoneFile }, headers: json })).ms;
    });

    const Rules = Array.from({ length: 10_000 }, (_, index) => ({
      Name: `rule ${index}`,
      Action: "Allow",
      Protocol: "Tcp",
      Source: `198.${51 + (index >> 14)}.${(index >> 6) & 255}.0/24`,
      SourcePort: "any",
      Destination: "internal",
      DestinationPort: `${8000 + (index % 1000)}-${9000 + (index % 1000)}`,
    }));
    const firewall = await measure("PUT of 10,000 rules", () =>
      send(brume, "PUT", "/publicnetwork/2/firewall", { body: { Rules }, headers: json }).then(
        ({ status }) => status,
        () => 0,
      ),
    );

    const ZoneFile = Array.from({ length: 30_000 }, (_, index) => `i${index} 300 IN A 192.0.2.${index % 250}`).join(
      "\n",
    );
    await measure("import of 30,000 records", () =>
      send(brume, "POST", "/dns", { body: { Name: "import.example", ZoneFile }, headers: json }),
    );

    const lists = await measureLists(brume, measure, ownTime);
    prober.close(); // as after the start, nothing sends requests
    await wait(30_000); // V8 gives memory back when it has been idle for up to 25 s
    const memoryAfter = await idleMemory(`${scale} %: after all of this`, brume.program);
    const most = (pick: (cost: Cost<unknown>) => number) => mostOf(all.map(pick));
    const sum = (pick: (cost: Cost<unknown>) => number) => all.reduce((total, cost) => total + pick(cost), 0);
    const http = all.flatMap((cost) => cost.waits.http).sort((one, other) => one - other);
    const waits = {
      p99: http[Math.floor(http.length * 0.99)] ?? 0,
      most: mostOf(http),
      dns: most((cost) => mostOf(cost.waits.dns)),
    };
    await brume.stop();
    return {
      startMs: brume.startMs,
      dnsMs: brume.dnsMs,
      quietMs,
      memory,
      reads: measured,
      changes: times,
      lists,
      firewall: firewall.result,
      waits,
      turns: {
        most: most((cost) => cost.turns.most),
        blocked: sum((cost) => cost.turns.blocked),
        time: sum((cost) => cost.turns.time),
        others: most((cost) => cost.turns.others),
      },
      memoryAfter,
      transfer: transferred,
    };
  } finally {
    await database?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const measured: Figures[] = [];
for (const scale of scales) measured.push(await at(scale));
const [small] = measured;
const large = measured.at(-1);
if (small === undefined || large === undefined) throw new Error("the size must be 1 to 100");

console.table(
  Object.fromEntries(
    [...small.changes.keys(), ...reads.map(({ name }) => name)].map((name) => [
      name,
      Object.fromEntries(
        measured.map((figures, index) => [
          `${scales[index]} %, ms`,
          (figures.changes.get(name) ?? figures.reads.get(name)?.ms ?? 0).toFixed(2),
        ]),
      ),
    ]),
  ),
);

/** Measures the largest numbers from nothing, each on a new database. */
async function grow(kind: "servers" | "networks"): Promise<Line> {
  const databases: Awaited<ReturnType<typeof startPostgres>>[] = [];
  const open = async (): Promise<string | null> => {
    if (!isPostgres) return null;
    const server = await startPostgres([]);
    databases.push(server);
    return server.url;
  };
  try {
    const count = sizeOf(scales.at(-1) ?? 1)[kind];
    const { few, many } = await measureGrowth(kind, count, open);
    console.log(
      `${count} ${kind} from nothing: ${many.toFixed(1)} ms of processor time each, ${few.toFixed(1)} ms for a twentieth`,
    );
    return {
      what: `${count} ${kind} from nothing, each compared with a twentieth of them`,
      value: many / few,
      limit: 1.5,
      unit: "times",
    };
  } finally {
    for (const server of databases) await server.close();
  }
}

const lines: Line[] = [
  await grow("servers"),
  await grow("networks"),
  { what: "longest turn of the main thread, processor time", value: large.turns.most, limit: 100, unit: "ms" },
  { what: "longest turn of another thread, processor time", value: large.turns.others, limit: 100, unit: "ms" },
  {
    what: "time in which a request would wait 20 ms for a turn",
    value: (100 * large.turns.blocked) / large.turns.time,
    limit: 1,
    unit: "%",
  },
  { what: "longest wait of /healthz beside everything else", value: large.waits.most, limit: 100, unit: "ms" },
  { what: "99 % of these waits", value: large.waits.p99, limit: 20, unit: "ms" },
  { what: "longest wait of a DNS query", value: large.waits.dns, limit: 100, unit: "ms" },
  ...[...large.reads].map(([what, { memory }]) => ({
    what: `memory for: ${what}`,
    value: memory,
    limit: 20,
    unit: "MB",
  })),
  { what: "memory for: transfer of the zone (AXFR)", value: large.transfer.memory, limit: 20, unit: "MB" },
  {
    what: "longest wait of a DNS query beside a transfer",
    value: mostOf(large.transfer.waits.dns),
    limit: 100,
    unit: "ms",
  },
  ...[...small.changes].map(([name, before]) => ({
    what: `${name}, ${scales.at(-1)} % compared with 1 %`,
    value: (large.changes.get(name) ?? Number.NaN) / before,
    limit: 1.5,
    unit: "times",
  })),
  {
    what: "processor time for 50 servers, part of a bare server",
    value: large.lists.bare / large.lists.again,
    limit: 0.15,
    unit: "",
    atLeast: true,
  },
  {
    what: "the same for the first list after a commit",
    value: large.lists.bare / large.lists.afterCommit,
    limit: 0.08,
    unit: "",
    atLeast: true,
  },
  {
    what: "10,000 firewall rules fit in a request: status",
    value: large.firewall,
    limit: 200,
    unit: "",
    atLeast: true,
  },
  { what: "start to the first DNS answer", value: large.dnsMs, limit: scales.at(-1) === 100 ? 2000 : 500, unit: "ms" },
  { what: "start to ready", value: large.startMs, limit: 3000, unit: "ms" },
  { what: "start to quiet", value: large.quietMs, limit: 10_000, unit: "ms" },
  // A start compares each network completely; later `comparePeriod` of the reconciler is the limit.
  { what: "full comparison of all networks", value: large.quietMs / 1000, limit: 600, unit: "s" },
  { what: "memory after the start", value: large.memory, limit: 400, unit: "MB" },
  { what: "memory after all of this", value: large.memoryAfter / large.memory, limit: 1.2, unit: "times" },
];
if (process.argv.length === 2) lines.push(...(await measureOthers()));
process.exitCode = report(lines) ? 0 : 1;
