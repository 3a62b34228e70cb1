/**
 * SQL queries on networks and tunnels; those on links are in `linktable.ts`. `model/` computes the values of rows and converts rows into
 * specs and responses.
 */
import type { Insertable, Selectable, Updateable } from "kysely";
import { lock, prepare, type Reader, type Tx } from "../store/db.ts";
import type { NetworkTable, TunnelTable } from "../store/schema/network.ts";
import { indexChange, indexObject } from "../store/term.ts";
import { defaultFirewall } from "./model/firewall/firewall.ts";
import type { StoredBlock } from "./model/plan.ts";

export type NetworkRow = Selectable<NetworkTable>;
export type TunnelRow = Selectable<TunnelTable>;

/** Locks the address pools, for reserving or retiring blocks and edge addresses. */
export const lockPools = (tx: Tx): Promise<void> => lock(tx, "network-pools");
/** Locks a network, for changes of its row, links and tunnels. */
export const lockNetwork = (tx: Tx, id: number): Promise<void> => lock(tx, `network:${id}`);

const findAny = prepare<{ id: number }>()((db, p) => db.selectFrom("network").selectAll().where("id", "=", p("id")));

/** Returns a network of any project; undefined: it does not exist. */
export const findNetwork = (db: Reader, id: number): Promise<NetworkRow | undefined> => findAny.first(db, { id });

/** Returns the existing networks among `ids`, by id. */
export const listNetworksById = async (db: Reader, ids: readonly number[]): Promise<NetworkRow[]> =>
  ids.length === 0 ? [] : db.selectFrom("network").selectAll().where("id", "in", ids).orderBy("id").execute();

const generationOf = prepare<{ id: number }>()((db, p) =>
  db.selectFrom("network").select("generation").where("id", "=", p("id")),
);

/** Returns the generation of a network, without its rules, which may be megabytes; undefined: it does not exist. */
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

/** Returns a network of the project and kind; undefined: it does not exist. */
export const findNetworkOf = (
  db: Reader,
  project: number,
  kind: NetworkRow["kind"],
  id: number,
): Promise<NetworkRow | undefined> => findOwned.first(db, { id, project, kind });

