/** Converts rows of domains and records to their API form. */
import { formatDate, type Labels } from "@brume/api/common.ts";
import type { DnsRecord, Domain, ImportReport, RecordType } from "@brume/api/dns.ts";
import { createPieces, type Pieces } from "../../base/pieces.ts";
import { runAtOnce } from "../../base/turn.ts";
import type { DomainRow, RecordRow, ServedRow } from "../table.ts";
import type { DomainName } from "./name.ts";
import { type StoredRecord, showRecord } from "./record.ts";

/** Returns the stored record of a row, without the other columns. */
export const storedOf = (row: ServedRow): StoredRecord => ({
  type: row.type as RecordType,
  owner: row.owner,
  ttl: row.ttl,
  value: row.value,
});

/** Returns the record and labels of a row for a zone file. */
export const printedOf = (row: ServedRow & Pick<RecordRow, "labels">) => ({ ...storedOf(row), labels: row.labels });

const noLabels = Object.freeze({});

/** Returns the API form of a record. `served` is the serial that the name server serves. */
export function showRow(row: Omit<RecordRow, "node" | "version">, domain: DomainName, served: number): DnsRecord {
  return showRecord(
    {
      type: row.type as RecordType,
      owner: row.owner,
      ttl: row.ttl,
      value: row.value,
      id: row.id,
      domainId: row.domain_id,
      created: row.created,
      active: row.serial <= served,
      labels: row.labels === "{}" ? noLabels : (JSON.parse(row.labels) as Labels),
    },
    domain,
  );
}

/** Returns the same as `showLongDomain`, at once. */
export const showDomain = (...input: Parameters<typeof showLongDomain>): Domain => runAtOnce(showLongDomain(...input));

/** Returns the API form of a domain with these records, with yields. `served` as in `showRow`. */
export function* showLongDomain(
  row: DomainRow,
  records: readonly RecordRow[],
  served: number,
  nameServers: readonly string[],
): Generator<void, Domain> {
  const shown: DnsRecord[] = [];
  for (const record of records) {
    shown.push(showRow(record, row, served));
    yield;
  }
  return {
    ID: row.id,
    Name: row.name,
    NamePunyCode: row.ascii,
    TechName: row.ascii.replaceAll(".", "_"),
    State: row.serial <= served ? "Active" : "New",
    DateCreate: formatDate(row.created),
    IsDelegate: row.is_delegate === 1,
    LinkedRecords: shown,
    NameServers: [...nameServers],
    Serial: row.serial,
    Import: row.import_report === null ? null : (JSON.parse(row.import_report) as ImportReport),
    Delegation: row.delegation,
    Labels: JSON.parse(row.labels) as Labels,
  };
}

/** Records that are printed without a yield. */
const printedTogether = 100;

/** Returns a domain as JSON, with yields. */
export function* printLongDomain(domain: Domain): Generator<void, Pieces> {
  const body = createPieces();
  // The fields before it have no quotation marks.
  const [before = "", after = ""] = JSON.stringify({ ...domain, LinkedRecords: [] }).split(
    /(?<="LinkedRecords":\[)/,
    2,
  );
  body.add(before);
  for (let from = 0; from < domain.LinkedRecords.length; from += printedTogether) {
    const some = domain.LinkedRecords.slice(from, from + printedTogether);
    body.add(`${from > 0 ? "," : ""}${JSON.stringify(some).slice(1, -1)}`);
    yield;
  }
  body.add(after);
  return body.pieces();
}

/** Maximum number of records in an event of a domain. With more, `LinkedRecords` of the event is empty. */
export const maxInEvent = 1000;

/** Returns the ETag of a domain. */
export const domainTag = (row: Pick<DomainRow, "id" | "version">): string => `domain-${row.id}-${row.version}`;
/** Returns the ETag of a record. */
export const recordTag = (row: Pick<RecordRow, "id" | "version">): string => `record-${row.id}-${row.version}`;
