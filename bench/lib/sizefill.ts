/**
 * Fills an installation with one large zone, servers on the shared network, public networks and events, by writing to its database and to
 * the file of simulated VMs. Through the API this takes hours.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAddresses } from "../../service/src/base/address.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { ensureSecretFile } from "../../service/src/base/secretfile.ts";
import { pack, unpack } from "../../service/src/network/model/plan.ts";
import { findShared, newNetworkRow } from "../../service/src/network/table.ts";
import { uuidOf } from "../../service/src/server/model/machinespec.ts";
import type { Store, Tx } from "../../service/src/store/db.ts";
import { openPostgres } from "../../service/src/store/postgres.ts";
import type { Tables } from "../../service/src/store/schema.ts";
import { databaseName, openSqlite } from "../../service/src/store/sqlite.ts";
import { indexAll } from "../../service/src/store/term.ts";

/** Numbers of objects. */
export interface Size {
  readonly records: number;
  readonly servers: number;
  readonly networks: number;
  readonly events: number;
}

/** Settings with which an installation of the largest size starts. */
export const settings = {
  BRUME_SIMULATED_HOST: "65536/1048576/16777216",
  BRUME_PUBLIC_POOL: "10.128.0.0/12",
  BRUME_DNS_TRANSFER: "127.0.0.1",
} as const;

/** Rows of one INSERT statement, and of one transaction. */
const together = 500;
const committed = 10_000;

async function insertMany(
  store: Store,
  table: keyof Tables,
  count: number,
  row: (index: number) => object,
): Promise<void> {
  const insert = (tx: Tx, rows: readonly object[]) => tx.insertInto(table).values(rows).execute();
  for (let from = 0; from < count; from += committed)
    await store.write(async (tx) => {
      for (let at = from; at < Math.min(count, from + committed); at += together)
        await insert(
          tx,
          Array.from({ length: Math.min(together, count - at) }, (_, index) => row(at + index)),
        );
    });
}

/**
 * Fills the data folder of a service that has started once and is stopped, or its PostgreSQL at `url`. Ids of zone, servers and networks
 * start at 1.
 */
export async function fillSize(
  folder: string,
  { records, servers, networks, events }: Size,
  url: string | null = null,
): Promise<void> {
  const log = () => {};
  const store = await (url === null
    ? openSqlite(join(folder, databaseName), { log })
    : openPostgres(url, { log, limit: 300_000 }));
  const now = Date.now();
  const labels = '{"env":"bench"}';
  await store.write((tx) => tx.updateTable("project").set({ quotas }).execute());

  const serial = Math.floor(now / 1000);
  const zone = { project_id: 1, name: "large.example", ascii: "large.example", subtree: "example.large." };
  await insertMany(store, "domain", 1, () => ({
    ...zone,
    serial,
    record_count: records,
    is_delegate: 0,
    import_report: null,
    created: now,
    labels: "{}",
    version: 1,
  }));
  await insertMany(store, "record", records, (index) => ({
    domain_id: 1,
    type: "A",
    owner: `h${index}`,
    node: `h${index}.`,
    ttl: 300,
    value: `192.0.${index % 250}.${(index >> 8) % 250}`,
    serial,
    created: now,
    labels: "{}",
    version: 1,
  }));

  const password = createSealer(Buffer.from(ensureSecretFile(folder, "key").value, "hex")).seal("k7Rw2mQx9TzB4nLc");
  const shared = await findShared(store.read, "Local");
  const image = await store.read.selectFrom("image").selectAll().orderBy("id").executeTakeFirstOrThrow();
  if (shared === undefined) throw new Error("there is no shared network");
  const size = { cpu: 1, ram: 128, hdd: 1, held_cpu: 1, held_ram: 128, held_hdd: 1 };
  await insertMany(store, "server", servers, (index) => ({
    project_id: 1,
    batch_id: null,
    name: `server-${index + 1}`,
    host_name: `server-${index + 1}`,
    state: "Active",
    is_on: 1,
    ...size,
    is_high_performance: 0,
    hdd_type: "SSD",
    location: "Local",
    image_id: image.id,
    image_name: image.name,
    family: "Linux",
    admin_password: password,
    user_data: null,
    disk_version: 1,
    boot: 1,
    is_protected: 0,
    is_backup_active: 0,
    backup_period: 7,
    backed_up: null,
    error: null,
    created: now,
    labels,
    version: 1,
  }));
  await insertMany(store, "link", servers, (index) => ({
    network_id: shared.id,
    server_id: index + 1,
    host_name: `server-${index + 1}`,
    bandwidth: 100,
    ip: pack(4, unpack(shared.gateway ?? "") + BigInt(index + 1)),
    state: "Active",
    created: now,
  }));

  const pool = parseAddresses(settings.BRUME_PUBLIC_POOL);
  const edges = pool.last - (pool.last - pool.first + 1n) / 256n + 1000n;
  await insertMany(store, "network", networks, (index) => {
    const first = pool.first + BigInt(index) * 8n;
    const block = { first: pack(4, first), last: pack(4, first + 7n), gateway: pack(4, first + 1n) };
    const given = { project_id: 1, kind: "public", name: `network-${index + 1}`, location: "Local" } as const;
    const edge = pack(4, edges + BigInt(index));
    return {
      ...newNetworkRow({ ...given, ...block, edge, first6: null, is_dhcp: 1, bandwidth: 100, created: now }),
      state: "Active",
    };
  });

  await store.write(indexAll);

  const data = JSON.stringify({ ID: 1, Name: "server-1", State: "Active", Labels: { env: "bench" } });
  await insertMany(store, "event", events, (index) => ({
    type: index % 10 === 0 ? "network.changed" : "server.changed",
    date: now,
    project_id: 1,
    resource: index % 10 === 0 ? "network" : "server",
    resource_id: (index % servers) + 1,
    parent_id: null,
    token_id: 1,
    request_id: null,
    data,
  }));
  const rows = await store.read.selectFrom("server").selectAll().orderBy("id").execute();
  const places = await store.read.selectFrom("link").select(["id", "server_id"]).execute();
  await store.close();

  const nics = new Map(places.map(({ id, server_id }) => [server_id, id]));
  const running = { boot: 1, version: 1, startedAt: now, maxCpus: 1, maxMemory: 2048, minCpus: 1, minMemory: 128 };
  const power = { ...running, isEmulated: true, cpus: 1, memory: 128, share: 1, exit: null };
  const machines = rows.map((row) => ({
    id: row.id,
    label: { uuid: uuidOf(row), name: row.name, cpus: 1, memory: 128, image: "tiny" },
    disks: [{ version: 1, gb: 1, content: "" }],
    power: { ...power, nics: [nics.get(row.id)] },
    logs: [],
    deaf: false,
    trouble: null,
  }));
  writeFileSync(join(folder, "machines.json"), JSON.stringify({ servers: machines, images: [] }));
}

const many = 100_000_000;
const quotas = JSON.stringify({
  Servers: many,
  CPU: many,
  RAM: many,
  HDD: many,
  PublicNetworks: many,
  RecordsPerDomain: 1_100_000,
  FirewallRules: 10_000,
});
