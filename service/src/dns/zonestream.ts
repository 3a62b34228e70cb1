/**
 * Large zones as text in pieces: records are read page by page from a snapshot of the database, so that no zone is in memory as a whole
 * and all records belong to one serial.
 */
import { readPages, turn } from "../base/turn.ts";
import type { Caller, OpenBody } from "../http/handler.ts";
import type { Reader, Snapshot } from "../store/db.ts";
import { canSeeRecord, domainNotFound, findVisibleDomain } from "./access.ts";
import { automaticSoa, sortKey } from "./model/served.ts";
import { domainTag, printedOf, showDomain, showRow } from "./model/show.ts";
import { printTop, printZoneRecord, sortAtNode } from "./model/zonefile/print.ts";
import * as table from "./table.ts";

/** Number of records from which a zone is read page by page. */
export const largeZone = 2000;
/** Records of one query: reading them takes less than a slice. */
const pageRows = 300;

/** What a stream needs. */
export interface ZoneStream {
  readonly caller: Caller;
  readonly domain: number;
  /** Opens a snapshot; it is closed with the stream. */
  readonly snapshot: () => Promise<Snapshot>;
  /** Returns the serial that the name server serves. */
  readonly served: (ascii: string) => number;
  readonly nameServers: readonly string[];
}

/** Opens the text that `print` creates from a snapshot, with the ETag of the same snapshot. */
const fromSnapshot =
  (
    { caller, domain, snapshot }: ZoneStream,
    print: (db: Reader, row: table.DomainRow) => AsyncIterable<string>,
  ): OpenBody =>
  async () => {
    const { read, close } = await snapshot();
    try {
      const row = (await findVisibleDomain(read, caller, domain)) ?? domainNotFound(domain);
      return { tag: domainTag(row), pieces: closeAfter(print(read, row), close) };
    } catch (error) {
      await close();
      throw error;
    }
  };

async function* closeAfter(pieces: AsyncIterable<string>, close: () => Promise<void>): AsyncGenerator<string> {
  try {
    yield* pieces;
  } finally {
    await close();
  }
}

/** Opens the response body of the domain: JSON with all records by id. */
export const streamJson = (stream: ZoneStream): OpenBody =>
  fromSnapshot(stream, (db, row) => printDomain(stream, db, row));

/** Yields the same text. If the domain no longer exists, it yields `row` without records. */
export async function* printFromSnapshot(stream: ZoneStream, row: table.DomainRow): AsyncGenerator<string> {
  const { read, close } = await stream.snapshot();
  try {
    const found = await findVisibleDomain(read, stream.caller, stream.domain);
    yield* printDomain(stream, read, found ?? row);
  } finally {
    await close();
  }
}

async function* printDomain(stream: ZoneStream, db: Reader, row: table.DomainRow): AsyncGenerator<string> {
  const served = stream.served(row.ascii);
  const empty = JSON.stringify(showDomain(row, [], served, stream.nameServers));
  // Inside of a text, the quotation marks are escaped.
  const mark = '"LinkedRecords":[';
  const split = empty.indexOf(mark) + mark.length;
  let before = empty.slice(0, split);
  for await (const page of pagesById(db, row.id)) {
    const shown = page.filter((record) => canSeeRecord(stream.caller, record));
    const texts = shown.map((record) => JSON.stringify(showRow(record, row, served)));
    if (texts.length === 0) continue;
    yield before + texts.join(",");
    before = ",";
  }
  yield (before === "," ? "" : before) + empty.slice(split);
}

/** Opens the zone file: SOA, NS set, then records by owner and type. */
export const streamZoneFile = (stream: ZoneStream): OpenBody =>
  fromSnapshot(stream, async function* (db, row) {
    const { caller, nameServers } = stream;
    const isVisible = (record: table.RecordRow) => canSeeRecord(caller, record);
    const isTopNs = ({ type, owner }: table.RecordRow) => type === "NS" && owner === "@";
    const top = (await table.listAtNodes(db, row.id, [sortKey("@")])).filter(isTopNs).filter(isVisible);
    top.sort((a, b) => a.id - b.id);
    const soa = automaticSoa(row.ascii, nameServers);
    yield printTop(row, soa, row.serial, nameServers, top.map(printedOf));
    for await (const page of pagesByNode(db, row.id)) {
      const shown = page.filter((record) => !isTopNs(record) && isVisible(record));
      yield shown.map((record) => printZoneRecord(printedOf(record), row.ascii)).join("");
    }
  });

const pagesById = (db: Reader, domain: number): AsyncGenerator<table.RecordRow[]> =>
  readPages(pageRows, (after) => table.pageRecordsById.all(db, { domain, after, limit: pageRows }));

/** Yields the records in the order of a zone file. The records of one owner are in one page. */
async function* pagesByNode(db: Reader, domain: number): AsyncGenerator<table.RecordRow[]> {
  for (let after: string | null = null; ; ) {
    const page: table.RecordRow[] =
      after === null
        ? await table.firstRecordsByNode.all(db, { domain, limit: pageRows })
        : await table.pageRecordsByNode.all(db, { domain, after, limit: pageRows });
    const last = page.at(-1)?.node;
    if (last === undefined) return;
    // The last owner may have more records than the page.
    const isCut = page.length === pageRows;
    const rest = isCut ? await table.listAtNodes(db, domain, [last]) : [];
    yield [...(isCut ? page.filter(({ node }) => node !== last) : page), ...rest].sort(sortAtNode);
    if (!isCut) return;
    after = last;
    if (turn.isOver()) await turn.next();
  }
}
