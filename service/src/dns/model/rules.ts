/**
 * Rules for records that may exist together in a domain (docs/spec.md#record, RFC 1034 sections 3.6.2 and 4.2, RFC 2181 section 5).
 *
 * `checkZone` validates each record against the previous ones, in one pass. `conflictQueries` returns the few index look-ups that find all
 * records a new record may conflict with. So a change is validated against its neighbours only, and costs the same in a domain of a
 * million records as in one of ten.
 */
import type { ErrorCode } from "@brume/api/errors.ts";
import { limits } from "@brume/api/record/spec.ts";
import { type RecordType, recordSpecs, recordTypes } from "@brume/api/record/types.ts";
import { ApiError, errorAt, fieldError } from "../../base/error.ts";
import { runAtOnce } from "../../base/turn.ts";
import { answerBytes } from "./data.ts";
import { absolute } from "./name.ts";
import { ownerField, recordKey, type StoredRecord } from "./record.ts";
import { endOfKey, servedOwner, sortKey } from "./served.ts";

/** `null_mx`: a null MX beside another MX (RFC 7505 section 3). */
type QueryCode = Extract<ErrorCode, "cname_conflict" | "delegation_conflict" | "record_exists"> | "null_mx";
/** `too_long`: a record set that does not fit into a DNS answer. */
export type RuleCode = QueryCode | "cname_at_apex" | "too_long";

/**
 * A look-up of conflicting rows: rows of these types at one of these sort keys (or between two), with this value (or another value), except
 * the record itself. Each matching row is a conflict, and there are no others. Keys are those of the served owner.
 */
export interface ConflictQuery {
  readonly code: QueryCode;
  readonly types: readonly RecordType[];
  readonly keys: readonly string[];
  /** Used instead of `keys`: greater than the first and less than the second. */
  readonly between?: readonly [string, string];
  readonly value?: string;
  readonly otherThan?: string;
}

/** Reason why a record is rejected, and the record that it conflicts with, if any. */
export interface Conflict<Row> {
  readonly code: RuleCode;
  readonly other: Row | null;
}

/** Returns whether the type is an address, which is allowed below a delegated name too (glue). */
const isGlue = (type: RecordType): boolean => recordSpecs[type].delegated === "at and below the cut";
const isAllowedAtCut = (type: RecordType): boolean => recordSpecs[type].delegated !== undefined;

/** Data of an MX for a name that accepts no mail (RFC 7505). */
const nullMx = "0 .";
const isNullMx = ({ type, value }: StoredRecord): boolean => type === "MX" && value === nullMx;

const notCname = recordTypes.filter((type) => type !== "CNAME");
const notGlue = recordTypes.filter((type) => !isGlue(type));
const notAtCut = recordTypes.filter((type) => !isAllowedAtCut(type));

/** Returns the look-ups for a record; the first that matches determines the error. */
export function conflictQueries(record: StoredRecord): ConflictQuery[] {
  const { type, value } = record;
  const served = servedOwner(record);
  const key = sortKey(served);
  const keys = [key];
  const queries: ConflictQuery[] = [];
  if (type === "CNAME") {
    queries.push({ code: "cname_conflict", types: notCname, keys });
    queries.push({ code: "cname_conflict", types: ["CNAME"], keys, otherThan: value });
  } else queries.push({ code: "cname_conflict", types: ["CNAME"], keys });
  if (!isGlue(type)) {
    const cuts = keysAbove(key);
    if (!isAllowedAtCut(type) && key !== "") cuts.push(key);
    if (cuts.length > 0) queries.push({ code: "delegation_conflict", types: ["NS"], keys: cuts });
  }
  if (type === "NS" && key !== "") {
    queries.push({ code: "delegation_conflict", types: notAtCut, keys });
    queries.push({ code: "delegation_conflict", types: notGlue, keys: [], between: [key, endOfKey(key)] });
  }
  queries.push({ code: "record_exists", types: [type], keys, value });
  if (type === "MX")
    queries.push({
      code: "null_mx",
      types: ["MX"],
      keys,
      ...(isNullMx(record) ? { otherThan: value } : { value: nullMx }),
    });
  return queries;
}

