/**
 * Zones for tests and their master files, so that Brume and another server load the same zone.
 */
import { type RecordType, recordSpecs } from "@brume/api/record/types.ts";
import type { RecordData, RecordSet, Soa, ZoneChange } from "../../service/src/drivers/nameserver/interface.ts";

export const SOA: Soa = {
  mname: "ns1.example.com",
  rname: "hostmaster.example.com",
  ttl: 3600,
  refresh: 3600,
  retry: 600,
  expire: 1209600,
  minimum: 60,
};

/** Returns one record set; data in presentation format. */
export function set(owner: string, type: RecordType, ...data: string[]): RecordSet {
  return { owner, type: recordSpecs[type], ttl: 300, data: data.map((text) => parse(type, text)) };
}

function parse(type: RecordType, text: string): RecordData {
  const words = text.split(" ");
  const [a = "", b = "", c = "", d = ""] = words;
  if (type === "MX") return [Number(a), b];
  if (type === "SRV") return [Number(a), Number(b), Number(c), d];
  return type === "TXT" ? [text.match(/.{1,255}/gs) ?? [""]] : [text];
}

/** Returns the complete zone at a serial. */
export function image(zone: string, serial: number, sets: readonly RecordSet[]): ZoneChange {
  return { zone, base: null, serial, soa: SOA, sets };
}

/** Returns the master file (RFC 1035 section 5) of a zone. */
export function zonefile({ zone, serial, soa, sets }: ZoneChange): string {
  const name = (text: string): string => `${text}.`;
  const lines = [
    `${name(zone)} ${soa.ttl} IN SOA ${name(soa.mname)} ${name(soa.rname)} ${serial} ${soa.refresh} ${soa.retry} ${soa.expire} ${soa.minimum}`,
  ];
  for (const { owner, type, ttl, data } of sets) {
    for (const item of data) lines.push(`${name(owner)} ${ttl} IN ${type.name} ${print(type.name, item, name)}`);
  }
  return `${lines.join("\n")}\n`;
}

function print(type: string, data: RecordData, name: (text: string) => string): string {
  if (type === "A" || type === "AAAA") return String(data[0]);
  if (type !== "TXT") return [...data.slice(0, -1), name(String(data.at(-1)))].join(" ");
  return data
    .flatMap((strings) => strings)
    .map((text) => `"${String(text).replace(/["\\]/g, "\\$&")}"`)
    .join(" ");
}