const pageOwned = prepare<{ project: number; kind: NetworkRow["kind"]; after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("network")
    .selectAll()
    .where("project_id", "=", p("project"))
    .where("kind", "=", p("kind"))
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

/** Returns the first `limit` networks of the project and kind with an id above `after`. */
export const pageNetworks = (
  db: Reader,
  project: number,
  kind: NetworkRow["kind"],
  after: number,
  limit: number,
): Promise<NetworkRow[]> => pageOwned.all(db, { project, kind, after, limit });

const privateBlocks = prepare<{ project: number }>()((db, p) =>
  db
    .selectFrom("network")
    .select(["first", "last"])
    .where("project_id", "=", p("project"))
    .where("kind", "=", "private"),
);

/** Returns the blocks of the project's private networks. */
export const listPrivateBlocks = (db: Reader, project: number): Promise<StoredBlock[]> =>
  privateBlocks.all(db, { project });

/** Columns that the filters of lists read. */
export type FilteredRow = Pick<NetworkRow, "id" | "name" | "state" | "location" | "labels">;

const filtered = ["id", "name", "state", "location", "labels"] as const;

/** Returns the first `limit` networks with an id above `after`, with the columns of the filters. */
export const pageFiltered = prepare<{ project: number; kind: NetworkRow["kind"]; after: number; limit: number }>()(
  (db, p) =>
    db
      .selectFrom("network")
      .select(filtered)
      .where("project_id", "=", p("project"))
      .where("kind", "=", p("kind"))
      .where("id", ">", p("after"))
      .orderBy("id")
      .limit(p("limit")),
);

/** Returns these columns of the existing networks of the project and kind among `ids`, by id. */
export const listFiltered = (
  db: Reader,
  project: number,
  kind: NetworkRow["kind"],
  ids: readonly number[],
): Promise<FilteredRow[]> =>
  db
    .selectFrom("network")
    .select(filtered)
    .where("project_id", "=", project)
    .where("kind", "=", kind)
    .where("id", "in", ids)
    .orderBy("id")
    .execute();

/** The columns of a network that decide what exists on the host. */
export type NetworkStateRow = Pick<NetworkRow, "id" | "kind" | "state" | "applied" | "first6">;

/** Rows of a page of `pageNetworkStates`: few enough that reading one takes less than 5 ms. */
export const statesPerPage = 1000;

/** Returns these columns of up to `limit` networks after an id. */
export const pageNetworkStates = prepare<{ after: number; limit: number }>()((db, p) =>
  db
    .selectFrom("network")
    .select(["id", "kind", "state", "applied", "first6"])
    .where("id", ">", p("after"))
    .orderBy("id")
    .limit(p("limit")),
);

const countAll = prepare()((db) => db.selectFrom("network").select((e) => e.fn.countAll<number>().as("count")));

/** Returns the number of all networks. */
export const countAllNetworks = async (db: Reader): Promise<number> => (await countAll.first(db, {}))?.count ?? 0;

const sharedOf = prepare<{ location: string }>()((db, p) =>
  db
    .selectFrom("network")
    .selectAll()
    .where("project_id", "is", null)
    .where("kind", "=", "shared")
    .where("location", "=", p("location")),
);

/** Returns the shared network of a location. Only shared networks have no project, so that an index finds them. */
export const findShared = (db: Reader, location: string): Promise<NetworkRow | undefined> =>
  sharedOf.first(db, { location });

const sharedNames = prepare()((db) =>
  db.selectFrom("network").select(["id", "name"]).where("project_id", "is", null).where("kind", "=", "shared"),
);

/** Returns id and name of the shared networks, of which each location has at most one. */
export const listSharedNames = (db: Reader): Promise<Pick<NetworkRow, "id" | "name">[]> => sharedNames.all(db, {});

const with6 = prepare<{ first6: string }>()((db, p) =>
  db.selectFrom("network").select(["id", "first", "last"]).where("first6", "=", p("first6")),
);

/** Returns the network whose /64 begins with the stored address `first6`; undefined: none. */
export const findBy6 = (db: Reader, first6: string): Promise<Pick<NetworkRow, "id" | "first" | "last"> | undefined> =>
  with6.first(db, { first6 });

/** Locks the UDP ports of WireGuard, for reserving one. */
export const lockPorts = (tx: Tx): Promise<void> => lock(tx, "wireguard-ports");

/** Returns the UDP ports that edges use for WireGuard. The caller holds `lockPorts`. */
export async function listWireguardPorts(tx: Tx): Promise<Set<number>> {
  const rows = await tx
    .selectFrom("network")
    .select("wireguard_port")
    .where("wireguard_port", "is not", null)
    .execute();
  return new Set(rows.map(({ wireguard_port }) => Number(wireguard_port)));
}

/** A tunnel with the fields of its network that decide which edge receives a port. */
export type ResponderRow = Pick<NetworkRow, "kind" | "first" | "last" | "wireguard_port"> & Pick<TunnelRow, "spec">;

/** Returns the tunnels of networks with lower ids whose peers may initiate. */
export const listEarlierResponders = (db: Reader, id: number): Promise<ResponderRow[]> =>
  db
    .selectFrom("network")
    .innerJoin("tunnel", "tunnel.network_id", "network.id")
    .select(["network.kind", "network.first", "network.last", "network.wireguard_port", "tunnel.spec"])
    .where("network.id", "<", id)
    .where("network.state", "!=", "Deleting")
    .where((e) => e.or([e("tunnel.spec", "like", '%"any"%'), e("tunnel.spec", "like", '%"WireGuard"%')]))
    .execute();

type NewRow = Insertable<NetworkTable>;
type GivenField =
  | "project_id"
  | "kind"
  | "name"
  | "location"
  | "first"
  | "last"
  | "gateway"
  | "edge"
  | "first6"
  | "is_dhcp"
  | "bandwidth"
  | "created";

/** Returns the row of a new network of any kind: not applied yet, with the default firewall and without tunnels. */
export const newNetworkRow = (input: Pick<NewRow, GivenField> & { readonly labels?: string }): NewRow => ({
  labels: "{}",
  ...input,
  state: "New",
  firewall: JSON.stringify(defaultFirewall),
  fallback: null,
  confirm_by: null,
  wireguard: null,
  wireguard_public: null,
  wireguard_port: null,
  outside: null,
  generation: 1,
  applied: 0,
  error: null,
  version: 1,
});

/** Inserts a network and returns it with its id. */
export async function insertNetwork(tx: Tx, row: Insertable<NetworkTable>): Promise<NetworkRow> {
  const network = await tx.insertInto("network").values(row).returningAll().executeTakeFirstOrThrow();
  indexObject(tx, "network", null, network);
  return network;
}

export async function updateNetwork(tx: Tx, id: number, change: Updateable<NetworkTable>): Promise<void> {
  await indexChange(tx, "network", id, change);
  await tx.updateTable("network").set(change).where("id", "=", id).execute();
}

/** Sets the generation of a network, and nothing else. */
export const setGeneration = prepare<{ id: number; generation: number }>()((db, p) =>
  db
    .updateTable("network")
    .set({ generation: p("generation") })
    .where("id", "=", p("id")),
);

/**
 * Deletes a network and its tunnels. The blocks and the edge address of a public one are not assigned again before `until`
 * (milliseconds since 1970).
 */
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
  indexObject(tx, "network", row, null);
}

/** Addresses of the pools that are in use or retired. */
export interface Taken {
  /** IPv4 blocks and edge addresses. */
  readonly blocks: StoredBlock[];
  /** First addresses of the /64s. */
  readonly first6: string[];
}

/** Returns the addresses that are not free. The caller holds `lockPools`. */
export async function listTaken(tx: Tx): Promise<Taken> {
  const rows = await tx
    .selectFrom("network")
    .select(["first", "last", "edge", "first6"])
    .where("kind", "in", ["public", "shared"])
    .execute();
  const retired = await tx.selectFrom("retired_block").select(["first", "last"]).execute();
  // Stored IPv4 addresses have 8 digits, IPv6 addresses 32.
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

/** Returns the number of networks of the project and kind. */
export async function countNetworks(db: Reader, project: number, kind: NetworkRow["kind"]): Promise<number> {
  const row = await db
    .selectFrom("network")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("project_id", "=", project)
    .where("kind", "=", kind)
    .executeTakeFirstOrThrow();
  return row.count;
}

const tunnelsOf = prepare<{ network: number }>()((db, p) =>
  db.selectFrom("tunnel").selectAll().where("network_id", "=", p("network")).orderBy("place"),
);

/** Returns the tunnels of a network, in the order of its list. */
export const listTunnels = (db: Reader, network: number): Promise<TunnelRow[]> => tunnelsOf.all(db, { network });

/** Rows of a page of `pageTunnelStates`: few enough that reading one takes less than 5 ms. */
export const tunnelsPerPage = 1000;

/** Returns whether tunnels were up, for up to `limit` of them after an id. */
export const pageTunnelStates = prepare<{ after: number; limit: number }>()((db, p) =>
  db.selectFrom("tunnel").select(["id", "is_up"]).where("id", ">", p("after")).orderBy("id").limit(p("limit")),
);

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
