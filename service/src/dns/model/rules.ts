/**
 * What may stand beside what in a domain (docs/spec.md#record, RFC 1034 sections 3.6.2 and 4.2, RFC 2181 section 5).
 *
 * Records are held against those that stood before them, in one pass. What a record could collide with is said by a few
 * questions, each answered through an index: so a change is held against its neighbours only, and costs the same in a domain of
 * a million records as in one of ten.
 */
import type { ErrorCode } from "@brume/api/errors.ts";
import { limits } from "@brume/api/record/spec.ts";
import { type RecordType, recordSpecs, recordTypes } from "@brume/api/record/types.ts";
import { ApiError, errorAt, fieldError } from "../../base/error.ts";
import { answerBytes } from "./data.ts";
import { absolute } from "./name.ts";
import { ownerField, recordKey, type StoredRecord } from "./record.ts";
import { endOfKey, servedOwner, sortKey } from "./served.ts";

type QuestionCode = Extract<ErrorCode, "cname_conflict" | "delegation_conflict" | "record_exists">;
/** `too_long`: a set that no answer could hold. */
export type RuleCode = QuestionCode | "cname_at_apex" | "too_long";

/**
 * Is there, apart from the record itself, one of these types at one of these sort keys (or between two of them), with this value
 * (or another)? A row that answers it is in the way, and nothing else can be. Keys are those of the served owner.
 */
export interface Question {
  readonly code: QuestionCode;
  readonly types: readonly RecordType[];
  readonly keys: readonly string[];
  /** Instead of `keys`: greater than the first and less than the second. */
  readonly between?: readonly [string, string];
  readonly value?: string;
  readonly otherThan?: string;
}

/** A record that is not let in, and the one that is in its way. */
export interface Conflict<Row> {
  readonly code: RuleCode;
  readonly other: Row | null;
}

/** Addresses, which may stand below a delegated name too. */
const isGlue = (type: RecordType): boolean => recordSpecs[type].delegated === "at and below the cut";
const standsAtCut = (type: RecordType): boolean => recordSpecs[type].delegated !== undefined;

const notCname = recordTypes.filter((type) => type !== "CNAME");
const notGlue = recordTypes.filter((type) => !isGlue(type));
const notAtCut = recordTypes.filter((type) => !standsAtCut(type));

/** What must be asked of the table for a record, in the order in which the answers count. */
export function questionsOf(record: StoredRecord): Question[] {
  const { type, value } = record;
  const served = servedOwner(record);
  const key = sortKey(served);
  const keys = [key];
  const questions: Question[] = [];
  if (type === "CNAME") {
    questions.push({ code: "cname_conflict", types: notCname, keys });
    questions.push({ code: "cname_conflict", types: ["CNAME"], keys, otherThan: value });
  } else questions.push({ code: "cname_conflict", types: ["CNAME"], keys });
  if (!isGlue(type)) {
    const cuts = keysAbove(key);
    if (!standsAtCut(type) && key !== "") cuts.push(key);
    if (cuts.length > 0) questions.push({ code: "delegation_conflict", types: ["NS"], keys: cuts });
  }
  if (type === "NS" && key !== "") {
    questions.push({ code: "delegation_conflict", types: notAtCut, keys });
    questions.push({ code: "delegation_conflict", types: notGlue, keys: [], between: [key, endOfKey(key)] });
  }
  questions.push({ code: "record_exists", types: [type], keys, value });
  return questions;
}

/** Keys of the names between a name and the top of the domain, both left out. */
function keysAbove(key: string): string[] {
  const keys: string[] = [];
  for (let dot = key.indexOf("."); dot >= 0 && dot < key.length - 1; dot = key.indexOf(".", dot + 1))
    keys.push(key.slice(0, dot + 1));
  return keys;
}

const isCnameAtTop = ({ type, owner }: StoredRecord): boolean => type === "CNAME" && owner === "@";

/** The fault that a conflict is to the caller. `at` is the element of a changeset, `domain.id` and `other.id` go into the sentence. */
export function describeConflict(
  record: StoredRecord,
  { code, other }: Conflict<StoredRecord & { readonly id?: number }>,
  domain: { readonly id: number; readonly ascii: string },
  pointer = `/${ownerField(record.type, {})}`,
  at = "",
): ApiError {
  const nameOf = (one: StoredRecord) => absolute(servedOwner(one), domain.ascii);
  const name = nameOf(record);
  const standing = other
    ? `${other.id ? `record ${other.id}, ` : ""}${other.type} at ${nameOf(other)}`
    : "another record";
  if (code === "record_exists") {
    const which = other?.id ? `Record ${other.id} of domain ${domain.id}` : `Another record of domain ${domain.id}`;
    // Clients in the field search the body for this sentence and take it as success.
    const sentence = "Подобная запись для данного домена уже существует";
    return new ApiError(code, `${which} has the same type, name and data.`, [fieldError(at, code, sentence)]);
  }
  if (code === "too_long") {
    const most = limits.setBytes.toLocaleString("en");
    const sentence = `The ${record.type} records at ${name} do not fit into one answer: together they may take ${most} bytes.`;
    return new ApiError("validation_failed", sentence, [fieldError(at + pointer, code, sentence)]);
  }
  const sentences = {
    cname_at_apex: `${name} is the top of the domain, where no CNAME can stand.`,
    cname_conflict: `A CNAME stands alone at its name, and there is ${standing}.`,
    delegation_conflict: `A delegated name holds only NS and address records, and only addresses below it: there is ${standing}.`,
  };
  return errorAt(code, at + pointer, sentences[code]);
}

