/**
 * Finds out whether the parent zone delegates a domain to this installation. It queries the name servers of the parent directly, without
 * recursion: a resolver may return cached data, or data of the domain's own servers, which are not trusted. The resolver is used only to
 * find the closest parent zone and its servers. A failed look-up is "Unknown", and does not change the stored state.
 */
import { randomInt } from "node:crypto";
import { Resolver } from "node:dns/promises";
import ipaddr from "ipaddr.js";
import { type DnsServer, sendQuery } from "./exchange.ts";
import { decodeData } from "./model/data.ts";
import type { Message, WireRecord } from "./model/wire.ts";

export interface DelegationOptions {
  readonly nameServers: readonly string[];
  /** Addresses of resolvers; empty: none, so the result is "Unknown"; null: those of the host. */
  readonly resolvers: readonly string[] | null;
  readonly signal: AbortSignal;
  /** Port of the parent's name servers; default 53, other only in tests. */
  readonly port?: number;
}

/** Whether the parent delegates to our servers only, to ours and others, or to none of ours. */
export type Delegation = "Delegated" | "Partial" | "NotDelegated" | "Unknown";

const NS = 2;
const A = 1;
const AAAA = 28;
/** Maximum number of queried servers per zone, and of delegations between the zone from the resolver and the domain. */
const maxServers = 8;
const maxCuts = 4;
/** Timeout of a query in ms. */
const waitMs = 2000;

type NameResolver = Pick<Resolver, "resolveNs" | "resolve4" | "resolve6">;

/** Returns how the parent zone delegates the domain (ASCII). Never rejects for a failed look-up. */
export async function findDelegation(domain: string, options: DelegationOptions): Promise<Delegation> {
  const { resolvers, signal } = options;
  if (resolvers?.length === 0) return "Unknown";
  const resolver = new Resolver({ timeout: waitMs, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  const stop = () => resolver.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const parent = await findParent(domain, resolver);
    return parent === null ? "Unknown" : await queryParent(domain, parent, resolver, options);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

interface Zone {
  readonly name: string;
  readonly servers: readonly string[];
}

/** Returns the closest zone above the domain: the first parent name that has name servers. */
async function findParent(domain: string, resolver: NameResolver): Promise<Zone | null> {
  for (let name = domain; name !== ""; ) {
    const dot = name.indexOf(".");
    name = dot < 0 ? "" : name.slice(dot + 1);
    const servers = await resolver.resolveNs(name === "" ? "." : name).catch(() => []);
    if (servers.length > 0) return { name, servers };
  }
  return null;
}

/** Queries the servers of the zone, and of zones between it and the domain. */
async function queryParent(
  domain: string,
  first: Zone,
  resolver: NameResolver,
  { nameServers, resolvers, signal, port = 53 }: DelegationOptions,
): Promise<Delegation> {
  let zone = first;
  for (let cuts = 0; cuts < maxCuts; cuts++) {
    const servers = await addressesOf(zone.servers, resolver, port, resolvers !== null);
    const replies = await Promise.all(
      servers.map((server) => sendQuery(server, { id: randomInt(65_536), name: domain, type: NS }, waitMs, signal)),
    );
    const results: DelegationReply[] = [];
    let deeper: Zone | null = null;
    for (const reply of replies) {
      const read = reply === null ? null : readReply(reply, domain, zone.name);
      if (read !== null && "servers" in read) deeper = read;
      else if (read !== null) results.push(read);
    }
    if (deeper === null) return combine(results, nameServers);
    zone = deeper;
  }
  return "Unknown";
}

/** Combines the replies of all servers of the parent: "Delegated" only if each of them delegates to our servers alone. */
function combine(replies: readonly DelegationReply[], nameServers: readonly string[]): Delegation {
  if (replies.length === 0) return "Unknown";
  const isOurs = (names: ReadonlySet<string>) => [...names].some((name) => nameServers.includes(name));
  if (!replies.some(({ reachable }) => isOurs(reachable))) return "NotDelegated";
  const isComplete = replies.every(
    ({ names, reachable }) =>
      names.size > 0 && [...names].every((name) => reachable.has(name) && nameServers.includes(name)),
  );
  return isComplete ? "Delegated" : "Partial";
}

/** The delegation in the reply of one server. */
interface DelegationReply {
  /** The name servers of the domain. */
  readonly names: ReadonlySet<string>;
  /** Those that can be resolved: a server inside the domain requires a glue address in the reply (RFC 9471). */
  readonly reachable: ReadonlySet<string>;
}

/** Reads one reply: the name servers of the domain, those of a zone between, or null if it is neither. */
function readReply(reply: Message, domain: string, parent: string): DelegationReply | Zone | null {
  const targets = (records: readonly WireRecord[]): Set<string> => {
    const data = records.map(({ start, end }) => decodeData("NS", reply.bytes, start, end));
    return new Set(data.filter((name) => typeof name === "string").map((name) => name.toLowerCase()));
  };
  const of = (records: readonly WireRecord[], type: number) =>
    records.filter((record) => record.type === type && record.class === 1);
  const at = (name: string) => (record: WireRecord) => record.name.toLowerCase() === name;
  // A server that also serves the domain returns its NS set as an answer, without glue.
  const nsSet = of(reply.answers, NS).filter(at(domain));
  if (reply.isAuthoritative && nsSet.length > 0) {
    const names = targets(nsSet);
    return { names, reachable: names };
  }
  const referrals = of(reply.authorities, NS);
  const cut = referrals[0]?.name.toLowerCase();
  if (!reply.isAuthoritative && reply.rcode === 0 && cut !== undefined) {
    const names = targets(referrals.filter(at(cut)));
    if (cut === domain) {
      const glued = new Set(
        [...of(reply.additionals, A), ...of(reply.additionals, AAAA)].map(({ name }) => name.toLowerCase()),
      );
      const reachable = [...names].filter((name) => !isWithin(name, domain) || glued.has(name));
      return { names, reachable: new Set(reachable) };
    }
    const isBetween = isWithin(domain, cut) && isWithin(cut, parent) && cut !== parent;
    return isBetween ? { name: cut, servers: [...names] } : null;
  }
  const isDenial = reply.isAuthoritative && (reply.rcode === 0 || reply.rcode === 3);
  return isDenial ? { names: new Set(), reachable: new Set() } : null;
}

const isWithin = (name: string, zone: string): boolean => zone === "" || name === zone || name.endsWith(`.${zone}`);

/**
 * Resolves the addresses of the servers. Private addresses are excluded, so that a parent zone cannot direct queries into the operator's
 * network, unless the operator has configured resolvers, which may serve an internal tree.
 */
async function addressesOf(
  names: readonly string[],
  resolver: NameResolver,
  port: number,
  isInner: boolean,
): Promise<DnsServer[]> {
  const none = (): string[] => [];
  const found = await Promise.all(
    names.slice(0, maxServers).map(async (name) => {
      const [v4, v6] = await Promise.all([resolver.resolve4(name).catch(none), resolver.resolve6(name).catch(none)]);
      const allowed = [...v4.slice(0, 2), ...v6.slice(0, 1)].filter(
        (address) => isInner || ipaddr.process(address).range() === "unicast",
      );
      return allowed.map((address) => ({ name, address, port }));
    }),
  );
  return found.flat().slice(0, maxServers);
}
