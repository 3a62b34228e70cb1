/**
 * Measures the cost of many servers in the service itself, with simulated engines: response time of a create, whether the times of list
 * and read stay constant up to 10,000 servers, the load of observing all of them while idle, and memory. `npm run bench -- servers`
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSealer } from "../service/src/base/secret.ts";
import { ensureSecretFile } from "../service/src/base/secretfile.ts";
import { pack, unpack } from "../service/src/network/model/plan.ts";
import { findShared } from "../service/src/network/table.ts";
import { insertServer } from "../service/src/server/table.ts";
import { databaseName, openSqlite } from "../service/src/store/sqlite.ts";
import { newServerRow } from "../test/support/rows.ts";
import { type Brume, startBrume } from "./lib/brume.ts";

const many = Number(process.argv[2] ?? 10_000);
const few = 10;
const orders = 300;
const rounds = 1000;
/** Milliseconds without a request, to measure the idle load. */
const rest = 15_000;

interface Spread {
  readonly p50: number;
  readonly p99: number;
}

/** Returns the milliseconds of sequential calls, without the first tenth. */
async function measure(count: number, act: (i: number) => Promise<unknown>): Promise<Spread> {
  const took: number[] = [];
  for (let i = -Math.ceil(count / 10); i < count; i++) {
    const begun = performance.now();
    await act(i);
    if (i >= 0) took.push(performance.now() - begun);
  }
  took.sort((a, b) => a - b);
  return { p50: took[count >> 1] ?? 0, p99: took[Math.floor(count * 0.99)] ?? 0 };
}

/** Creates a data folder with running servers in the database and the file of simulated VMs: the API would reject them for lack of capacity. */
async function fill(folder: string, count: number): Promise<void> {
  // The first start creates the shared network.
  await (await startBrume(folder)).stop();
  const store = await openSqlite(join(folder, databaseName), { log: () => {} });
  const sealer = createSealer(Buffer.from(ensureSecretFile(folder, "key").value, "hex"));
  const password = sealer.seal("k7Rw2mQx9TzB4nLc");
  const now = Date.now();
  const network = await findShared(store.read, "Local");
  const image = await store.read.selectFrom("image").selectAll().orderBy("id").executeTakeFirstOrThrow();
  if (network === undefined) throw new Error("there is no shared network");
  const seen: object[] = [];
  for (let from = 1; from <= count; from += 500)
    await store.write(async (tx) => {
      for (let i = from; i < from + 500 && i <= count; i++) {
        const row = newServerRow({
          name: `server-${i}`,
          host_name: `server-${i}`,
          ram: 128,
          hdd: 1,
          held_cpu: 0,
          held_ram: 0,
          held_hdd: 0,
          image_id: image.id,
          image_name: image.name,
          admin_password: password,
          created: now,
          labels: '{"env":"bench"}',
        });
        const server = await insertServer(tx, row);
        const link = { network_id: network.id, server_id: server.id, host_name: `server-${i}`, bandwidth: 100 };
        const ip = pack(4, unpack(network.gateway ?? "") + BigInt(i));
        await tx
          .insertInto("link")
          .values({ ...link, ip, state: "Active", created: now })
          .execute();
        seen.push({ id: server.id });
      }
      await tx
        .updateTable("project")
        .set({ quotas: '{"Servers":1000000,"CPU":1000000,"RAM":100000000,"HDD":1000000}' })
        .execute();
    });
  await store.close();
  const power = {
    boot: 1,
    version: 1,
    startedAt: now,
    maxCpus: 1,
    maxMemory: 2048,
    cpus: 1,
    memory: 128,
    share: 1,
    nics: [],
    exit: null,
  };
  const servers = seen.map((each) => ({
    ...each,
    disks: [{ version: 1, gb: 1, content: "" }],
    power,
    logs: [],
    deaf: false,
  }));
  writeFileSync(join(folder, "machines.json"), JSON.stringify({ servers, images: [] }));
}

/** Returns the milliseconds of CPU time so far. */
function spent(brume: Brume): number {
  const fields = readFileSync(`/proc/${brume.program.child.pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

async function at(count: number): Promise<Record<string, string | number>> {
  const folder = mkdtempSync(join(tmpdir(), "brume-servers-"));
  try {
    await fill(folder, count);
    const brume = await startBrume(folder);
    const { client } = brume;
    const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));
    // Wait for the work of the start, which is not idle load.
    await wait(5000);
    const before = spent(brume);
    await wait(rest);
    const idle = ((spent(brume) - before) / rest) * 100;
    const memory = brume.program.memory();
    const read = await measure(rounds, (i) => client.readServer({ path: { id: (Math.abs(i * 7919) % count) + 1 } }));
    const page = await measure(100, () => client.listServers({ query: { limit: 100 } }));
    const fullList = await measure(5, () => client.listServers());
    const create = await measure(orders, (i) =>
      client.createServer({ body: { Name: `new-${i + orders}`, CPU: 1, RAM: 128, HDD: 1 } }),
    );
    const made = performance.now();
    for (;;) {
      const left = await client.listServers({ query: { state: "New", limit: 1 } });
      if (left.length === 0) break;
      await wait(100);
    }
    const behind = performance.now() - made;
    await brume.stop();
    const show = ({ p50, p99 }: Spread) => `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
    return {
      servers: count,
      "start ms": Math.round(brume.startMs),
      "memory MB": Math.round(memory),
      "at rest %": idle.toFixed(1),
      "read ms": show(read),
      "page of 100": show(page),
      "whole list": show(fullList),
      "create ms": show(create),
      "work behind ms": Math.round(behind),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const rows = [await at(few), await at(many)];
console.log(`milliseconds as median / 99th percentile, ${orders} orders and ${rounds} reads one after another`);
console.table(rows);
