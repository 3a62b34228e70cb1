/** Writes a domain as a master file (RFC 1035 section 5): SOA, NS set, records by owner; all names absolute, pure ASCII, one record a line. */
import type { Soa } from "../../drivers/nameserver/port.ts";
import { absolute } from "../name.ts";
import { partsOf, type StoredRecord } from "../record.ts";
import { automaticNs, servedOwner, sortKey } from "../served.ts";
import { printText } from "../text.ts";

/** `nameServers` stand for the NS set if the records have none at the top. Reading it again gives all records but those. */
export function printZone(
  domain: string,
  soa: Soa,
  serial: number,
  nameServers: readonly string[],
  records: readonly StoredRecord[],
): string {
  const isTopNs = ({ type, owner }: StoredRecord) => type === "NS" && owner === "@";
  const timers = [serial, soa.refresh, soa.retry, soa.expire, soa.minimum].join(" ");
  let text = `${domain}. ${soa.ttl} IN SOA ${soa.mname}. ${soa.rname}. ${timers}\n`;
  const own = records.filter(isTopNs);
  const automatic = automaticNs(domain, nameServers);
  if (own.length === 0) for (const name of nameServers) text += `${domain}. ${automatic.ttl} IN NS ${name}.\n`;
  for (const record of own) text += `${printRecord(record, domain)}\n`;
  const rest = records
    .filter((record) => !isTopNs(record))
    .map((record) => ({ record, key: `${sortKey(servedOwner(record))} ${record.type}` }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  for (const { record } of rest) text += `${printRecord(record, domain)}\n`;
  return text;
}

function printRecord(record: StoredRecord, domain: string): string {
  const { type, ttl, value } = record;
  const line = `${absolute(servedOwner(record), domain)}. ${ttl} IN ${type} `;
  if (type === "A" || type === "AAAA") return line + value;
  if (type === "TXT") return line + printText(value);
  const parts = partsOf(record);
  if (type === "SRV") parts.shift();
  const target = parts.pop();
  return line + [...parts, target === "." ? target : `${target}.`].join(" ");
}
