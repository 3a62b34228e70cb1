/**
 * Finds orphans: servers, images and snapshots on the host without a row, as after a restore of the database. They were not deleted by a
 * request, so they are kept: a server is switched off, all are listed, and their ids are not used again. Only remains of objects whose
 * deletion this database has recorded are removed. Links of servers that do not exist are only rows, and are deleted.
 */
import type { Log } from "../base/log.ts";
import { readPages } from "../base/turn.ts";
import type { HeldImage, HeldName, MachineStatus, Machines } from "../drivers/machine/interface.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import { type Reader, type Store, skipIds, type Tx } from "../store/db.ts";
import type { FlowContext } from "./flow/context.ts";
import { leaveNetworks } from "./flow/network.ts";
import type { MachineState } from "./machinestatus.ts";
import {
  deleteOrphan,
  emitOrphanEvent,
  insertOrphan,
  listOrphans,
  listRetired,
  lockOrphans,
  type NewOrphan,
  numberOf,
  type OrphanRow,
  retire,
} from "./orphantable.ts";
import type { ServerWatch } from "./reconciler.ts";
import { isBehind, raiseNumbers } from "./restored.ts";
import { findAnyServer, pageLinkServers, pageServerStates, statesPerPage } from "./table.ts";

/** Milliseconds between runs, and milliseconds for a guest to shut down. */
const period = 5000;
const shutdown = 20_000;

/** The reconciler of orphans, and its first run. */
export interface Orphans {
  readonly reconciler: Reconciler;
  /**
   * Stores the orphans on the host, and the numbers of VMs that are newer than their rows. To be called at the start, before any new id is
   * assigned and before any flow runs.
   */
  note(): Promise<void>;
}

type UnknownObject = Omit<NewOrphan, "id" | "state" | "found">;
/** What identifies an object on the host. */
type Key = Pick<OrphanRow, "kind" | "name">;

/** Most images whose details are read in one call. */
const imagesTogether = 500;

const serverOf = ({ id, label, disks, boot }: MachineStatus): UnknownObject => {
  const disk = disks.at(-1);
  return {
    kind: "Server",
    name: String(id),
    title: label?.name ?? "",
    uuid: label?.uuid ?? "",
    family: "Linux",
    image: label?.image ?? "",
    cpu: label?.cpus ?? 0,
    ram: label?.memory ?? 0,
    hdd: disk?.gb ?? 0,
    bytes: disks.reduce((sum, { allocated }) => sum + allocated, 0),
    boot,
    disk_version: disk?.version ?? 0,
  };
};

const imageKey = ({ name, kind }: HeldName): Key => ({ kind: kind === "image" ? "Image" : "Snapshot", name });

const imageOf = ({ title, family, minRam, gb, bytes, ...held }: HeldImage): UnknownObject => ({
  ...imageKey(held),
  title,
  uuid: "",
  family,
  image: "",
  cpu: 0,
  ram: minRam,
  hdd: gb,
  bytes,
  boot: 0,
  disk_version: 0,
});

const keyOf = ({ kind, name }: Key): string => `${kind} ${name}`;