/** Returns the keys of the names between a name and the top of the domain, both excluded. */
function keysAbove(key: string): string[] {
  const keys: string[] = [];
  for (let dot = key.indexOf("."); dot >= 0 && dot < key.length - 1; dot = key.indexOf(".", dot + 1))
    keys.push(key.slice(0, dot + 1));
  return keys;
}

const isCnameAtTop = ({ type, owner }: StoredRecord): boolean => type === "CNAME" && owner === "@";

/** Returns the API error of a conflict. `at` is the element of a changeset; `other` is null or absent if the caller may not see it. */
export function describeConflict(
  record: StoredRecord,
  { code, other }: Conflict<StoredRecord & { readonly id?: number }>,
  domain: { readonly id: number; readonly ascii: string },
  pointer = `/${ownerField(record.type, {})}`,
  at = "",
): ApiError {
  const nameOf = (one: StoredRecord) => absolute(servedOwner(one), domain.ascii);
  const name = nameOf(record);
  const existing = other
    ? `${other.id ? `record ${other.id}, ` : ""}${other.type} at ${nameOf(other)}`
    : "another record";
  if (code === "record_exists") {
    const which = other?.id ? `Record ${other.id} of domain ${domain.id}` : `Another record of domain ${domain.id}`;
    // Existing clients search the body for this sentence and treat it as success.
    const sentence = "Подобная запись для данного домена уже существует";
    return new ApiError(code, `${which} has the same type, name and data.`, [fieldError(at, code, sentence)]);
  }
  if (code === "too_long") {
    const max = limits.setBytes.toLocaleString("en");
    const sentence = `The ${record.type} records at ${name} do not fit into one DNS answer: together they may have at most ${max} bytes.`;
    return new ApiError("validation_failed", sentence, [fieldError(at + pointer, code, sentence)]);
  }
  if (code === "null_mx") {
    const sentence = `A name that accepts no mail has no other MX than "${nullMx}" (RFC 7505), but there is ${existing}.`;
    return new ApiError("validation_failed", sentence, [fieldError(at + pointer, "fields_conflict", sentence)]);
  }
  const sentences = {
    cname_at_apex: `${name} is the top of the domain, which cannot have a CNAME.`,
    cname_conflict: `A CNAME must be the only record at its name, but there is ${existing}.`,
    delegation_conflict: `A delegated name may have only NS and address records, and only addresses below it, but there is ${existing}.`,
  };
  return errorAt(code, at + pointer, sentences[code]);
}

/** A record of a list that conflicts with a previous one. Numbers are indexes of the list. */
export interface ZoneConflict {
  readonly index: number;
  readonly code: RuleCode;
  readonly other: number | null;
}

/** Records at one name; numbers are indexes of the list, -1 is none. */
interface Node {
  first: number;
  /** Index by record key; null while there is only one record. */
  all: Map<string, number> | null;
  cname: number;
  mx: number;
  nullMx: number;
  /** A record that a delegated name cannot have. */
  blocking: number;
  /** Bytes per record set; null while there is only one record. */
  bytes: Map<RecordType, number> | null;
}

/** A delegated name below the top: its first NS record, and the first record below it that is no address. */
interface Cut {
  ns: number;
  below: number;
}

/** Records between two yields. */
const recordsTogether = 500;

/** Validates a zone at once, see `findConflicts`. */
export const checkZone = (records: readonly StoredRecord[], existing?: number): ZoneConflict[] =>
  runAtOnce(findConflicts(records, existing));

/**
 * Validates a zone, with yields: returns every record that conflicts with a previous one, in order. The first `existing` records are trusted and not
 * validated themselves. Takes linear time (times the depth of the names, if there are delegations).
 */
