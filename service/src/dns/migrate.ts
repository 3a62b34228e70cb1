/**
 * Fetches a domain from the name servers that serve it at present: the whole zone where they give it (AXFR, RFC 5936), else what
 * they answer for its top and a few names that most domains have. It is a courtesy with a deadline: whatever goes wrong is said in the
 * result, and what comes can stand beside each other here, or is left out and listed.
 */
import { randomInt } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { limits, type RecordType, recordTypes } from "@brume/api/dns.ts";
import { recordSpecs } from "@brume/api/record/types.ts";
import ipaddr from "ipaddr.js";
import { ask, exchange, type Server } from "./exchange.ts";
import { decodeData } from "./model/data.ts";
import { asciiName } from "./model/name.ts";
import { recordKey, type StoredRecord } from "./model/record.ts";
import { checkZone } from "./model/rules.ts";
import { fromServed } from "./model/served.ts";
import { type Message, typeName, typeOf, type WireRecord } from "./model/wire.ts";

/** Names asked for beside the top (docs/spec.md#domain). */
const names = ["www", "mail", "ftp", "smtp", "imap", "pop", "autodiscover", "_dmarc"];

const maxServers = 8;
const maxRecords = 100_000;
const maxBytes = 64 * 1024 * 1024;
const maxSkipped = 1000;
const atOnce = 16;

/** Of `node:dns/promises`, or of a test. */
export type NameResolver = Pick<Resolver, "resolveNs" | "resolve4" | "resolve6">;

export interface FetchOptions {
  /** Milliseconds, at most 5000. */
  readonly deadlineMs: number;
  readonly resolver?: NameResolver;
  /** Servers that the resolver asks: addresses; empty for nobody, null for the machine's own. */
  readonly resolvers?: readonly string[] | null;
  /** Instead of those that the resolver finds. */
  readonly servers?: readonly Server[];
  /** For the ids of queries: 0 to 65535. */
  readonly random?: () => number;
}

export interface Fetched {
  readonly state: "Completed" | "Failed";
  /** Can stand beside each other, and have no NS at the top. */
  readonly records: readonly StoredRecord[];
  /** What was left out: `www.example.com. CAA`. */
  readonly skipped: readonly string[];
  /** One sentence or two for people. */
  readonly detail: string;
}

/** `fetchZone` with everything but the domain said. */
export type FetchZone = (domain: string) => Promise<Fetched>;

