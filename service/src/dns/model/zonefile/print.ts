/**
 * Prints a domain as a zone file (RFC 1035 section 5): SOA, NS set, records by owner; absolute names, ASCII, one record per line.
 * Comments contain labels and the origin of the NS set (`mark.ts`), so that importing the file restores the same domain.
 */
import type { Soa } from "../../../drivers/nameserver/interface.ts";
import { printData } from "../data.ts";
import { absolute, printName } from "../name.ts";
import type { StoredRecord } from "../record.ts";
import { automaticNs, servedOwner, sortKey } from "../served.ts";
import { printMark } from "./mark.ts";

/** A record with the labels that its comment contains. */
export interface PrintedRecord extends StoredRecord {
  /** JSON; absent: none. */
  readonly labels?: string;
}

/** A domain and its labels, JSON. */
export interface PrintedDomain {
  readonly ascii: string;
  readonly labels: string;
}

/** Returns the zone file. `nameServers` are the NS set if the records have none at the top. */
export function printZone(
  domain: PrintedDomain,
  soa: Soa,
  serial: number,
  nameServers: readonly string[],
  records: readonly PrintedRecord[],
): string {
  const isTopNs = ({ type, owner }: StoredRecord) => type === "NS" && owner === "@";
  const rest = records
    .filter((record) => !isTopNs(record))
    .map((record) => ({ record, key: `${sortKey(servedOwner(record))} ${record.type}` }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const top = printTop(domain, soa, serial, nameServers, records.filter(isTopNs));
  return top + rest.map(({ record }) => printZoneRecord(record, domain.ascii)).join("");
}

/** Orders rows as in a zone file: by node, type and id. */
export const sortAtNode = (
  a: { readonly node: string; readonly type: string; readonly id: number },
  b: { readonly node: string; readonly type: string; readonly id: number },
): number => (a.node < b.node ? -1 : a.node > b.node ? 1 : a.type < b.type ? -1 : a.type > b.type ? 1 : a.id - b.id);

/** Returns the beginning of the zone file: SOA and NS set. `printed`: the NS records at the top; if there are none, `nameServers` are printed. */
export function printTop(
  { ascii, labels }: PrintedDomain,
  soa: Soa,
  serial: number,
  nameServers: readonly string[],
  printed: readonly PrintedRecord[],
): string {
  const timers = [serial, soa.refresh, soa.retry, soa.expire, soa.minimum].join(" ");
  const top = printName(ascii);
  let text = `${top}. ${soa.ttl} IN SOA ${soa.mname}. ${printName(soa.rname)}. ${timers}${printMark(null, labels)}\n`;
  const automatic = automaticNs(ascii, nameServers);
  const auto = printMark("automatic", "{}");
  if (printed.length === 0) for (const name of nameServers) text += `${top}. ${automatic.ttl} IN NS ${name}.${auto}\n`;
  for (const record of printed) text += `${printRecord(record, ascii)}${printMark("own", record.labels ?? "{}")}\n`;
  return text;
}

/** Returns the line of a record that is not in the NS set at the top. */
export const printZoneRecord = (record: PrintedRecord, domain: string): string =>
  `${printRecord(record, domain)}${printMark(null, record.labels ?? "{}")}\n`;

function printRecord(record: StoredRecord, domain: string): string {
  return `${printName(absolute(servedOwner(record), domain))}. ${record.ttl} IN ${record.type} ${printData(record)}`;
}
