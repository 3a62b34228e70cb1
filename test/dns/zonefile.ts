/**
 * Zone images for tests and the master file of them, so that ours and another server are given the very same zone.
 */
import type { RecordData, RecordSet, RecordType, Soa, ZoneChange } from "../../service/src/drivers/nameserver/port.ts";

export const SOA: Soa = {
  mname: "ns1.example.com",
  rname: "hostmaster.example.com",
  ttl: 3600,
  refresh: 3600,
  retry: 600,
  expire: 1209600,
  minimum: 60,
};

/** One set, data in presentation form as a master file has it. */
export function set(owner: string, type: RecordType, ...data: string[]): RecordSet {
  return { owner, type, ttl: 300, data: data.map((text) => parse(type, text)) };
}

function parse(type: RecordType, text: string): RecordData {
  const words = text.split(" ");
  const [a = "", b = "", c = "", d = ""] = words;
  if (type === "A" || type === "AAAA") return { address: text };
  if (type === "CNAME" || type === "NS") return { target: text };
  if (type === "MX") return { preference: Number(a), exchange: b };
  if (type === "SRV") return { priority: Number(a), weight: Number(b), port: Number(c), target: d };
  return { strings: text.match(/.{1,255}/gs) ?? [""] };
}

/** The whole image of a zone at a serial. */
export function image(zone: string, serial: number, sets: readonly RecordSet[]): ZoneChange {
  return { zone, base: null, serial, soa: SOA, sets };
}

/** The master file (RFC 1035 section 5) of an image. */
export function zonefile({ zone, serial, soa, sets }: ZoneChange): string {
  const name = (text: string): string => `${text}.`;
  const lines = [
    `${name(zone)} ${soa.ttl} IN SOA ${name(soa.mname)} ${name(soa.rname)} ${serial} ${soa.refresh} ${soa.retry} ${soa.expire} ${soa.minimum}`,
  ];
  for (const { owner, type, ttl, data } of sets) {
    for (const item of data) lines.push(`${name(owner)} ${ttl} IN ${type} ${print(item, name)}`);
  }
  return `${lines.join("\n")}\n`;
}

function print(data: RecordData, name: (text: string) => string): string {
  if ("address" in data) return data.address;
  if ("exchange" in data) return `${data.preference} ${name(data.exchange)}`;
  if ("port" in data) return `${data.priority} ${data.weight} ${data.port} ${name(data.target)}`;
  if ("target" in data) return name(data.target);
  return data.strings.map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`).join(" ");
}