export function* findConflicts(records: readonly StoredRecord[], existing = 0): Generator<void, ZoneConflict[]> {
  const nodes = new Map<string, Node>();
  const cuts = new Map<string, Cut>();
  for (const { type, owner } of records)
    if (type === "NS" && owner !== "@") cuts.set(owner.toLowerCase(), { ns: -1, below: -1 });
  const conflicts: ZoneConflict[] = [];
  for (let index = 0; index < records.length; index++) {
    if (index % recordsTogether === recordsTogether - 1) yield;
    const record = records[index] as StoredRecord;
    const name = servedOwner(record).toLowerCase();
    let node = nodes.get(name);
    if (node === undefined) {
      node = { first: -1, all: null, cname: -1, mx: -1, nullMx: -1, blocking: -1, bytes: null };
      nodes.set(name, node);
    }
    const above = isGlue(record.type) || cuts.size === 0 ? [] : cutsAbove(name, cuts);
    const cut = cuts.size === 0 ? undefined : cuts.get(name);
    if (index >= existing) {
      const conflict = findConflict(records, index, node, cut, above);
      if (conflict !== null) conflicts.push({ index, ...conflict });
    }
    addRecord(records, index, node, cut, above);
  }
  return conflicts;
}

function findConflict(
  records: readonly StoredRecord[],
  index: number,
  node: Node,
  cut: Cut | undefined,
  above: readonly Cut[],
): Conflict<number> | null {
  const record = records[index] as StoredRecord;
  const key = keyAt(records, index);
  if (isCnameAtTop(record)) return { code: "cname_at_apex", other: null };
  const beside = record.type === "CNAME" ? findOther(records, node, key) : node.cname;
  if (beside >= 0) return { code: "cname_conflict", other: beside };
  if (!isGlue(record.type)) {
    let delegation = above.find(({ ns }) => ns >= 0)?.ns ?? -1;
    if (delegation < 0 && cut !== undefined) {
      if (record.type === "NS") delegation = node.blocking >= 0 ? node.blocking : cut.below;
      else if (!isAllowedAtCut(record.type)) delegation = cut.ns;
    }
    if (delegation >= 0) return { code: "delegation_conflict", other: delegation };
  }
  const same = findSame(records, node, key);
  if (same >= 0) return { code: "record_exists", other: same };
  const mx = record.type !== "MX" ? -1 : isNullMx(record) ? node.mx : node.nullMx;
  if (mx >= 0) return { code: "null_mx", other: mx };
  const bytes = node.bytes?.get(record.type);
  if (bytes !== undefined && bytes + answerBytes(record) > limits.setBytes) return { code: "too_long", other: null };
  return null;
}

function addRecord(
  records: readonly StoredRecord[],
  index: number,
  node: Node,
  cut: Cut | undefined,
  above: readonly Cut[],
) {
  const record = records[index] as StoredRecord;
  const { type } = record;
  if (node.first < 0) node.first = index;
  else {
    const first = records[node.first] as StoredRecord;
    node.bytes ??= new Map([[first.type, answerBytes(first)]]);
    node.bytes.set(type, (node.bytes.get(type) ?? 0) + answerBytes(record));
    node.all ??= new Map([[keyAt(records, node.first), node.first]]);
    const key = keyAt(records, index);
    if (!node.all.has(key)) node.all.set(key, index);
  }
  if (type === "CNAME" && node.cname < 0) node.cname = index;
  if (type === "MX" && node.mx < 0) node.mx = index;
  if (isNullMx(record) && node.nullMx < 0) node.nullMx = index;
  if (!isAllowedAtCut(type) && node.blocking < 0) node.blocking = index;
  if (type === "NS" && cut !== undefined && cut.ns < 0) cut.ns = index;
  for (const one of above) if (one.below < 0) one.below = index;
}

/** Returns the delegated names above this one, from the lowest up. */
function cutsAbove(name: string, cuts: ReadonlyMap<string, Cut>): Cut[] {
  const found: Cut[] = [];
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    const cut = cuts.get(name.slice(dot + 1));
    if (cut !== undefined) found.push(cut);
  }
  return found;
}

const keyAt = (records: readonly StoredRecord[], index: number): string => recordKey(records[index] as StoredRecord);

function findSame(records: readonly StoredRecord[], node: Node, key: string): number {
  if (node.all !== null) return node.all.get(key) ?? -1;
  return node.first >= 0 && keyAt(records, node.first) === key ? node.first : -1;
}

function findOther(records: readonly StoredRecord[], node: Node, key: string): number {
  if (node.all === null) return node.first < 0 || keyAt(records, node.first) === key ? -1 : node.first;
  for (const [other, index] of node.all) if (other !== key) return index;
  return -1;
}
