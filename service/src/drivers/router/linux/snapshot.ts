/**
 * Reads the actual state of networks from one run of `ip -batch` that enters each namespace in turn: links with addresses, routes, queues,
 * and nftables tables with their counters. Each line of output is recognised by its form, so that a missing line (a namespace was removed
 * meanwhile) does not shift the others. The alias of `lo`, which cannot be deleted, records what was applied. No command reads the elements
 * that packets add to sets: there is one for each connection, and `nft list counters` reads them all.
 */
import type { Count } from "../interface.ts";

/** A network device. */
export interface Link {
  readonly name: string;
  readonly kind: string;
  readonly master: string | null;
  readonly up: boolean;
  readonly carrier: boolean;
  readonly isolated: boolean;
  readonly mtu: number;
  readonly mac: string;
  readonly alias: string;
  /** Addresses with prefix length, link-local IPv6 included. */
  readonly addresses: readonly string[];
  /** Traffic as seen from this end. */
  readonly sent: Count;
  readonly received: Count;
}

/** The actual state of one network namespace. */
export interface NamespaceState {
  readonly links: ReadonlyMap<string, Link>;
  /** Routes in the syntax of `ip route`: `default via 169.254.1.1 dev up0`. */
  readonly routes: ReadonlySet<string>;
  /** Rate in Mbit/s of each device with a token bucket. */
  readonly rates: ReadonlyMap<string, number>;
  /** nftables counters by table, then by name. */
  readonly counters: ReadonlyMap<string, ReadonlyMap<string, Count>>;
  /** `sysctl` settings by name. */
  readonly settings: ReadonlyMap<string, string>;
  /** Tables as nft lists them, without counts of packets and elements; `addElements` adds those that packets do not add. */
  readonly rules: string;
}

/** Renders lines for `ip -force -batch -`. `deep` adds what only `apply` needs. */
export function snapshotLines(namespace: string, deep: boolean, settings: readonly string[] = []): string[] {
  const enter = `netns exec ${namespace}`;
  const lines = [`${enter} ip -j -s -d addr`, `${enter} nft -t list ruleset`];
  if (!deep) return lines;
  return [
    ...lines,
    `${enter} ip -j route`,
    `${enter} ip -j -6 route`,
    `${enter} tc -j qdisc`,
    `${enter} sysctl -e ${settings.join(" ")}`,
  ];
}

const tablesIn = (rules: string): string[] => rules.split(/^(?=table )/m);
const headOf = (table: string): string => table.slice(0, table.indexOf(" {"));

/** Renders lines for `ip -force -batch -` that list each table with a set whose elements packets do not add. */
export function elementLines(namespace: string, rules: string): string[] {
  const hasElements = (table: string): boolean =>
    [...table.matchAll(/^\t(?:set|map) \S+ \{\n((?:\t\t.*\n)*)/gm)].some(([, body = ""]) => !/\bdynamic\b/.test(body));
  return tablesIn(rules)
    .filter(hasElements)
    .map((table) => `netns exec ${namespace} nft -s list ${headOf(table)}`);
}

/** Returns `rules` with the tables that the lines of `elementLines` have listed. */
export function addElements(rules: string, listed: string): string {
  const withElements = new Map(tablesIn(withoutPackets(compact(listed))).map((table) => [headOf(table), table]));
  return tablesIn(rules)
    .map((table) => withElements.get(headOf(table)) ?? table)
    .join("");
}

/** Removes empty lines. */
const compact = (listing: string): string => listing.replaceAll(/^\n/gm, "");

type Json = Readonly<Record<string, unknown>>;
const record = (value: unknown): Json => (typeof value === "object" && value !== null ? (value as Json) : {});
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const number = (value: unknown): number => (typeof value === "number" ? value : 0);
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(record) : []);
const count = (value: unknown): Count => ({
  packets: number(record(value)["packets"]),
  bytes: number(record(value)["bytes"]),
});

function readLink(row: Json): Link {
  const info = record(row["linkinfo"]);
  const flags = Array.isArray(row["flags"]) ? row["flags"] : [];
  const stats = record(row["stats64"]);
  return {
    name: text(row["ifname"]),
    kind: text(info["info_kind"]),
    master: text(row["master"]) || null,
    up: flags.includes("UP"),
    carrier: flags.includes("LOWER_UP"),
    isolated: record(info["info_slave_data"])["isolated"] === true,
    mtu: number(row["mtu"]),
    mac: text(row["address"]),
    alias: text(row["ifalias"]),
    addresses: list(row["addr_info"]).map((address) => `${text(address["local"])}/${number(address["prefixlen"])}`),
    sent: count(stats["tx"]),
    received: count(stats["rx"]),
  };
}

/** Parses `ip -j addr` or `ip -j link`; returns links by name. */
export function readLinks(json: string): Map<string, Link> {
  return new Map(list(JSON.parse(json || "[]")).map((row) => [text(row["ifname"]), readLink(row)]));
}

