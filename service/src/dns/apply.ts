/**
 * Applies changes to the records of a domain inside a transaction. It validates them against the resulting zone, writes the rows, a new
 * serial and a version, and returns the step that the name server applies. The cost depends on the changed records, not on the size of
 * the domain.
 */
import type { DnsRecord } from "@brume/api/dns.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { recordSpecs } from "@brume/api/record/types.ts";
import { requireQuota } from "../account/model/rules.ts";
import { ApiError } from "../base/error.ts";
import { runAtOnce } from "../base/turn.ts";
import type { RecordSet, ZoneChange } from "../drivers/nameserver/interface.ts";
import { rest, runResting, type Tx } from "../store/db.ts";
import type { RecordChange } from "./model/change.ts";
import { absolute } from "./model/name.ts";
import type { StoredRecord } from "./model/record.ts";
import { describeConflict, findConflicts } from "./model/rules.ts";
import { automaticNs, automaticSoa, groupRecords, servedOwner, setKey } from "./model/served.ts";
import { showRow, storedOf } from "./model/show.ts";
import { listNeighbours, nodeOf } from "./neighbours.ts";
import * as table from "./table.ts";
import { appendLongVersion, appendVersion, type VersionChange } from "./version.ts";

/** The author of a change; `now` in ms since 1970. */
export interface Author {
  readonly token: number;
  readonly request: string;
  readonly now: number;
  /** Returns whether an error may name this record, which conflicts with the change. */
  readonly canSee: (record: StoredRecord) => boolean;
}

/** Result of `applyChanges`. */
export interface Applied {
  /** The row after the change. */
  readonly domain: table.OwnedDomain;
  /** The changes that had an effect, in the order of the request. */
  readonly changes: readonly VersionChange[];
  /** Null: no change is visible in DNS. */
  readonly step: ZoneChange | null;
}

/** Returns `now` (ms) in seconds since 1970, or `last + 1` if that is larger. RFC 1982 arithmetic is not needed before 2106. */
export const nextSerial = (last: number, now: number): number => Math.max(Math.floor(now / 1000), last + 1);

/** Returns whether the update is visible in DNS; labels are not. */
const isVisible = (row: table.RecordRow, record: StoredRecord): boolean =>
  row.owner !== record.owner || row.ttl !== record.ttl || row.value !== record.value;

/** Returns a change in its API form, as if the name server already served it. */
export function showChange(change: VersionChange, domain: table.DomainRow) {
  const show = (row: table.RecordRow | null): DnsRecord | null =>
    row === null ? null : showRow(row, domain, Number.MAX_SAFE_INTEGER);
  return { Op: change.op, Before: show(change.before), After: show(change.after) };
}

/**
 * Applies the changes. The caller holds `lockDomain`. An update without effect is ignored; if no change has an effect, serial and version
 * stay. Throws `quota_exceeded`, or the error of the conflicting change; for several conflicts the error lists all of them. `isChecked`: the
 * caller has found no conflict.
 */
export async function applyChanges(
  tx: Tx,
  domain: table.OwnedDomain,
  requested: readonly RecordChange[],
  by: Author,
  nameServers: readonly string[],
  { isChecked = false } = {},
): Promise<Applied> {
  const effective = requested.filter(
    (change) => change.op !== "Update" || isVisible(change.row, change.record) || change.row.labels !== change.labels,
  );
  if (effective.length === 0) return { domain, changes: [], step: null };
  const growth = effective.reduce((sum, { op }) => sum + (op === "Create" ? 1 : op === "Delete" ? -1 : 0), 0);
  if (growth > 0) requireQuota(domain.quotas, "RecordsPerDomain", domain.record_count, growth);

  const neighbours = await listNeighbours(tx, domain, effective);
  if (!isChecked) await runResting(tx, requireNoConflict(domain, neighbours, effective, by.canSee));

  const visible = effective.some((change) => change.op !== "Update" || isVisible(change.row, change.record));
  const serial = visible ? nextSerial(domain.serial, by.now) : domain.serial;
  const after: table.OwnedDomain = {
    ...domain,
    serial,
    version: domain.version + 1,
    record_count: domain.record_count + growth,
  };
  const changes = await writeAll(tx, domain.id, effective, serial, by.now);
  table.stepDomain.send(tx, after);
  if (!visible) return { domain: after, changes, step: null };
  await appendLongVersion(tx, after, changes, by);
  const step = await runResting(tx, stepOf(domain, after, neighbours, changes, nameServers));
  return { domain: after, changes, step };
}

/** Returns, with yields, the step of the zone from the domain before the changes to that after them. */
function* stepOf(
  { ascii, serial: base }: table.OwnedDomain,
  { serial }: table.OwnedDomain,
  neighbours: readonly table.RecordRow[],
  changes: readonly VersionChange[],
  nameServers: readonly string[],
): Generator<void, ZoneChange> {
  const sets = yield* changedSets(ascii, neighbours, changes, nameServers);
  return { zone: ascii, base, serial, soa: automaticSoa(ascii, nameServers), sets };
}

/**
 * Creates one record as `applyChanges` does, with the rows at its `nodesAround`, but leaves it to the caller to store its row and the
 * counters of the domain. Throws as `applyChanges`.
 */
