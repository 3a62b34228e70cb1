/**
 * Fetches the records of a domain from its present name servers: the complete zone if they allow a transfer (AXFR, RFC 5936), else the
 * records at the top and at a few common names. It is best effort within a deadline: failures are part of the result. Records that conflict
 * or that Brume does not support are left out and listed.
 */
import { randomInt } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { limits, type RecordType, recordTypes } from "@brume/api/dns.ts";
import { recordSpecs } from "@brume/api/record/types.ts";
import ipaddr from "ipaddr.js";
import { type DnsServer, exchange, sendQuery } from "./exchange.ts";
import { decodeData } from "./model/data.ts";
import { asciiName } from "./model/name.ts";
import { recordKey, type StoredRecord } from "./model/record.ts";
import { checkZone } from "./model/rules.ts";
import { fromServed } from "./model/served.ts";
import { type Message, typeName, typeOf, type WireRecord } from "./model/wire.ts";
import { maxSkipped } from "./model/zonefile/parse.ts";

/** Names that are queried in addition to the top (docs/spec.md#domain). */
const names = ["www", "mail", "ftp", "smtp", "imap", "pop", "autodiscover", "_dmarc"];

const maxServers = 8;
const maxRecords = 100_000;
const maxBytes = 64 * 1024 * 1024;
const atOnce = 16;

/** The resolver of `node:dns/promises`, or a substitute in tests. */
export type NameResolver = Pick<Resolver, "resolveNs" | "resolve4" | "resolve6">;

export interface FetchOptions {
  /** Milliseconds. */
  readonly deadlineMs: number;
  readonly resolver?: NameResolver;
  /** Addresses of resolvers; empty: none; null: those of the host. */
  readonly resolvers?: readonly string[] | null;
  /** Name servers to use instead of those that the resolver finds. */
  readonly servers?: readonly DnsServer[];
  /** Returns ids of queries: 0 to 65535. */
  readonly random?: () => number;
}

/** Result of reading a zone from its present name servers. */
export interface Fetched {
  readonly state: "Completed" | "Failed";
  /** Records without conflicts and without NS at the top. */
  readonly records: readonly StoredRecord[];
  /** Records that were left out, at most 1000: `www.example.com. CAA`. */
  readonly skipped: readonly string[];
  /** Number of further ones. */
  readonly left: number;
  /** One sentence or two for people. */
  readonly detail: string;
}

/** `fetchZone` with its options bound. */
export type FetchZone = (domain: string) => Promise<Fetched>;

/** Fetches the records of a domain (ASCII). Never rejects, and ends within the deadline. */
export async function fetchZone(domain: string, options: FetchOptions): Promise<Fetched> {
  const allMs = options.deadlineMs;
  const deadline = new AbortController();
  const transfers = new AbortController();
  const timers = [
    setTimeout(() => deadline.abort(), allMs),
    // 40 % of the time remain for single queries, in case no server allows a transfer.
    setTimeout(() => transfers.abort(), allMs * 0.6),
  ];
  try {
    return await fetchWithin(domain, options, allMs, deadline.signal, transfers.signal);
  } finally {
    timers.forEach(clearTimeout);
  }
}

async function fetchWithin(
  domain: string,
  options: FetchOptions,
  allMs: number,
  signal: AbortSignal,
  transferSignal: AbortSignal,
): Promise<Fetched> {
  const random = options.random ?? (() => randomInt(65_536));
  const failed = (detail: string): Fetched => ({ state: "Failed", records: [], skipped: [], left: 0, detail });

  const servers = options.servers ?? (await findServers(domain, options.resolver ?? resolverOf(options), signal));
  if (servers.length === 0) return failed(`No name servers were found for ${domain}.`);
  const alive = await findAlive(domain, servers, allMs / 4, signal, random);
  if (alive.length === 0) return failed(`No name server of ${domain} responded for it.`);

  for (const server of alive) {
    const collector = createCollector(domain);
    if (await transfer(domain, server, collector, allMs / 5, transferSignal, random()))
      return collector.finish(`The zone was transferred from ${server.name} (${server.address}).`);
  }

  const collector = createCollector(domain);
  const questions = ["", ...names.map((name) => `${name}.`)]
    .map((prefix) => prefix + domain)
    .filter((name) => typeof asciiName(name) === "string")
    .flatMap((name) => recordTypes.map((type) => ({ name, type })));
  const answered = await queryAll(questions, alive, collector, allMs / 8, signal, random);
  if (answered === 0)
    return failed(`The name servers of ${domain} refused the transfer and did not respond to queries in time.`);
  const missing = answered < questions.length ? ` ${questions.length - answered} queries got no response.` : "";
  return collector.finish(
    `No name server allowed a zone transfer: the top and ${names.length} common names were queried.${missing}`,
  );
}

function resolverOf({ resolvers = null }: FetchOptions): NameResolver | null {
  if (resolvers?.length === 0) return null;
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  return resolver;
}

async function findServers(domain: string, resolver: NameResolver | null, signal: AbortSignal): Promise<DnsServer[]> {
  if (resolver === null) return [];
  const none = (): string[] => [];
  const expired = new Promise<string[]>((resolve) => signal.addEventListener("abort", () => resolve([])));
  const within = (lookup: Promise<string[]>) => Promise.race([lookup.catch(none), expired]);
  const hosts = (await within(resolver.resolveNs(domain))).slice(0, maxServers);
  const found = await Promise.all(
    hosts.map(async (name) => {
      const [v4, v6] = await Promise.all([within(resolver.resolve4(name)), within(resolver.resolve6(name))]);
      // Private addresses are excluded, so that a domain cannot direct queries into the operator's network.
      const allowed = [...v4.slice(0, 2), ...v6.slice(0, 1)].filter(
        (address) => ipaddr.process(address).range() === "unicast",
      );
      return allowed.map((address) => ({ name, address, port: 53 }));
    }),
  );
  return found.flat().slice(0, maxServers);
}

