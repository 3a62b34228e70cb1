/**
 * The way of a datagram: the limit of its network, then a direct answer if the query is usual, else a composed one. All write the response
 * over the query, so that the usual query creates no objects.
 */
import type { Zones } from "../builtin/zones.ts";
import { parseQuery, type Query, RCODE } from "../wire/message.ts";
import { createDirect, type Direct, endWithOpt } from "./direct.ts";
import { AA, count, datagramLimit, ednsError, isNoQuery, OPCODE_BITS, QR, RD, sameness, TC } from "./header.ts";
import { type Client, isLimited, type Limiter } from "./ratelimit.ts";

/** Options of `createDatagrams`; see `ResponderOptions`. */
export interface DatagramOptions {
  readonly zones: Zones;
  readonly limiter: Limiter | null;
  readonly queries: Limiter | null;
  readonly limitLoopback: boolean;
  readonly error: (error: unknown) => void;
}

/**
 * Replaces the datagram in the first `length` bytes of a buffer of 65,535 bytes by the response. Returns the bytes of the response, 0 for
 * none. With `isKnownOnly`, missing and foreign names get no response: see `transport/overload.ts`.
 */
export type AnswerDatagram = (packet: Buffer, length: number, client: Client, isKnownOnly?: boolean) => number;

/** Creates the function. `compose` returns the response to a query that is not usual, or null for none. */
export function createDatagrams(
  options: DatagramOptions,
  compose: (packet: Buffer, query: Query | null, client: Client) => Buffer | null,
): AnswerDatagram {
  const { zones, limiter, queries } = options;
  const answerDirectly = createDirect(zones);
  const direct: Direct = { end: 0, rcode: 0, kind: "data", zone: undefined };

  /** Writes the response that is sent instead of one over a rate: empty and truncated. */
  const truncate = (packet: Buffer, query: Query): number => {
    packet[2] = QR | ((packet[2] as number) & (OPCODE_BITS | RD)) | TC;
    packet[3] = RCODE.NOERROR;
    packet.writeUInt32BE(0x10000, 4);
    packet.writeUInt32BE(0, 8);
    return endWithOpt(packet, query.end, query);
  };

  /** Writes the response to a usual query. Returns its bytes, 0 for none, or null if the query is not usual. */
  const answerUsual = (packet: Buffer, query: Query, client: Client, isKnownOnly: boolean): number | null => {
    if (((packet[2] as number) & OPCODE_BITS) !== 0 || query.tsig > 0 || ednsError(query) !== RCODE.NOERROR)
      return null;
    try {
      if (!answerDirectly(packet, query, datagramLimit(query), direct)) return null;
    } catch (error) {
      options.error(error);
      return null;
    }
    const { zone, rcode, kind } = direct;
    if (isKnownOnly && rcode !== RCODE.NOERROR) return 0;
    if (zone !== undefined) count(zone, rcode);
    packet[2] = QR | ((packet[2] as number) & RD) | (zone === undefined ? 0 : AA);
    packet[3] = rcode;
    if (limiter === null || !isLimited(options, client)) return direct.end;
    const verdict = limiter.admit(client.network(), sameness({ kind, zone }, query));
    if (verdict === "send") return direct.end;
    return verdict === "drop" ? 0 : truncate(packet, query);
  };

  return (packet, length, client, isKnownOnly = false) => {
    if (isNoQuery(packet, length)) return 0;
    const query = parseQuery(packet, length);
    if (queries !== null && isLimited(options, client)) {
      const verdict = queries.admit(client.network(), 0);
      if (verdict !== "send") return verdict === "drop" || query === null ? 0 : truncate(packet, query);
    }
    const usual = query === null ? null : answerUsual(packet, query, client, isKnownOnly);
    return usual ?? compose(packet.subarray(0, length), query, client)?.copy(packet) ?? 0;
  };
}
