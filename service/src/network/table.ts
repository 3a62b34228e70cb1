/** Networks, links and tunnels in SQL. Rows as they are stored; what they mean is in `plan` and `image`, what they look like in `show`. */
import type { Insertable, Selectable, Updateable } from "kysely";
import { lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { LinkTable, NetworkTable, TunnelTable } from "../store/schema.ts";
import type { StoredBlock } from "./model/plan.ts";

export type NetworkRow = Selectable<NetworkTable>;
export type LinkRow = Selectable<LinkTable>;
export type TunnelRow = Selectable<TunnelTable>;

/** Orders all that take blocks and edge addresses from the pools. */
export const lockPools = (tx: Tx): Promise<void> => lock(tx, "network-pools");
/** Orders all that change a network, its links or its tunnels. */
export const lockNetwork = (tx: Tx, id: number): Promise<void> => lock(tx, `network:${id}`);

const findAny = prepare<{ id: number }>()((db, p) => db.selectFrom("network").selectAll().where("id", "=", p("id")));

/** Whoever's it is. */
export const findNetwork = (db: Reader, id: number): Promise<NetworkRow | undefined> => findAny.first(db, { id });

export const listNetworksById = async (db: Reader, ids: readonly number[]): Promise<NetworkRow[]> =>
  ids.length === 0 ? [] : db.selectFrom("network").selectAll().where("id", "in", ids).orderBy("id").execute();

const generationOf = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("network").select("generation").where("id", "=", p("id")),
);

/** A row may hold megabytes of rules; whoever only asks whether it has changed need not read them. */
export const findGeneration = async (db: Reader, id: number): Promise<number | undefined> =>
  (await generationOf.first(db, { id }))?.generation;

const findOwned = prepare<{ id: number; project: number; kind: NetworkRow["kind"] }>()((db, p) =>
  db
    .selectFrom("network")
    .selectAll()
    .where("id", "=", p("id"))
    .where("project_id", "=", p("project"))
    .where("kind", "=", p("kind")),
);

export const findNetworkOf = (
  db: Reader,
  project: number,
  kind: NetworkRow["kind"],
  id: number,
): Promise<NetworkRow | undefined> => findOwned.first(db, { id, project, kind });

const listOwned = prepare<{ project: number; kind: NetworkRow["kind"] }>()((db, p) =>
  db
    .selectFrom("network")
    .selectAll()
    .where("project_id", "=", p("project"))
    .where("kind", "=", p("kind"))
    .orderBy("id"),
);

export const listNetworksOf = (db: Reader, project: number, kind: NetworkRow["kind"]): Promise<NetworkRow[]> =>
  listOwned.all(db, { project, kind });

/** All that the router has to keep. */
export const listAllNetworks = (db: Reader): Promise<NetworkRow[]> =>
  db.selectFrom("network").selectAll().orderBy("id").execute();

const countAll = prepare()((db) => db.selectFrom("network").select((e) => e.fn.countAll<number>().as("count")));

export const countAllNetworks = async (db: Reader): Promise<number> => (await countAll.first(db, {}))?.count ?? 0;

export const findShared = (db: Reader, location: string): Promise<NetworkRow | undefined> =>
  db.selectFrom("network").selectAll().where("kind", "=", "shared").where("location", "=", location).executeTakeFirst();

/** Orders all that take ports for WireGuard. */
export const lockPorts = (tx: Tx): Promise<void> => lock(tx, "wireguard-ports");

/** Ports that edges have for WireGuard. Whoever asks holds `lockPorts`. */
export async function listWireguardPorts(tx: Tx): Promise<Set<number>> {
  const rows = await tx
    .selectFrom("network")
    .select("wireguard_port")
    .where("wireguard_port", "is not", null)
    .execute();
  return new Set(rows.map(({ wireguard_port }) => Number(wireguard_port)));
}

export type CalledRow = Pick<NetworkRow, "kind" | "first" | "last" | "wireguard_port"> & Pick<TunnelRow, "spec">;

/** Tunnels of networks that came before this one whose peers may call. */
export const listCalledBefore = (db: Reader, id: number): Promise<CalledRow[]> =>
  db
    .selectFrom("network")
    .innerJoin("tunnel", "tunnel.network_id", "network.id")
    .select(["network.kind", "network.first", "network.last", "network.wireguard_port", "tunnel.spec"])
    .where("network.id", "<", id)
    .where("network.state", "!=", "Deleting")
    .where((e) => e.or([e("tunnel.spec", "like", '%"any"%'), e("tunnel.spec", "like", '%"WireGuard"%')]))
    .execute();

export const insertNetwork = (tx: Tx, row: Insertable<NetworkTable>): Promise<NetworkRow> =>
  tx.insertInto("network").values(row).returningAll().executeTakeFirstOrThrow();

export async function updateNetwork(tx: Tx, id: number, change: Updateable<NetworkTable>): Promise<void> {
  await tx.updateTable("network").set(change).where("id", "=", id).execute();
}

