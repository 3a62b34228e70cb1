/**
 * Does the public tree lead here? The name servers of the parent zone are asked themselves, without recursion: a resolver may remember
 * what was, and asks servers of the domain, which may say anything. A resolver only finds the closest zone above and its servers.
 * What cannot be learnt now is "Unknown", and changes nothing that is known from before.
 */
import { randomInt } from "node:crypto";
import { Resolver } from "node:dns/promises";
import ipaddr from "ipaddr.js";
import { ask, type Server } from "./exchange.ts";
import { decodeData } from "./model/data.ts";
import type { Message, WireRecord } from "./model/wire.ts";

export interface DelegationOptions {
  readonly nameServers: readonly string[];
  /** Addresses of resolvers; empty: there is none, so nothing is known; null: the machine's own. */
  readonly resolvers: readonly string[] | null;
  readonly signal: AbortSignal;
  /** Of the parent's name servers, 53 but in tests. */
  readonly port?: number;
}

/** Whether the parent names our servers only, some of ours beside others, or none of ours. */
export type Delegation = "Delegated" | "Partial" | "NotDelegated" | "Unknown";

const NS = 2;
const A = 1;
const AAAA = 28;
/** Servers of a parent that are asked, and zones between the one that the resolver knows and the domain. */
const mostServers = 8;
const mostCuts = 4;
const waitMs = 2000;

type NameResolver = Pick<Resolver, "resolveNs" | "resolve4" | "resolve6">;

export async function findDelegation(domain: string, options: DelegationOptions): Promise<Delegation> {
  const { resolvers, signal } = options;
  if (resolvers?.length === 0) return "Unknown";
  const resolver = new Resolver({ timeout: waitMs, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  const stop = () => resolver.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const parent = await findParent(domain, resolver);
    return parent === null ? "Unknown" : await askParent(domain, parent, resolver, options);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

interface Zone {
  readonly name: string;
  readonly servers: readonly string[];
}

/** The closest zone above the domain: the first name upwards that has name servers. */
async function findParent(domain: string, resolver: NameResolver): Promise<Zone | null> {
  for (let name = domain; name !== ""; ) {
    const dot = name.indexOf(".");
    name = dot < 0 ? "" : name.slice(dot + 1);
    const servers = await resolver.resolveNs(name === "" ? "." : name).catch(() => []);
    if (servers.length > 0) return { name, servers };
  }
  return null;
}

async function askParent(
  domain: string,
  first: Zone,
  resolver: NameResolver,
  { nameServers, resolvers, signal, port = 53 }: DelegationOptions,
): Promise<Delegation> {
  let zone = first;
  for (let cuts = 0; cuts < mostCuts; cuts++) {
    const servers = await addressesOf(zone.servers, resolver, port, resolvers !== null);
    const replies = await Promise.all(
      servers.map((server) => ask(server, { id: randomInt(65_536), name: domain, type: NS }, waitMs, signal)),
    );
    const said: Named[] = [];
    let deeper: Zone | null = null;
    for (const reply of replies) {
      const read = reply === null ? null : readReply(reply, domain, zone.name);
      if (read !== null && "servers" in read) deeper = read;
      else if (read !== null) said.push(read);
    }
    if (deeper === null) return judge(said, nameServers);
    zone = deeper;
  }
  return "Unknown";
}

/** What each server of the parent says, against what it should say. */
function judge(said: readonly Named[], nameServers: readonly string[]): Delegation {
  if (said.length === 0) return "Unknown";
  const isOurs = (names: ReadonlySet<string>) => [...names].some((name) => nameServers.includes(name));
  if (!said.some(({ reachable }) => isOurs(reachable))) return "NotDelegated";
  const isWhole = said.every(
    ({ names, reachable }) =>
      names.size > 0 && [...names].every((name) => reachable.has(name) && nameServers.includes(name)),
  );
  return isWhole ? "Delegated" : "Partial";
}

interface Named {
  /** The name servers that the parent names. */
  readonly names: ReadonlySet<string>;
  /** Those of them that are found: one inside of the domain needs its address beside it (glue, RFC 9471). */
  readonly reachable: ReadonlySet<string>;
}

/** What one server says: the domain's name servers, those of a zone between, or nothing that counts (null). */
function readReply(reply: Message, domain: string, parent: string): Named | Zone | null {
  const targets = (records: readonly WireRecord[]): Set<string> => {
    const data = records.map(({ start, end }) => decodeData("NS", reply.bytes, start, end));
    return new Set(data.filter((name) => typeof name === "string").map((name) => name.toLowerCase()));
  };
  const of = (records: readonly WireRecord[], type: number) =>
    records.filter((record) => record.type === type && record.class === 1);
  const at = (name: string) => (record: WireRecord) => record.name.toLowerCase() === name;
  // A server that serves the domain too answers for it, and needs no glue.
  const own = of(reply.answers, NS).filter(at(domain));
  if (reply.isAuthoritative && own.length > 0) {
    const names = targets(own);
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
  const isDenial = reply.isAuthoritative && (reply.rcode === 3 || (reply.rcode === 0 && own.length === 0));
  return isDenial ? { names: new Set(), reachable: new Set() } : null;
}

const isWithin = (name: string, zone: string): boolean => zone === "" || name === zone || name.endsWith(`.${zone}`);

/**
 * Whoever names servers of a parent must not make us look around inside our own network, unless the operator has named resolvers of its
 * own, which may know an inner tree.
 */
async function addressesOf(
  names: readonly string[],
  resolver: NameResolver,
  port: number,
  isInner: boolean,
): Promise<Server[]> {
  const none = (): string[] => [];
  const found = await Promise.all(
    names.slice(0, mostServers).map(async (name) => {
      const [v4, v6] = await Promise.all([resolver.resolve4(name).catch(none), resolver.resolve6(name).catch(none)]);
      const open = [...v4.slice(0, 2), ...v6.slice(0, 1)].filter(
        (address) => isInner || ipaddr.process(address).range() === "unicast",
      );
      return open.map((address) => ({ name, address, port }));
    }),
  );
  return found.flat().slice(0, mostServers);
}
