/**
 * Changes of a domain's records in the transaction: held against the rules as they would stand afterwards, written, counted into one
 * serial, and turned into the step that the name server takes. One record or ten thousand go the same way, and cost what they
 * touch, not what the domain holds.
 */
import type { DnsRecord } from "@brume/api/dns.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { recordSpecs } from "@brume/api/record/types.ts";
import { requireQuota } from "../account/model/rules.ts";
import { ApiError } from "../base/error.ts";
import type { RecordSet, ZoneChange } from "../drivers/nameserver/interface.ts";
import type { Tx } from "../store/db.ts";
import { absolute } from "./model/name.ts";
import type { StoredRecord } from "./model/record.ts";
import { checkZone, describeConflict, type Question, questionsOf } from "./model/rules.ts";
import { automaticNs, automaticSoa, recordSets, servedOwner, setKey, sortKey, spellingsOf } from "./model/served.ts";
import { showRow, storedOf } from "./model/show.ts";
import * as table from "./table.ts";
import { appendVersion, type VersionChange } from "./version.ts";

/** Where in the request a wish stands: `/Changes/17` or nothing, and the field to blame in it. */
interface Place {
  readonly at: string;
  readonly pointer: string;
}

export type RecordChange = Place &
  (
    | { readonly op: "Create"; readonly record: StoredRecord; readonly labels: string }
    | { readonly op: "Update"; readonly row: table.RecordRow; readonly record: StoredRecord; readonly labels: string }
    | { readonly op: "Delete"; readonly row: table.RecordRow }
  );

/** Who changes, and when (milliseconds since 1970). */
export interface By {
  readonly token: number;
  readonly request: string;
  readonly now: number;
  /** May it hear of a record that is in the way? */
  readonly sees: (record: StoredRecord) => boolean;
}

export interface Applied {
  readonly domain: table.OwnedDomain;
  /** Wishes that changed something, in their order. */
  readonly changes: readonly VersionChange[];
  /** Null: nothing that the name server shows has changed. */
  readonly step: ZoneChange | null;
}

/** Seconds since 1970, or one more than the last serial if that is larger (RFC 1982 arithmetic is not reached before 2106). */
export const nextSerial = (last: number, now: number): number => Math.max(Math.floor(now / 1000), last + 1);

const nodeOf = (record: StoredRecord): string => sortKey(servedOwner(record));
const isVisible = (row: table.RecordRow, record: StoredRecord): boolean =>
  row.owner !== record.owner || row.ttl !== record.ttl || row.value !== record.value;

/** Every change of rows as answers show it, as though the name server served it already. */
export function showChange(change: VersionChange, domain: table.DomainRow) {
  const show = (row: table.RecordRow | null): DnsRecord | null =>
    row === null ? null : showRow(row, domain, Number.MAX_SAFE_INTEGER);
  return { Op: change.op, Before: show(change.before), After: show(change.after) };
}

/**
 * Makes the wishes true, or throws the fault of the first that cannot be and, among several, of all of them. The caller holds
 * `lockDomain`. A wish that changes nothing leaves no trace; when none does, serial and version stay.
 */
export async function applyChanges(
  tx: Tx,
  domain: table.OwnedDomain,
  wantedChanges: readonly RecordChange[],
  by: By,
  nameServers: readonly string[],
): Promise<Applied> {
  const real = wantedChanges.filter(
    (wanted) => wanted.op !== "Update" || isVisible(wanted.row, wanted.record) || wanted.row.labels !== wanted.labels,
  );
  if (real.length === 0) return { domain, changes: [], step: null };
  const growth = real.reduce((sum, { op }) => sum + (op === "Create" ? 1 : op === "Delete" ? -1 : 0), 0);
  if (growth > 0) requireQuota(domain.quotas, "RecordsPerDomain", domain.record_count, growth);

  const standing = await gather(tx, domain, real);
  holdRules(domain, standing, real, by.sees);

  const visible = real.some((wanted) => wanted.op !== "Update" || isVisible(wanted.row, wanted.record));
  const serial = visible ? nextSerial(domain.serial, by.now) : domain.serial;
  const after: table.OwnedDomain = {
    ...domain,
    serial,
    version: domain.version + 1,
    record_count: domain.record_count + growth,
  };
  await table.stepDomain.run(tx, after);
  const changes: VersionChange[] = [];
  for (const wanted of real) changes.push(await write(tx, domain.id, wanted, serial, by.now));
  if (!visible) return { domain: after, changes, step: null };
  appendVersion(tx, after, changes, by);
  const step: ZoneChange = {
    zone: domain.ascii,
    base: domain.serial,
    serial,
    soa: automaticSoa(domain.ascii, nameServers),
    sets: changedSets(domain.ascii, standing, changes, nameServers),
  };
  return { domain: after, changes, step };
}