/** Fetches the domain (ASCII). Never rejects, never takes longer than the deadline. */
export async function fetchZone(domain: string, options: FetchOptions): Promise<Fetched> {
  const allMs = Math.max(1, Math.min(options.deadlineMs, limits.importSeconds * 1000));
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), allMs);
  try {
    return await fetchWithin(domain, options, allMs, deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}

async function fetchWithin(
  domain: string,
  options: FetchOptions,
  allMs: number,
  signal: AbortSignal,
): Promise<Fetched> {
  const random = options.random ?? (() => randomInt(65_536));
  const failed = (detail: string): Fetched => ({ state: "Failed", records: [], skipped: [], detail });

  const servers = options.servers ?? (await findServers(domain, options.resolver ?? resolverOf(options), signal));
  if (servers.length === 0) return failed(`No name servers were found for ${domain}.`);
  const alive = await findAlive(domain, servers, allMs / 4, signal, random);
  if (alive.length === 0) return failed(`None of the name servers of ${domain} answers for it.`);

  // The rest of the time is for the single questions, should nobody give the zone.
  const transferSignal = AbortSignal.any([signal, AbortSignal.timeout(allMs * 0.6)]);
  for (const server of alive) {
    const basket = createBasket(domain);
    if (await transfer(domain, server, basket, allMs / 5, transferSignal, random()))
      return basket.finish(`The zone was transferred from ${server.name} (${server.address}).`);
  }

  const basket = createBasket(domain);
  const questions = ["", ...names.map((name) => `${name}.`)]
    .map((prefix) => prefix + domain)
    .filter((name) => typeof asciiName(name) === "string")
    .flatMap((name) => recordTypes.map((type) => ({ name, type })));
  const answered = await askAll(questions, alive, basket, allMs / 8, signal, random);
  if (answered === 0) return failed(`The name servers of ${domain} refused the zone and answered nothing in time.`);
  const missing = answered < questions.length ? ` ${questions.length - answered} questions were not answered.` : "";
  return basket.finish(
    `No name server gave the whole zone: the top and ${names.length} common names were asked for.${missing}`,
  );
}

function resolverOf({ resolvers = null }: FetchOptions): NameResolver | null {
  if (resolvers?.length === 0) return null;
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  return resolver;
}

async function findServers(domain: string, resolver: NameResolver | null, signal: AbortSignal): Promise<Server[]> {
  if (resolver === null) return [];
  const none = (): string[] => [];
  const expired = new Promise<string[]>((resolve) => signal.addEventListener("abort", () => resolve([])));
  const within = (lookup: Promise<string[]>) => Promise.race([lookup.catch(none), expired]);
  const hosts = (await within(resolver.resolveNs(domain))).slice(0, maxServers);
  const found = await Promise.all(
    hosts.map(async (name) => {
      const [v4, v6] = await Promise.all([within(resolver.resolve4(name)), within(resolver.resolve6(name))]);
      // Whoever names servers of a domain must not make us look around inside our own network.
      const open = [...v4.slice(0, 2), ...v6.slice(0, 1)].filter(
        (address) => ipaddr.process(address).range() === "unicast",
      );
      return open.map((address) => ({ name, address, port: 53 }));
    }),
  );
  return found.flat().slice(0, maxServers);
}

/** Servers that know the domain, those that answer first before the others. */
async function findAlive(
  domain: string,
  servers: readonly Server[],
  waitMs: number,
  signal: AbortSignal,
  random: () => number,
): Promise<Server[]> {
  const alive: Server[] = [];
  await Promise.all(
    servers.slice(0, maxServers).map(async (server) => {
      const answer = await ask(server, { id: random(), name: domain, type: soaType }, waitMs, signal);
      if (answer?.rcode === 0) alive.push(server);
    }),
  );
  return alive;
}

const soaType = 6;
const axfrType = 252;

/** Whether the server gave the whole zone: from SOA to SOA. */
async function transfer(
  domain: string,
  server: Server,
  basket: Basket,
  idleMs: number,
  signal: AbortSignal,
  id: number,
): Promise<boolean> {
  let soas = 0;
  let bytes = 0;
  const trouble = await exchange(server, { id, name: domain, type: axfrType }, idleMs, signal, (message) => {
    bytes += message.bytes.length;
    if (message.rcode !== 0 || bytes > maxBytes) return false;
    for (const record of message.answers) {
      const isSoa = record.type === soaType && record.name.toLowerCase() === domain;
      if (isSoa) soas++;
      if (soas === 0 || !basket.put(message, record)) return false;
      if (soas === 2) return false;
    }
    return true;
  });
  return trouble === null && soas === 2;
}

/** Asks all questions, a few at a time, each of up to three servers in turn; how many were answered. */
async function askAll(
  questions: readonly { readonly name: string; readonly type: RecordType }[],
  servers: readonly Server[],
  basket: Basket,
  waitMs: number,
  signal: AbortSignal,
  random: () => number,
): Promise<number> {
  let answered = 0;
  const waiting = questions.values();
  const worker = async (): Promise<void> => {
    for (const { name, type } of waiting) {
      for (let attempt = 0; attempt < 3 && !signal.aborted; attempt++) {
        const server = servers[attempt % servers.length] as Server;
        const answer = await ask(server, { id: random(), name, type: recordSpecs[type].code }, waitMs, signal);
        // No such name is an answer too.
        if (answer === null || (answer.rcode !== 0 && answer.rcode !== 3)) continue;
        answered++;
        for (const record of answer.answers)
          if (record.type === recordSpecs[type].code && record.name.toLowerCase() === name) basket.put(answer, record);
        break;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return answered;
}

interface Basket {
  /** Takes a record or leaves it out; false: there is no room for more. */
  put(message: Message, record: WireRecord): boolean;
  finish(detail: string): Fetched;
}

function createBasket(domain: string): Basket {
  const records = new Map<string, StoredRecord>();
  const skipped: string[] = [];
  let left = 0;
  const skip = (text: string): void => {
    if (skipped.length < maxSkipped) skipped.push(text);
    else left++;
  };
  return {
    put(message, { name, type: number, class: klass, ttl, start, end }) {
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
      // What hides other records goes first, so that the hidden ones are left out.
      const all = [...records.values()].sort((a, b) => Number(b.type === "NS") - Number(a.type === "NS"));
      const guilty = new Map(checkZone(all).map(({ index, code }) => [index, code]));
      for (const [index, code] of guilty) {
        const { type, owner } = all[index] as StoredRecord;
        skip(`${owner === "@" ? "" : `${owner}.`}${domain}. ${type}: ${code}`);
      }
      if (left > 0) skipped.push(`and ${left} more`);
      return { state: "Completed", records: all.filter((_, index) => !guilty.has(index)), skipped, detail };
    },
  };
}