/** Returns the servers that serve the domain, the fastest first. */
async function findAlive(
  domain: string,
  servers: readonly DnsServer[],
  waitMs: number,
  signal: AbortSignal,
  random: () => number,
): Promise<DnsServer[]> {
  const alive: DnsServer[] = [];
  await Promise.all(
    servers.slice(0, maxServers).map(async (server) => {
      const answer = await sendQuery(server, { id: random(), name: domain, type: soaType }, waitMs, signal);
      if (answer?.rcode === 0) alive.push(server);
    }),
  );
  return alive;
}

const soaType = 6;
const axfrType = 252;

/** Transfers the zone into the collector. Resolves to whether it was complete (from SOA to SOA). */
async function transfer(
  domain: string,
  server: DnsServer,
  collector: Collector,
  idleMs: number,
  signal: AbortSignal,
  id: number,
): Promise<boolean> {
  let soas = 0;
  let bytes = 0;
  const error = await exchange(server, { id, name: domain, type: axfrType }, idleMs, signal, (message) => {
    bytes += message.bytes.length;
    if (message.rcode !== 0 || bytes > maxBytes) return false;
    for (const record of message.answers) {
      const isSoa = record.type === soaType && record.name.toLowerCase() === domain;
      if (isSoa) soas++;
      if (soas === 0 || !collector.add(message, record)) return false;
      if (soas === 2) return false;
    }
    return true;
  });
  return error === null && soas === 2;
}

/** Sends all queries, `atOnce` at a time, each to up to three servers in turn. Resolves to the number of answered queries. */
async function queryAll(
  questions: readonly { readonly name: string; readonly type: RecordType }[],
  servers: readonly DnsServer[],
  collector: Collector,
  waitMs: number,
  signal: AbortSignal,
  random: () => number,
): Promise<number> {
  let answered = 0;
  const waiting = questions.values();
  const worker = async (): Promise<void> => {
    for (const { name, type } of waiting) {
      for (let attempt = 0; attempt < 3 && !signal.aborted; attempt++) {
        const server = servers[attempt % servers.length] as DnsServer;
        const answer = await sendQuery(server, { id: random(), name, type: recordSpecs[type].code }, waitMs, signal);
        // NXDOMAIN (rcode 3) is an answer too.
        if (answer === null || (answer.rcode !== 0 && answer.rcode !== 3)) continue;
        answered++;
        for (const record of answer.answers)
          if (record.type === recordSpecs[type].code && record.name.toLowerCase() === name)
            collector.add(answer, record);
        break;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return answered;
}

/** Returns the text of a record that is left out. */
const describeSkipped = ({ type, owner }: StoredRecord, domain: string, code: string): string =>
  `${owner === "@" ? "" : `${owner}.`}${domain}. ${type}: ${code}`;

/** A fetched record that is not imported. */
export interface LeftOut {
  readonly record: StoredRecord;
  /** Why: a code of a conflict, or `quota_exceeded`. */
  readonly code: string;
}

/** Returns the texts of all records that were left out: at the fetch, and these. After 1000 follows only the number of further ones. */
export function listSkipped({ skipped, left }: Fetched, domain: string, others: readonly LeftOut[]): string[] {
  const texts = others
    .slice(0, maxSkipped - skipped.length)
    .map(({ record, code }) => describeSkipped(record, domain, code));
  const more = left + others.length - texts.length;
  return [...skipped, ...texts, ...(more > 0 ? [`and ${more} more`] : [])];
}

interface Collector {
  /** Adds or skips a record. Returns false if the limit of records is exceeded. */
  add(message: Message, record: WireRecord): boolean;
  finish(detail: string): Fetched;
}

function createCollector(domain: string): Collector {
  const records = new Map<string, StoredRecord>();
  const skipped: string[] = [];
  let left = 0;
  const skip = (text: string): void => {
    if (skipped.length < maxSkipped) skipped.push(text);
    else left++;
  };
  return {
    add(message, { name, type: number, class: klass, ttl, start, end }) {
      const type = typeOf(number);
      if (number === soaType || (type === "NS" && name.toLowerCase() === domain)) return true;
      const line = `${name}. ${typeName(number)}`;
      if (type === undefined || klass !== 1) skip(line);
      else {
        const owner = asciiName(name, true);
        const data = decodeData(type, message.bytes, start, end);
        // RFC 2181 section 8: a TTL with its highest bit set counts as 0.
        const seconds = ttl > limits.maxTtl ? 0 : ttl;
        if (typeof owner !== "string") skip(`${line}: the owner ${owner.reason}`);
        else if (typeof data !== "string") skip(`${line}: it ${data.reason}`);
        else {
          const record = fromServed(type, owner, seconds, data, domain);
          if ("reason" in record) skip(`${line}: the owner ${record.reason}`);
          else records.set(recordKey(record), record);
        }
      }
      return records.size <= maxRecords && left <= maxRecords;
    },
    finish(detail) {
      // Delegations are validated first, so that the records they hide are left out.
      const all = [...records.values()].sort((a, b) => Number(b.type === "NS") - Number(a.type === "NS"));
      const conflicting = new Map(checkZone(all).map(({ index, code }) => [index, code]));
      for (const [index, code] of conflicting) {
        skip(describeSkipped(all[index] as StoredRecord, domain, code));
      }
      const accepted = all.filter((_, index) => !conflicting.has(index));
      return { state: "Completed", records: accepted, skipped, left, detail };
    },
  };
}