/** Rows that stay as they are and that a wish may collide or form a set with. */
async function gather(
  tx: Tx,
  domain: table.DomainRow,
  wantedChanges: readonly RecordChange[],
): Promise<table.RecordRow[]> {
  const nodes = new Set<string>();
  const gone = new Set<number>();
  const ranges: Question[] = [];
  for (const wanted of wantedChanges) {
    if (wanted.op !== "Create") {
      gone.add(wanted.row.id);
      nodes.add(wanted.row.node);
    }
    if (wanted.op === "Delete") continue;
    nodes.add(nodeOf(wanted.record));
    for (const question of questionsOf(wanted.record)) {
      for (const key of question.keys) nodes.add(key);
      if (question.between !== undefined) ranges.push(question);
    }
  }
  const found = await table.listAtNodes(tx, domain.id, [...nodes]);
  // As with nearly every create: a new name.
  if (found.length === 0 && ranges.length === 0) return found;
  const rows = new Map(found.map((row) => [row.id, row]));
  for (const { between, types } of ranges) {
    if (between === undefined) continue;
    // One that stays is enough to refuse, and at most all that go can stand before it.
    for (const row of await table.listBetween(tx, domain.id, between, types, gone.size + 1)) rows.set(row.id, row);
  }
  return [...rows.values()].filter((row) => !gone.has(row.id)).sort((a, b) => a.id - b.id);
}

function holdRules(
  domain: table.DomainRow,
  standing: readonly table.RecordRow[],
  wantedChanges: readonly RecordChange[],
  sees: By["sees"],
): void {
  const judged = wantedChanges.filter((wanted) => wanted.op !== "Delete");
  const records = [...standing.map(storedOf), ...judged.map((wanted) => wanted.record)];
  const faults = checkZone(records, standing.length).map(({ index, code, other }) => {
    const wanted = judged[index - standing.length] as Exclude<RecordChange, { op: "Delete" }>;
    const stands = other === null ? null : (records[other] as StoredRecord);
    const id = other === null ? undefined : standing[other]?.id;
    const told = stands !== null && sees(stands) ? { ...stands, ...(id !== undefined && { id }) } : null;
    const conflict = { code, other: told };
    return describeConflict(wanted.record, conflict, domain, wanted.pointer, wanted.at);
  });
  const [first] = faults;
  if (first === undefined) return;
  if (faults.length === 1) throw first;
  const errors: FieldError[] = faults.flatMap((fault) => fault.errors);
  throw new ApiError(
    first.code,
    `${faults.length} changes cannot stand beside what is there. The first: ${first.message}`,
    errors,
  );
}

async function write(
  tx: Tx,
  domainId: number,
  wanted: RecordChange,
  serial: number,
  now: number,
): Promise<VersionChange> {
  if (wanted.op === "Delete") {
    await table.deleteRecord.run(tx, { id: wanted.row.id });
    return { op: "Delete", before: wanted.row, after: null };
  }
  const { owner, ttl, value } = wanted.record;
  const said = { owner, ttl, value, node: nodeOf(wanted.record), labels: wanted.labels };
  if (wanted.op === "Update") {
    const kept = isVisible(wanted.row, wanted.record) ? serial : wanted.row.serial;
    const after = { ...wanted.row, ...said, serial: kept, version: wanted.row.version + 1 };
    await table.updateRecord.run(tx, after);
    return { op: "Update", before: wanted.row, after };
  }
  const row: table.NewRecord = {
    ...said,
    domain_id: domainId,
    type: wanted.record.type,
    serial,
    created: now,
    version: 1,
  };
  const id = await table.insertRecord.insert(tx, row);
  return { op: "Create", before: null, after: { ...row, id } };
}

/** The sets that differ now, whole; one without data is gone. */
function changedSets(
  zone: string,
  standing: readonly table.RecordRow[],
  changes: readonly VersionChange[],
  nameServers: readonly string[],
): RecordSet[] {
  const touched = new Map<string, StoredRecord>();
  const rows = [...standing];
  for (const { before, after } of changes)
    for (const row of [before, after]) {
      if (row === null) continue;
      const record = storedOf(row);
      touched.set(setKey(record), record);
      if (row === after) rows.push(row);
    }
  const records = rows.sort((a, b) => a.id - b.id).map(storedOf);
  const spellings = spellingsOf(records);
  const sets = recordSets(records, zone);
  return [...touched].map(([key, record]) => {
    const set = sets.get(key);
    if (set !== undefined) return set;
    const { type, ttl } = record;
    if (type === "NS" && record.owner === "@") return automaticNs(zone, nameServers);
    const owner = servedOwner(record).toLowerCase();
    return { owner: absolute(spellings.get(owner) ?? owner, zone), type: recordSpecs[type], ttl, data: [] };
  });
}

/** The whole zone as the name server takes it: every set, with the automatic NS set where the domain has none of its own. */
export function fullZone(
  domain: Pick<table.DomainRow, "id" | "project_id" | "ascii" | "serial">,
  records: readonly table.ServedRow[],
  nameServers: readonly string[],
): ZoneChange {
  const sets = [...recordSets(records.map(storedOf), domain.ascii).values()];
  if (!sets.some((set) => set.type === recordSpecs.NS && set.owner === domain.ascii))
    sets.push(automaticNs(domain.ascii, nameServers));
  return {
    zone: domain.ascii,
    base: null,
    serial: domain.serial,
    soa: automaticSoa(domain.ascii, nameServers),
    sets,
    group: domain.project_id,
    identity: domain.id,
  };
}