/** Parses `ip -j route`; returns routes in the syntax of `ip route`. */
export function readRoutes(json: string): string[] {
  return list(JSON.parse(json || "[]")).map((row) => {
    const via = text(row["gateway"]);
    return `${text(row["dst"])}${via === "" ? "" : ` via ${via}`} dev ${text(row["dev"])}`;
  });
}

type Counters = Map<string, Map<string, Count>>;

/** The begin of a table, a named counter, and a rule with a counter and a comment. */
const countLine =
  /^table \S+ (\S+) \{|^\tcounter (\S+) \{\n\t\tpackets (\d+) bytes (\d+)|\bcounter packets (\d+) bytes (\d+) [a-z ]+ comment "(\w+)"$/gm;

/** Parses the counters in the output of `nft list ruleset`: the named ones, and the sums of those of rules with the same comment. */
function readCounters(rules: string): Counters {
  const counters: Counters = new Map();
  let counts = new Map<string, Count>();
  for (const [, table, named, packets, bytes, morePackets, moreBytes, comment] of rules.matchAll(countLine)) {
    if (table !== undefined) {
      counts = new Map();
      counters.set(table, counts);
      continue;
    }
    const name = named ?? comment ?? "";
    const before = counts.get(name);
    counts.set(name, {
      packets: Number(packets ?? morePackets) + (before?.packets ?? 0),
      bytes: Number(bytes ?? moreBytes) + (before?.bytes ?? 0),
    });
  }
  return counters;
}

/** Removes what changes with each packet, as `nft -s` does. */
const withoutCounts = (rules: string): string =>
  rules.replaceAll(/^\t\tpackets \d+ bytes \d+\n/gm, "").replaceAll(/\bcounter packets \d+ bytes \d+/g, "counter");

/** Parses lines `name = value` of sysctl. */
export const readSettings = (output: string): Map<string, string> =>
  new Map([...output.matchAll(/^(\S+) = (.*)$/gm)].map(([, name = "", value = ""]) => [name, value]));

/** Removes the elements of dynamic sets, which packets add, from a listing. */
export const withoutPackets = (rules: string): string =>
  rules.replaceAll(/(\bflags dynamic\S*(?:\n\s*timeout \S+)?)\n\s*elements = \{[^}]*\}/g, "$1");

/** Parses the output of a batch; returns one state per namespace that was read, in their order. */
export function readSnapshot(output: string): NamespaceState[] {
  const all: NamespaceState[] = [];
  let links: ReadonlyMap<string, Link> = new Map();
  let routes = new Set<string>();
  let rates = new Map<string, number>();
  let settings = new Map<string, string>();
  let rules: string[] = [];
  const finish = () => {
    const text = rules.map((line) => `${line}\n`).join("");
    if (links.size > 0)
      all.push({ links, routes, rates, counters: readCounters(text), settings, rules: withoutCounts(text) });
    routes = new Set();
    rates = new Map();
    settings = new Map();
    rules = [];
  };
  for (const line of output.split("\n")) {
    if (line.startsWith("[")) {
      const [first] = list(JSON.parse(line));
      if (first?.["link_type"] !== undefined) {
        finish();
        links = readLinks(line);
      } else if (first?.["dst"] !== undefined) for (const route of readRoutes(line)) routes.add(route);
      // tc counts bytes per second.
      else
        for (const row of list(JSON.parse(line)))
          if (row["kind"] === "tbf") rates.set(text(row["dev"]), (number(record(row["options"])["rate"]) * 8) / 1e6);
    } else if (/^net\.\S+ = /.test(line)) for (const [name, value] of readSettings(line)) settings.set(name, value);
    else if (line !== "") rules.push(line);
  }
  finish();
  return all;
}

/**
 * Renders the mark in the alias of `lo`: the network and its generation, 0 until the first is complete. Fast rule changes record a newer
 * generation in a counter.
 */
export const markText = (network: number, generation: number): string => `brume ${network} ${generation}`;

/** Reads network and generation from the mark and the counters of `generationLine`; `network` is null on the host. */
export function readMark(found: NamespaceState): { readonly network: number | null; readonly generation: number } {
  const [, network, generation] = /^brume (\d+) (\d+)$/.exec(found.links.get("lo")?.alias ?? "") ?? [];
  const tables = [...found.counters.values()].map((counters) => [...counters.keys()]);
  const names = tables.flat().filter((name) => name.startsWith("g_"));
  const later = names.map((name) => Number(name.slice(2)));
  return {
    network: network === undefined ? null : Number(network),
    generation: Math.max(Number(generation ?? 0), ...later),
  };
}

/**
 * Counts the verdict keywords of a rule set. The counts are equal in a rendered text and in nft's listing of it, which differ in format. A
 * rule that another program added or removed changes them.
 */
export function countVerdicts(rules: string): string {
  const counts = new Map<string, number>();
  for (const [word] of rules.matchAll(/\b(accept|drop|goto|jump|return|masquerade|counter name|dormant)\b/g))
    counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .map(([word, times]) => `${word} ${times}`)
    .sort()
    .join(", ");
}
