/** Parts of a response that do not depend on the way it is composed: flags, sizes, codes and counters. */
import type { Zone } from "../builtin/zone.ts";
import { HEADER, PLAIN_SIZE, type Query, RCODE, UDP_SIZE } from "../wire/message.ts";
import { type Answer, KINDS } from "./answer.ts";

export const QR = 0x80;
export const OPCODE_BITS = 0x78;
export const AA = 0x04;
export const TC = 0x02;
export const RD = 0x01;

/** Returns whether a message is too short or a response: nothing is sent back. */
export const isNoQuery = (packet: Buffer, length: number): boolean =>
  length < HEADER || ((packet[2] as number) & QR) !== 0;

/** Most bytes of a response over UDP. */
export const datagramLimit = ({ edns, size }: Query): number =>
  edns ? Math.min(UDP_SIZE, Math.max(PLAIN_SIZE, size)) : PLAIN_SIZE;

/** Returns the response code for an invalid OPT record, regardless of the query (RFC 6891 sections 6.1.3 and 7). */
export function ednsError({ version, ednsBroken }: Query): number {
  if (version > 0) return RCODE.BADVERS;
  return ednsBroken ? RCODE.FORMERR : RCODE.NOERROR;
}

/** Adds one to the zone's responses with this code, for metrics. */
export function count(zone: Zone, rcode: number): void {
  zone.counts[rcode] = (zone.counts[rcode] ?? 0) + 1;
}

/**
 * Returns the number by which a rate limit recognises equal responses. Queries for random names share a number, because they get the same
 * negative or wildcard response.
 */
export function sameness(found: Pick<Answer, "kind" | "zone">, query: Query): number {
  if (found.kind === "data") return Math.imul(query.hash ^ query.type, 0x85ebca6b) >>> 0;
  let hash = KINDS.indexOf(found.kind);
  const name = found.zone?.name ?? "";
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
