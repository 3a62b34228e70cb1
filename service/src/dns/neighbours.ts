/**
 * Reads the stored records that a change may conflict or form a record set with: those at its names, at the delegations above them, and
 * below a new delegation. So the cost of a change depends on what it changes, not on the size of the domain.
 */
import { rest, type Tx } from "../store/db.ts";
import type { RecordChange } from "./model/change.ts";
import type { StoredRecord } from "./model/record.ts";
import { type ConflictQuery, conflictQueries } from "./model/rules.ts";
import { servedOwner, sortKey } from "./model/served.ts";
import * as table from "./table.ts";

/** Returns the node at which a record is served. */
export const nodeOf = (record: StoredRecord): string => sortKey(servedOwner(record));

/** Nodes read together: it takes less than a slice. */
const nodesTogether = 512;
/** Records whose places are computed together. */
const placesTogether = 200;
/** Rows read together. */
const rowsTogether = 1000;

/** Adds the nodes and the ranges at which a record may conflict with others. */
function addPlaces(record: StoredRecord, nodes: Set<string>, ranges: ConflictQuery[]): void {
  nodes.add(nodeOf(record));
  for (const query of conflictQueries(record)) {
    for (const key of query.keys) nodes.add(key);
    if (query.between !== undefined) ranges.push(query);
  }
}

/** Returns the nodes at which a new record may conflict or form a record set with others; null: other look-ups are needed too. */
export function nodesAround(record: StoredRecord): readonly string[] | null {
  const nodes = new Set<string>();
  const ranges: ConflictQuery[] = [];
  addPlaces(record, nodes, ranges);
  return ranges.length > 0 ? null : [...nodes];
}

/** Returns the records at the nodes, and at most `most` in each range, by id. */
async function listAt(
  tx: Tx,
  domain: number,
  nodes: readonly string[],
  ranges: readonly ConflictQuery[],
  most: number,
): Promise<table.RecordRow[]> {
  const rows = new Map<number, table.RecordRow>();
  for (let from = 0; from < nodes.length; from += nodesTogether) {
    if (from > 0) await rest(tx);
    for (const row of await table.listAtNodes(tx, domain, nodes.slice(from, from + nodesTogether)))
      rows.set(row.id, row);
  }
  for (const { between, types } of ranges) {
    if (between === undefined) continue;
    for (const row of await table.listBetween(tx, domain, between, types, most)) rows.set(row.id, row);
    await rest(tx);
  }
  await rest(tx);
  const found = [...rows.values()].sort((a, b) => a.id - b.id);
  await rest(tx);
  return found;
}

/** Returns the unchanged rows that the changes may conflict or form a record set with, by id. */
export async function listNeighbours(
  tx: Tx,
  domain: table.DomainRow,
  requested: readonly RecordChange[],
): Promise<table.RecordRow[]> {
  const nodes = new Set<string>();
  const removed = new Set<number>();
  const ranges: ConflictQuery[] = [];
  for (const [index, change] of requested.entries()) {
    if (index % placesTogether === placesTogether - 1) await rest(tx);
    if (change.op !== "Create") {
      removed.add(change.row.id);
      nodes.add(change.row.node);
    }
    if (change.op !== "Delete") addPlaces(change.record, nodes, ranges);
  }
  // One remaining row is enough for a conflict, and at most `removed.size` rows of the result are removed.
  const rows = await listAt(tx, domain.id, [...nodes], ranges, removed.size + 1);
  return rows.filter((row) => !removed.has(row.id));
}

/** Returns the rows that an import of these records may change or conflict with, by id: all of the domain, if it concerns most of them. */
export async function listAround(
  tx: Tx,
  domain: table.DomainRow,
  records: readonly StoredRecord[],
): Promise<table.RecordRow[]> {
  const nodes = new Set<string>();
  const ranges: ConflictQuery[] = [];
  for (const [index, record] of records.entries()) {
    if (index % placesTogether === placesTogether - 1) await rest(tx);
    addPlaces(record, nodes, ranges);
  }
  if (nodes.size + ranges.length > domain.record_count / 2) return listAll(tx, domain.id);
  return listAt(tx, domain.id, [...nodes], ranges, 1);
}

/** Returns all rows of a domain, by id. */
export async function listAll(tx: Tx, domain: number): Promise<table.RecordRow[]> {
  const rows: table.RecordRow[] = [];
  for (let after = 0; ; ) {
    const page = await table.pageRecordsById.all(tx, { domain, after, limit: rowsTogether });
    for (const row of page) rows.push(row);
    if (page.length < rowsTogether) return rows;
    after = page.at(-1)?.id ?? after;
    await rest(tx);
  }
}