/** Creates the reconciler. `watch` compares all VMs with their rows too: they are compared here only if it found one that is not known. */
export function createOrphans(context: FlowContext, watch: Pick<ServerWatch, "isEachKnown">): Orphans {
  const { store, machines, images, clock, machineStatus } = context;
  const log: Log = context.log;
  /** Links up to this one were checked. Each run checks one page of them, because links without a server only reserve addresses. */
  let checkedLink = 0;

  /**
   * Returns all servers without a row, and the VMs that are newer than their row. The host is observed before the rows are read, because a
   * row is inserted before its object.
   */
  async function findServers(): Promise<{ servers: UnknownObject[]; newer: MachineState[] }> {
    if (watch.isEachKnown()) return { servers: [], newer: [] };
    const { ready, machines: seen } = await machineStatus.observe();
    if (!ready) throw new Error("the server driver is not ready");
    const known = new Set<number>();
    const newer: MachineState[] = [];
    const pages = readPages(statesPerPage, (after) =>
      pageServerStates.all(store.read, { after, limit: statesPerPage }),
    );
    for await (const page of pages)
      for (const row of page) {
        known.add(row.id);
        const status = machineStatus.of(row.id);
        if (status !== null && isBehind(row, status)) newer.push(status);
      }
    return { servers: seen.filter(({ id }) => !known.has(id)).map(serverOf), newer };
  }

  /** Returns the names of all images and snapshots without a row. They are listed before the rows are read, as with servers. */
  async function findImages(): Promise<Key[]> {
    const listed = (await images.listImages()).map(imageKey).filter((image) => numberOf(image) !== null);
    const rows = new Set((await store.read.selectFrom("image").select("id").execute()).map(({ id }) => id));
    return listed.filter((image) => !rows.has(numberOf(image) ?? 0));
  }

  /** Reads the details of images and snapshots. Those that do not exist any more are missing in the result. */
  async function readDetails(kept: readonly Key[]): Promise<UnknownObject[]> {
    const names = [...new Set(kept.map(({ name }) => name))];
    const keys = new Set(kept.map(keyOf));
    const found: UnknownObject[] = [];
    for (let from = 0; from < names.length; from += imagesTogether)
      found.push(...(await images.readImages(names.slice(from, from + imagesTogether))).map(imageOf));
    return found.filter((image) => keys.has(keyOf(image)));
  }

  /** Returns the objects whose deletion is recorded: images by name, servers by name and uuid. */
  async function findLeftovers(servers: readonly UnknownObject[], kept: readonly Key[]): Promise<ReadonlySet<Key>> {
    const namesOf = (keys: readonly Key[]) => keys.map(({ name }) => name);
    const retiredServers = await listRetired(store.read, "Server", namesOf(servers));
    const retiredImages = await listRetired(store.read, "Image", namesOf(kept));
    return new Set([
      ...servers.filter(({ name, uuid }) => uuid !== "" && retiredServers.get(name) === uuid),
      ...kept.filter(({ name }) => retiredImages.has(name)),
    ]);
  }

  /** True if the object has a row now, because it was adopted after the observation. */
  async function isKnown(db: Reader, one: Key): Promise<boolean> {
    const number = numberOf(one) ?? 0;
    if (one.kind === "Server") return (await findAnyServer(db, number)) !== undefined;
    return (await db.selectFrom("image").select("id").where("id", "=", number).executeTakeFirst()) !== undefined;
  }

  /** Inserts an orphan and reserves its id. */
  async function insert(tx: Tx, object: UnknownObject): Promise<void> {
    if (await isKnown(tx, object)) return;
    const number = numberOf(object) ?? 0;
    await skipIds(tx, object.kind === "Server" ? "server" : "image", number);
    const row = await insertOrphan(tx, { ...object, state: "Held", found: clock.now() });
    await emitOrphanEvent(tx, row, "created", clock.now());
  }

  async function note(): Promise<{ orphans: OrphanRow[]; leftovers: Key[] }> {
    const { servers, newer } = await findServers();
    const kept = await findImages();
    if (newer.length > 0) await raiseNumbers(store, log, newer);
    const leftovers = await findLeftovers(servers, kept);
    const before = new Set((await listOrphans(store.read)).map(keyOf));
    const isNew = (one: Key): boolean => !leftovers.has(one) && !before.has(keyOf(one));
    const fresh = [...servers.filter(isNew), ...(await readDetails(kept.filter(isNew)))];
    const present = new Set([...servers, ...kept].filter((one) => !leftovers.has(one)).map(keyOf));
    if (fresh.length > 0 || [...before].some((key) => !present.has(key)))
      await store.write(async (tx) => {
        await lockOrphans(tx);
        const now = new Map((await listOrphans(tx)).map((row) => [keyOf(row), row]));
        for (const object of fresh) if (!now.has(keyOf(object))) await insert(tx, object);
        for (const [key, row] of now)
          if (!present.has(key) && before.has(key)) {
            await deleteOrphan(tx, row.id);
            await emitOrphanEvent(tx, row, "deleted", clock.now());
          }
      });
    for (const { kind, name, title } of fresh)
      log("warn", "Found an orphan: it is on the host, but not in the database. It is kept, see GET /orphan.", {
        kind,
        name,
        title,
      });
    const orphans = await listOrphans(store.read);
    return { orphans, leftovers: [...leftovers] };
  }

  /** Switches an orphan off. Its disk is kept. */
  async function quarantine(server: number): Promise<void> {
    if ((await findAnyServer(store.read, server)) !== undefined) return;
    log("warn", "Switching off an orphan: the server runs, but is not in the database.", { server });
    const isOff = await machines.ensureStopped(server, "shutdown", AbortSignal.timeout(shutdown)).catch(() => false);
    if (!isOff) await machines.ensureStopped(server, "cut");
  }

  /** Removes an object from the host. Throws if it has a row. */
  async function remove(one: Key): Promise<void> {
    if (await isKnown(store.read, one)) throw new Error(`${one.kind} ${one.name} is in the database`);
    await (one.kind === "Server" ? machines.remove(Number(one.name)) : images.removeImage(one.name));
  }

  async function removeRequested(row: OrphanRow): Promise<void> {
    await remove(row);
    await store.write(async (tx) => {
      await lockOrphans(tx);
      await deleteOrphan(tx, row.id);
      const kind = row.kind === "Server" ? "Server" : "Image";
      await retire(tx, { kind, name: row.name, uuid: row.uuid, date: clock.now() });
      await emitOrphanEvent(tx, row, "deleted", clock.now());
    });
    log("info", "Removed an orphan on request.", { kind: row.kind, name: row.name });
  }

  /** One object that cannot be removed or switched off keeps no other waiting: the first failure is thrown at the end. */
  async function run(): Promise<void> {
    const { orphans, leftovers } = await note();
    const failures: unknown[] = [];
    const attempt = (work: Promise<void>): Promise<void> => work.catch((error: unknown) => void failures.push(error));
    for (const { kind, name } of leftovers) {
      log("info", "Removing the remains of a deleted object.", { kind, name });
      await attempt(remove({ kind, name }));
    }
    for (const row of orphans) if (row.state === "Removing") await attempt(removeRequested(row));
    const held = new Set(
      orphans.filter(({ kind, state }) => kind === "Server" && state === "Held").map(({ name }) => name),
    );
    const running = [...held].map(Number).filter((id) => (machineStatus.of(id)?.power ?? "off") !== "off");
    await Promise.all(running.map((id) => attempt(quarantine(id))));
    checkedLink = await removeStrayLinks({ ...context, log }, checkedLink);
    if (failures.length > 0) throw failures[0];
  }

  return {
    note: async () => void (await note()),
    reconciler: defineReconciler({
      name: "server.orphan",
      subject: "servers",
      single: true,
      period,
      pause: { first: period, factor: 1, most: period },
      run,
    }),
  };
}

interface LinkCleanup extends Pick<FlowContext, "clock" | "networks"> {
  readonly store: Store;
  readonly machines: Machines;
  readonly log: Log;
}

/**
 * Deletes links whose server does not exist, in the page of links after `after`. Resolves to the id of the last link in the page, or to 0
 * after the last page.
 */
async function removeStrayLinks(context: LinkCleanup, after: number): Promise<number> {
  const { store, log } = context;
  const page = await pageLinkServers.all(store.read, { after, limit: statesPerPage });
  const stray = page.filter(({ known }) => known === null);
  for (const server of new Set(stray.map(({ server_id }) => server_id))) {
    log("warn", "Removing the links of a server that does not exist.", { server });
    await store.write(async (tx) => {
      if ((await findAnyServer(tx, server)) === undefined) await leaveNetworks(context, tx, server);
    });
  }
  return page.length < statesPerPage ? 0 : (page.at(-1)?.id ?? 0);
}