export function createRecord(
  tx: Tx,
  domain: table.OwnedDomain,
  neighbours: readonly table.RecordRow[],
  change: Extract<RecordChange, { op: "Create" }> & { readonly id: number },
  by: Author,
  nameServers: readonly string[],
): Applied & { readonly row: table.RecordRow } {
  requireQuota(domain.quotas, "RecordsPerDomain", domain.record_count, 1);
  runAtOnce(requireNoConflict(domain, neighbours, [change], by.canSee));
  const serial = nextSerial(domain.serial, by.now);
  const after = { ...domain, serial, version: domain.version + 1, record_count: domain.record_count + 1 };
  const row = { ...newRow(domain.id, change, serial, by.now), id: change.id };
  const changes: VersionChange[] = [{ op: "Create", before: null, after: row }];
  appendVersion(tx, after, changes, by);
  const step = runAtOnce(stepOf(domain, after, neighbours, changes, nameServers));
  return { domain: after, changes, row, step };
}

/** Returns the row of a new record. */
function newRow(
  domainId: number,
  { record, labels }: Extract<RecordChange, { op: "Create" }>,
  serial: number,
  now: number,
): table.NewRecord {
  const { owner, ttl, value, type } = record;
  return {
    owner,
    ttl,
    value,
    node: nodeOf(record),
    labels,
    domain_id: domainId,
    type,
    serial,
    created: now,
    version: 1,
  };
}

/** Throws, with yields before, the error of the conflicts that the changes would cause. */
function* requireNoConflict(
  domain: table.DomainRow,
  neighbours: readonly table.RecordRow[],
  requested: readonly RecordChange[],
  canSee: Author["canSee"],
): Generator<void, void> {
  const written = requested.filter((change) => change.op !== "Delete");
  const records = [...neighbours.map(storedOf), ...written.map((change) => change.record)];
  const conflicts = (yield* findConflicts(records, neighbours.length)).map(({ index, code, other }) => {
    const change = written[index - neighbours.length] as Exclude<RecordChange, { op: "Delete" }>;
    const existing = other === null ? null : (records[other] as StoredRecord);
    const id = other === null ? undefined : neighbours[other]?.id;
    const shown = existing !== null && canSee(existing) ? { ...existing, ...(id !== undefined && { id }) } : null;
    return describeConflict(change.record, { code, other: shown }, domain, change.pointer, change.at);
  });
  const [first] = conflicts;
  if (first === undefined) return;
  if (conflicts.length === 1) throw first;
  const errors: FieldError[] = conflicts.flatMap((conflict) => conflict.errors);
  throw new ApiError(
    first.code,
    `${conflicts.length} changes conflict with other records. The first: ${first.message}`,
    errors,
  );
}

/** Changes that are written together: it takes less than a slice. */
const writtenTogether = 50;

async function writeAll(
  tx: Tx,
  domainId: number,
  changes: readonly RecordChange[],
  serial: number,
  now: number,
): Promise<VersionChange[]> {
  const written: VersionChange[] = [];
  for (let from = 0; from < changes.length; from += writtenTogether) {
    if (from > 0) await rest(tx);
    const some = changes.slice(from, from + writtenTogether);
    for (const each of await Promise.all(some.map((change) => write(tx, domainId, change, serial, now))))
      written.push(each);
  }
  return written;
}

async function write(
  tx: Tx,
  domainId: number,
  change: RecordChange,
  serial: number,
  now: number,
): Promise<VersionChange> {
  if (change.op === "Delete") {
    table.deleteRecord.send(tx, { id: change.row.id });
    return { op: "Delete", before: change.row, after: null };
  }
  if (change.op === "Update") {
    const { owner, ttl, value } = change.record;
    const content = { owner, ttl, value, node: nodeOf(change.record), labels: change.labels };
    const newSerial = isVisible(change.row, change.record) ? serial : change.row.serial;
    const after = { ...change.row, ...content, serial: newSerial, version: change.row.version + 1 };
    table.updateRecord.send(tx, after);
    return { op: "Update", before: change.row, after };
  }
  const row = newRow(domainId, change, serial, now);
  const id = await table.insertRecord.insert(tx, row);
  return { op: "Create", before: null, after: { ...row, id } };
}

/** Returns, with yields, the record sets that the changes touch, complete; a deleted set has no data. */
function* changedSets(
  zone: string,
  neighbours: readonly table.RecordRow[],
  changes: readonly VersionChange[],
  nameServers: readonly string[],
): Generator<void, RecordSet[]> {
  const touched = new Map<string, StoredRecord>();
  const rows = [...neighbours];
  for (const { before, after } of changes) {
    yield;
    for (const row of [before, after]) {
      if (row === null) continue;
      const record = storedOf(row);
      touched.set(setKey(record), record);
      if (row === after) rows.push(row);
    }
  }
  rows.sort((a, b) => a.id - b.id);
  yield;
  const records = rows.map(storedOf);
  yield;
  const { sets, spellings } = yield* groupRecords(records, zone);
  const changed: RecordSet[] = [];
  for (const [key, record] of touched) {
    yield;
    const set = sets.get(key);
    const { type, ttl } = record;
    if (set !== undefined) changed.push(set);
    else if (type === "NS" && record.owner === "@") changed.push(automaticNs(zone, nameServers));
    else {
      const owner = servedOwner(record).toLowerCase();
      const spelled = absolute(spellings.get(owner) ?? owner, zone);
      changed.push({ owner: spelled, type: recordSpecs[type], ttl, data: [] });
    }
  }
  return changed;
}

/** Returns the same as `renderZone`, at once. */
export const fullZone = (...input: Parameters<typeof renderZone>): ZoneChange => runAtOnce(renderZone(...input));

/** Returns the complete zone for the name server, with yields: all sets, and the automatic NS set if the domain has none at the top. */
export function* renderZone(
  domain: Pick<table.DomainRow, "id" | "project_id" | "ascii" | "serial">,
  records: readonly table.ServedRow[],
  nameServers: readonly string[],
): Generator<void, ZoneChange> {
  const grouped = yield* groupRecords(records.map(storedOf), domain.ascii);
  const sets = [...grouped.sets.values()];
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
