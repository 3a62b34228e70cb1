/**
 * Records as the name server serves them: the names they stand at, their data in parts, the sets they form, and what every domain
 * has without being asked. The shapes are those of the name server's port.
 */
import { type RecordType, recordSpecs } from "@brume/api/record/types.ts";
import { quote } from "../../base/quote.ts";
import type { RecordData, RecordFormat, RecordSet, Soa } from "../../drivers/nameserver/interface.ts";
import { recordData } from "./data.ts";
import { absolute, maxName, type NameError, refuseName, relativeTo } from "./name.ts";
import type { StoredRecord } from "./record.ts";

/** The relative owner at which a record is served: of an SRV `_service._proto` before its own. */
export function servedOwner({ type, owner, value }: Pick<StoredRecord, "type" | "owner" | "value">): string {
  if (recordSpecs[type].labels === undefined) return owner;
  const service = value.slice(0, value.indexOf(" "));
  return owner === "@" ? service : `${service}.${owner}`;
}

/**
 * The other way: a record of a master file or a name server's answer, as it is kept. `name` is absolute ASCII without final dot,
 * `data` a value; of an SRV without service and protocol, which are the first labels of the name.
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
 * The labels of a name from the top down, each with a dot behind it: `a.www.` for `www.a`, `""` for `@`. In binary order
 * everything at and below a name is one range, from its key up to `endOfKey`. Works for relative owners and for whole names, and knows
 * no letter case.
 */
export function sortKey(name: string): string {
  if (name === "@") return "";
  const lower = name.toLowerCase();
  return lower.includes(".") ? `${lower.split(".").reverse().join(".")}.` : `${lower}.`;
}

/** The least text that is greater than every key at or below this one: the slash follows the dot, `~` every label. */
export const endOfKey = (key: string): string => (key === "" ? "~" : `${key.slice(0, -1)}/`);

/** Records of one set have the same. */
export const setKey = (record: StoredRecord): string => `${record.type} ${servedOwner(record).toLowerCase()}`;

/** How names are spelled by the first of their records, by name in lower case; only those with capital letters. */
export function spellingsOf(records: Iterable<StoredRecord>): Map<string, string> {
  const spellings = new Map<string, string>();
  let lowered: Set<string> | undefined;
  for (const record of records) {
    const owner = servedOwner(record);
    const lower = owner.toLowerCase();
    if (owner === lower) (lowered ??= new Set()).add(lower);
    else if (!spellings.has(lower) && lowered?.has(lower) !== true) spellings.set(lower, owner);
  }
  return spellings;
}

/**
 * The sets that some records of a domain form, by their keys, in order of their first records. A set is served with the smallest of its
 * TTLs, and all sets of a name as its first record spells it.
 */
export function recordSets(records: readonly StoredRecord[], domain: string): Map<string, RecordSet> {
  const spellings = spellingsOf(records);
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
  }
  return sets;
}

const automaticTtl = 3600;

/** The SOA that every domain has (docs/spec.md#domain). A name too long for `hostmaster` before it has no mailbox: the root. */
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

/** The NS set of a domain that has none of its own at the top. */
export const automaticNs = (domain: string, nameServers: readonly string[]): RecordSet => ({
  owner: domain,
  type: recordSpecs.NS,
  ttl: automaticTtl,
  data: nameServers.map((target) => [target]),
});