/** Forgets the network, and keeps its blocks and edge address from being given out again before `until`. */
export async function deleteNetwork(tx: Tx, row: NetworkRow, until: number): Promise<void> {
  if (row.kind === "public") {
    const blocks = [{ first: row.first, last: row.last }];
    for (const single of [row.edge, row.first6]) if (single !== null) blocks.push({ first: single, last: single });
    for (const block of blocks)
      await tx
        .insertInto("retired_block")
        .values({ ...block, until })
        .execute();
  }
  await tx.deleteFrom("tunnel").where("network_id", "=", row.id).execute();
  await tx.deleteFrom("network").where("id", "=", row.id).execute();
}

export interface Taken {
  /** Blocks, edge addresses and what was given back a moment ago. */
  readonly blocks: StoredBlock[];
  /** First addresses of the /64s. */
  readonly first6: string[];
}

/** What of the pools is not free. Whoever asks holds `lockPools`. */
export async function listTaken(tx: Tx, now: number): Promise<Taken> {
  await tx.deleteFrom("retired_block").where("until", "<=", now).execute();
  const rows = await tx
    .selectFrom("network")
    .select(["first", "last", "edge", "first6"])
    .where("kind", "in", ["public", "shared"])
    .execute();
  const retired = await tx.selectFrom("retired_block").select(["first", "last"]).execute();
  // Texts of IPv4 addresses are as long as each other, and shorter than those of IPv6.
  const isBlock4 = ({ first }: StoredBlock): boolean => first.length === 8;
  return {
    blocks: [
      ...rows.map(({ first, last }) => ({ first, last })),
      ...rows.flatMap(({ edge }) => (edge === null ? [] : [{ first: edge, last: edge }])),
      ...retired.filter(isBlock4),
    ],
    first6: [
      ...rows.flatMap(({ first6 }) => (first6 === null ? [] : [first6])),
      ...retired.filter((block) => !isBlock4(block)).map(({ first }) => first),
    ],
  };
}

export async function countNetworks(db: Reader, project: number, kind: NetworkRow["kind"]): Promise<number> {
  const row = await db
    .selectFrom("network")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .where("kind", "=", kind)
    .executeTakeFirstOrThrow();
  return row.count;
}

const linksOfNetwork = prepare<{ network: number }>()((db, p) =>
  db.selectFrom("link").selectAll().where("network_id", "=", p("network")).orderBy("id"),
);

export const listLinks = (db: Reader, network: number): Promise<LinkRow[]> => linksOfNetwork.all(db, { network });

const linksBetween = prepare<{ network: number; first: string; last: string }>()((db, p) =>
  db
    .selectFrom("link")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("network_id", "=", p("network"))
    .where("ip", ">=", p("first"))
    .where("ip", "<=", p("last")),
);

/** How many of a network's addresses are taken, both ends included. */
export const countAddresses = async (db: Reader, network: number, first: string, last: string): Promise<number> =>
  (await linksBetween.first(db, { network, first, last }))?.count ?? 0;

const linkAt = prepare<{ network: number; ip: string }>()((db, p) =>
  db.selectFrom("link").selectAll().where("network_id", "=", p("network")).where("ip", "=", p("ip")),
);

/** Whose address it is. */
export const findLinkAt = (db: Reader, network: number, ip: string): Promise<LinkRow | undefined> =>
  linkAt.first(db, { network, ip });

const linksOfServer = prepare<{ server: number }>()((db, p) =>
  db.selectFrom("link").selectAll().where("server_id", "=", p("server")).orderBy("id"),
);

export const listLinksOfServer = (db: Reader, server: number): Promise<LinkRow[]> => linksOfServer.all(db, { server });

export const insertLink = (tx: Tx, row: Insertable<LinkTable>): Promise<LinkRow> =>
  tx.insertInto("link").values(row).returningAll().executeTakeFirstOrThrow();

export async function updateLink(tx: Tx, id: number, change: Updateable<LinkTable>): Promise<void> {
  await tx.updateTable("link").set(change).where("id", "=", id).execute();
}

export async function deleteLink(tx: Tx, id: number): Promise<void> {
  await tx.deleteFrom("link").where("id", "=", id).execute();
}

const tunnelsOf = prepare<{ network: number }>()((db, p) =>
  db.selectFrom("tunnel").selectAll().where("network_id", "=", p("network")).orderBy("place"),
);

export const listTunnels = (db: Reader, network: number): Promise<TunnelRow[]> => tunnelsOf.all(db, { network });

export const listAllTunnels = (db: Reader): Promise<TunnelRow[]> =>
  db.selectFrom("tunnel").selectAll().orderBy("id").execute();

export const findTunnel = (db: Reader, id: number): Promise<TunnelRow | undefined> =>
  db.selectFrom("tunnel").selectAll().where("id", "=", id).executeTakeFirst();

export const insertTunnel = (tx: Tx, row: Insertable<TunnelTable>): Promise<TunnelRow> =>
  tx.insertInto("tunnel").values(row).returningAll().executeTakeFirstOrThrow();

export async function updateTunnel(tx: Tx, id: number, change: Updateable<TunnelTable>): Promise<void> {
  await tx.updateTable("tunnel").set(change).where("id", "=", id).execute();
}

export async function deleteTunnels(tx: Tx, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await tx.deleteFrom("tunnel").where("id", "in", ids).execute();
}
