/**
 * Converts between stored records and records as the name server serves them: names, record sets, and the automatic SOA and NS records.
 * The types are those of the name server's driver interface.
 */
import { type RecordType, recordSpecs } from "@brume/api/record/types.ts";
import { quote } from "../../base/quote.ts";
import { runAtOnce } from "../../base/turn.ts";
import type { RecordData, RecordFormat, RecordSet, Soa } from "../../drivers/nameserver/interface.ts";
import { recordData } from "./data.ts";
import { absolute, maxName, type NameError, refuseName, relativeTo } from "./name.ts";
import type { StoredRecord } from "./record.ts";

/** Returns the relative owner at which a record is served: for an SRV with `_service._proto` in front. */
export function servedOwner({ type, owner, value }: Pick<StoredRecord, "type" | "owner" | "value">): string {
  if (recordSpecs[type].labels === undefined) return owner;
  const service = value.slice(0, value.indexOf(" "));
  return owner === "@" ? service : `${service}.${owner}`;
}

/**
 * Converts a record of a zone file or DNS answer into its stored form, or returns an error. `name` is absolute ASCII without final dot.
 * `data` is a value; for an SRV without service and protocol, which are the first labels of `name`. `ttl` in s.
 */
export function fromServed(
  type: RecordType,
  name: string,
  ttl: number,
  data: string,
  domain: string,
): StoredRecord | NameError {
  const { wildcard, alias, labels } = recordSpecs[type];
  const owner = relativeTo(name, domain);
  if (owner === null) return refuseName("name_outside_domain", `is not inside ${quote(domain)}: ${quote(`${name}.`)}`);
  if (owner.startsWith("*") && !wildcard)
    return refuseName("format_invalid", `may not begin with * in an ${type} record: ${quote(`${name}.`)}`);
  if (alias && data.toLowerCase() === name.toLowerCase())
    return refuseName("format_invalid", `must not be an alias of itself, as ${quote(`${name}.`)} is`);
  if (labels === undefined) return { type, owner, ttl, value: data };
  const words = owner.split(".");
  const first = words.slice(0, labels.length);
  const rest = words.slice(labels.length);
  if (first.length < labels.length || first.some((label) => !/^_./.test(label))) {
    const wanted = labels.map(({ field }) => `_${field.toLowerCase()}`).join(".");
    return refuseName("format_invalid", `must begin with ${wanted} in an ${type} record: ${quote(`${name}.`)}`);
  }
  return { type, owner: rest.join(".") || "@", ttl, value: `${first.join(".").toLowerCase()} ${data}` };
}

/**
 * Returns the labels of a name in reverse order, in lower case, each followed by a dot: `a.www.` for `www.a`, `""` for `@`. In binary order
 * the keys at and below a name are one range, from its key up to `endOfKey`. Accepts relative and absolute names.
 */
export function sortKey(name: string): string {
  if (name === "@") return "";
  const lower = name.toLowerCase();
  return lower.includes(".") ? `${lower.split(".").reverse().join(".")}.` : `${lower}.`;
}

/** Returns a text that is greater than every key at or below this one: in ASCII `/` follows the dot, and `~` is above all labels. */
export const endOfKey = (key: string): string => (key === "" ? "~" : `${key.slice(0, -1)}/`);

/** Returns a key that is equal for the records of one set. */
export const setKey = (record: StoredRecord): string => `${record.type} ${servedOwner(record).toLowerCase()}`;

/** Records whose names are compared without a yield. */
const spelledTogether = 500;

/** Returns, with yields, the spelling of each name in its first record, by name in lower case. Contains only names with capital letters. */
function* spellingsOf(records: readonly StoredRecord[]): Generator<void, Map<string, string>> {
  const spellings = new Map<string, string>();
  let lowered: Set<string> | undefined;
  for (const [index, record] of records.entries()) {
    if (index % spelledTogether === spelledTogether - 1) yield;
    const owner = servedOwner(record);
    const lower = owner.toLowerCase();
    if (owner === lower) (lowered ??= new Set()).add(lower);
    else if (!spellings.has(lower) && lowered?.has(lower) !== true) spellings.set(lower, owner);
  }
  return spellings;
}

/** Returns the same as `groupRecords`, at once. */
export const recordSets = (records: readonly StoredRecord[], domain: string): Map<string, RecordSet> =>
  runAtOnce(groupRecords(records, domain)).sets;

/** Record sets by key. */
export interface Grouped {
  readonly sets: Map<string, RecordSet>;
  /** The spelling of names with capital letters, by name in lower case. */
  readonly spellings: ReadonlyMap<string, string>;
}

/**
 * Groups records of a domain into sets, with yields, by key, in the order of their first records. A set has the smallest TTL of its records. All sets of
 * a name have the spelling of its first record.
 */
export function* groupRecords(records: readonly StoredRecord[], domain: string): Generator<void, Grouped> {
  const spellings = yield* spellingsOf(records);
  const sets = new Map<string, { owner: string; type: RecordFormat; ttl: number; data: RecordData[] }>();
  for (const record of records) {
    const key = setKey(record);
    const set = sets.get(key);
    if (set === undefined) {
      const { type, ttl } = record;
      const lower = key.slice(type.length + 1);
      const owner = absolute(spellings.get(lower) ?? lower, domain);
      sets.set(key, { owner, type: recordSpecs[type], ttl, data: [recordData(record)] });
    } else {
      set.ttl = Math.min(set.ttl, record.ttl);
      set.data.push(recordData(record));
    }
    yield;
  }
  return { sets, spellings };
}

const automaticTtl = 3600;

/** Returns the SOA of a domain (docs/spec.md#domain). If `hostmaster.` plus the domain is too long for a name, the mailbox is the root. */
export function automaticSoa(domain: string, nameServers: readonly string[]): Soa {
  const mailbox = `hostmaster.${domain}`;
  return {
    mname: nameServers[0] ?? domain,
    rname: mailbox.length > maxName ? "" : mailbox,
    ttl: automaticTtl,
    refresh: 3600,
    retry: 600,
    expire: 1_209_600,
    minimum: 60,
  };
}

/** Returns the NS set of a domain that has no own NS records at the top. */
export const automaticNs = (domain: string, nameServers: readonly string[]): RecordSet => ({
  owner: domain,
  type: recordSpecs.NS,
  ttl: automaticTtl,
  data: nameServers.map((target) => [target]),
});
