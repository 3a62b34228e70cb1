/** The objects of the installation that a cloud file can describe. */
import type { SshKey } from "@brume/api/catalog.ts";
import type { Client } from "@brume/api/client.ts";
import type { Domain } from "@brume/api/dns.ts";
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import type { Server } from "@brume/api/server.ts";
import type { kinds } from "../model/cloud/document.ts";

/** A list of a cloud file. */
export type Kind = (typeof kinds)[number];

/** Nouns for people, by list. */
export const nouns: Readonly<Record<Kind, string>> = {
  PublicNetworks: "public network",
  Networks: "network",
  Servers: "server",
  Domains: "domain",
};

/** A network of either kind, with one spelling of its id. */
export interface AnyNetwork {
  readonly kind: "PublicNetworks" | "Networks";
  readonly id: number;
  readonly name: string;
}

/** Objects that exist. Objects that are being deleted are left out. */
export interface Found {
  readonly publicNetworks: readonly PublicNetwork[];
  readonly networks: readonly Network[];
  readonly servers: readonly Server[];
  /** Without records. */
  readonly domains: readonly Domain[];
  readonly keys: readonly SshKey[];
}

/** Returns public and private networks in one form. */
export const networksOf = ({ publicNetworks, networks }: Found): AnyNetwork[] => [
  ...publicNetworks.map(({ Id, Name }) => ({ kind: "PublicNetworks" as const, id: Id, name: Name })),
  ...networks.map(({ ID, Name }) => ({ kind: "Networks" as const, id: ID, name: Name })),
];

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const one of items) list.push(one);
  return list;
}

/** Reads the objects of the kinds that are needed; a token need not have the scopes of the others. */
export async function readFound(client: Client, signal: AbortSignal, wanted: ReadonlySet<Kind>): Promise<Found> {
  const options = { signal };
  const has = (...some: Kind[]) => some.some((kind) => wanted.has(kind));
  const isHere = ({ State }: { readonly State: string }) => State !== "Deleting";
  const limit = 500;
  const [publicNetworks, networks, servers, domains, keys] = await Promise.all([
    has("PublicNetworks", "Servers") ? all(client.items("listPublicNetworks", { query: { limit } }, options)) : [],
    has("Networks", "Servers") ? all(client.items("listNetworks", { query: { limit } }, options)) : [],
    has("Servers") ? all(client.items("listServers", { query: { limit } }, options)) : [],
    has("Domains") ? all(client.items("listDomains", { query: { limit, records: false } }, options)) : [],
    has("Servers") ? all(client.items("listSshKeys", { query: { limit } }, options)) : [],
  ]);
  return { publicNetworks: publicNetworks.filter(isHere), networks, servers: servers.filter(isHere), domains, keys };
}
