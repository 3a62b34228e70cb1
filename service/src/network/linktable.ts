/** SQL queries on the links between servers and networks. */
import type { Selectable, Updateable } from "kysely";
import { insertMany, prepare, type Reader, type Tx } from "../store/db.ts";
import type { LinkTable } from "../store/schema/network.ts";
import { countAddress } from "./addresstable.ts";

export type LinkRow = Selectable<LinkTable>;

const linksOfNetwork = prepare<{ network: number }>()((db, p) =>
  db.selectFrom("link").selectAll().where("network_id", "=", p("network")).orderBy("id"),
);

/** Returns the links of a network, by id. */
export const listLinks = (db: Reader, network: number): Promise<LinkRow[]> => linksOfNetwork.all(db, { network });

/** Links of a page of `pageLinks`: few enough that reading one takes less than 5 ms. */
export const linksPerPage = 1000;

/** Returns the links of a network with the next addresses after one; "" is before all. */
export const pageLinks = prepare<{ network: number; after: string }>()((db, p) =>
  db
    .selectFrom("link")
    .selectAll()
    .where("network_id", "=", p("network"))
    .where("ip", ">", p("after"))
    .orderBy("ip")
    .limit(linksPerPage),
);

const lastOfPage = prepare<{ network: number }>()((db, p) =>
  db
    .selectFrom("link")
    .select("id")
    .where("network_id", "=", p("network"))
    .orderBy("ip")
    .limit(1)
    .offset(linksPerPage - 1),
);

/** Returns whether reading all links of the network at once takes longer than a slice. */
export const hasManyLinks = async (db: Reader, network: number): Promise<boolean> =>
  (await lastOfPage.first(db, { network })) !== undefined;

/** Returns the existing links of a network among `ids`. */
export async function listLinksById(db: Reader, network: number, ids: readonly number[]): Promise<LinkRow[]> {
  const found: LinkRow[] = [];
  for (const id of ids) {
    const link = await linkById.first(db, { network, id });
    if (link !== undefined) found.push(link);
  }
  return found;
}

const linkById = prepare<{ network: number; id: number }>()((db, p) =>
  db.selectFrom("link").selectAll().where("id", "=", p("id")).where("network_id", "=", p("network")),
);

const linksBetween = prepare<{ network: number; first: string; last: string }>()((db, p) =>
  db
    .selectFrom("link")
    .select((e) => e.fn.countAll<number>().as("count"))
    .where("network_id", "=", p("network"))
    .where("ip", ">=", p("first"))
    .where("ip", "<=", p("last")),
);

/** Returns the number of links with an address from `first` to `last`, both included. */
export const countAddresses = async (db: Reader, network: number, first: string, last: string): Promise<number> =>
  (await linksBetween.first(db, { network, first, last }))?.count ?? 0;

const addressesBetween = prepare<{ network: number; first: string; last: string }>()((db, p) =>
  db
    .selectFrom("link")
    .select("ip")
    .where("network_id", "=", p("network"))
    .where("ip", ">=", p("first"))
    .where("ip", "<=", p("last")),
);

/** Returns the taken addresses from `first` to `last`, both included. */
export const listAddresses = async (db: Reader, network: number, first: string, last: string): Promise<string[]> =>
  (await addressesBetween.all(db, { network, first, last })).map(({ ip }) => ip);

const serversAt = prepare<{ ip: string }>()((db, p) =>
  db.selectFrom("link").select("server_id").where("ip", "=", p("ip")),
);

/** Returns the ids of the servers that have the stored address `ip` in a network of any project. */
export const listServersAt = async (db: Reader, ip: string): Promise<number[]> =>
  (await serversAt.all(db, { ip })).map(({ server_id }) => server_id);

const linkAt = prepare<{ network: number; ip: string }>()((db, p) =>
  db.selectFrom("link").selectAll().where("network_id", "=", p("network")).where("ip", "=", p("ip")),
);

/** Returns the link that has the stored address `ip`; undefined: it is free. */
export const findLinkAt = (db: Reader, network: number, ip: string): Promise<LinkRow | undefined> =>
  linkAt.first(db, { network, ip });

const linksOfServer = prepare<{ server: number }>()((db, p) =>
  db.selectFrom("link").selectAll().where("server_id", "=", p("server")).orderBy("id"),
);

/** Returns the links of a server, by id. */
export const listLinksOfServer = (db: Reader, server: number): Promise<LinkRow[]> => linksOfServer.all(db, { server });

const putLink = insertMany("link", [
  "id",
  "network_id",
  "server_id",
  "host_name",
  "ip",
  "bandwidth",
  "state",
  "created",
]);

/** Inserts a link whose id was reserved. */
export function addLink(tx: Tx, link: LinkRow): void {
  putLink(tx, [link]);
  countAddress(tx, link.network_id, link.ip, 1);
}

/** Changes a link, but not its address, which is counted. */
export async function updateLink(
  tx: Tx,
  id: number,
  change: Omit<Updateable<LinkTable>, "ip" | "network_id">,
): Promise<void> {
  await tx.updateTable("link").set(change).where("id", "=", id).execute();
}

export async function deleteLink(tx: Tx, id: number): Promise<void> {
  const link = await tx.deleteFrom("link").where("id", "=", id).returningAll().executeTakeFirst();
  if (link !== undefined) countAddress(tx, link.network_id, link.ip, -1);
}
