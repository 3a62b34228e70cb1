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

export interface PrintedRecord extends StoredRecord {
  /** JSON; absent: none. */
  readonly labels?: string;
}

/** Returns the zone file. `nameServers` are the NS set if the records have none at the top. */
export function printZone(
  domain: string,
  soa: Soa,
  serial: number,
  nameServers: readonly string[],
  records: readonly PrintedRecord[],
): string {
  const isTopNs = ({ type, owner }: StoredRecord) => type === "NS" && owner === "@";
  const timers = [serial, soa.refresh, soa.retry, soa.expire, soa.minimum].join(" ");
  const top = printName(domain);
  let text = `${top}. ${soa.ttl} IN SOA ${soa.mname}. ${printName(soa.rname)}. ${timers}\n`;
  const own = records.filter(isTopNs);
  const automatic = automaticNs(domain, nameServers);
  const auto = printMark("automatic", "{}");
  if (own.length === 0) for (const name of nameServers) text += `${top}. ${automatic.ttl} IN NS ${name}.${auto}\n`;
  for (const record of own) text += `${printRecord(record, domain)}${printMark("own", record.labels ?? "{}")}\n`;
  const rest = records
    .filter((record) => !isTopNs(record))
    .map((record) => ({ record, key: `${sortKey(servedOwner(record))} ${record.type}` }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const { record } of rest) text += `${printRecord(record, domain)}${printMark(null, record.labels ?? "{}")}\n`;
  return text;
}

function printRecord(record: StoredRecord, domain: string): string {
  return `${printName(absolute(servedOwner(record), domain))}. ${record.ttl} IN ${record.type} ${printData(record)}`;
}