/** A record of a list that may not stand beside those before it. Numbers are places in the list. */
export interface ZoneConflict {
  readonly index: number;
  readonly code: RuleCode;
  readonly other: number | null;
}

/** What stands at a name; numbers are places in the list, -1 is none. */
interface Node {
  first: number;
  /** From type and value to the place, once a second record stands here. */
  all: Map<string, number> | null;
  cname: number;
  /** A record that no delegated name can hold. */
  blocking: number;
  /** Of each set, once a second record stands here. */
  bytes: Map<RecordType, number> | null;
}

/** A name below the top that some record of the list delegates: the first NS that stands there, and the first below that is no address. */
interface Cut {
  ns: number;
  below: number;
}

/**
 * Holds a whole zone: every record that may not stand beside those before it, in order. The first `standing` ones are not judged
 * themselves. In time linear to the list (times the depth of the names, where something is delegated).
 */
export function checkZone(records: readonly StoredRecord[], standing = 0): ZoneConflict[] {
  const nodes = new Map<string, Node>();
  const cuts = new Map<string, Cut>();
  for (const { type, owner } of records)
    if (type === "NS" && owner !== "@") cuts.set(owner.toLowerCase(), { ns: -1, below: -1 });
  const conflicts: ZoneConflict[] = [];
  for (let index = 0; index < records.length; index++) {
    const record = records[index] as StoredRecord;
    const name = servedOwner(record).toLowerCase();
    let node = nodes.get(name);
    if (node === undefined) {
      node = { first: -1, all: null, cname: -1, blocking: -1, bytes: null };
      nodes.set(name, node);
    }
    const above = isGlue(record.type) || cuts.size === 0 ? [] : cutsAbove(name, cuts);
    const cut = cuts.size === 0 ? undefined : cuts.get(name);
    if (index >= standing) {
      const conflict = judge(records, index, node, cut, above);
      if (conflict !== null) conflicts.push({ index, ...conflict });
    }
    place(records, index, node, cut, above);
  }
  return conflicts;
}

function judge(
  records: readonly StoredRecord[],
  index: number,
  node: Node,
  cut: Cut | undefined,
  above: readonly Cut[],
): Conflict<number> | null {
  const record = records[index] as StoredRecord;
  const said = identity(records, index);
  if (isCnameAtTop(record)) return { code: "cname_at_apex", other: null };
  const beside = record.type === "CNAME" ? findOther(records, node, said) : node.cname;
  if (beside >= 0) return { code: "cname_conflict", other: beside };
  if (!isGlue(record.type)) {
    let delegation = above.find(({ ns }) => ns >= 0)?.ns ?? -1;
    if (delegation < 0 && cut !== undefined) {
      if (record.type === "NS") delegation = node.blocking >= 0 ? node.blocking : cut.below;
      else if (!standsAtCut(record.type)) delegation = cut.ns;
    }
    if (delegation >= 0) return { code: "delegation_conflict", other: delegation };
  }
  const same = findSame(records, node, said);
  if (same >= 0) return { code: "record_exists", other: same };
  const bytes = node.bytes?.get(record.type);
  if (bytes !== undefined && bytes + answerBytes(record) > limits.setBytes) return { code: "too_long", other: null };
  return null;
}

function place(
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
    node.all ??= new Map([[identity(records, node.first), node.first]]);
    const said = identity(records, index);
    if (!node.all.has(said)) node.all.set(said, index);
  }
  if (type === "CNAME" && node.cname < 0) node.cname = index;
  if (!standsAtCut(type) && node.blocking < 0) node.blocking = index;
  if (type === "NS" && cut !== undefined && cut.ns < 0) cut.ns = index;
  for (const one of above) if (one.below < 0) one.below = index;
}

/** The names above this one, from below, that are delegated somewhere in the list. */
function cutsAbove(name: string, cuts: ReadonlyMap<string, Cut>): Cut[] {
  const found: Cut[] = [];
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    const cut = cuts.get(name.slice(dot + 1));
    if (cut !== undefined) found.push(cut);
  }
  return found;
}

/** What a record says at its name. */
const identity = (records: readonly StoredRecord[], index: number): string => recordKey(records[index] as StoredRecord);

function findSame(records: readonly StoredRecord[], node: Node, said: string): number {
  if (node.all !== null) return node.all.get(said) ?? -1;
  return node.first >= 0 && identity(records, node.first) === said ? node.first : -1;
}

function findOther(records: readonly StoredRecord[], node: Node, said: string): number {
  if (node.all === null) return node.first < 0 || identity(records, node.first) === said ? -1 : node.first;
  for (const [key, index] of node.all) if (key !== said) return index;
  return -1;
}
