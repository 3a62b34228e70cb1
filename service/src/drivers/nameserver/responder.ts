/**
 * A packet in, an answer out: the server without its sockets, so that the worker, the simulation and the tests run the
 * very same code. It knows what every kind of message gets (RFC 1035, 6891, 8945, 8906) and never throws for what is in a packet.
 */
import { type Answer, KINDS, resolve, soaOf } from "./answer.ts";
import { createCache, type Reply } from "./cache.ts";
import { isLoopback, type Limiter } from "./rrl.ts";
import { transferZone } from "./transfer.ts";
import { type Key, type Signer, sign, signatureSize, verify } from "./tsig.ts";
import {
  CLASS_IN,
  createWriter,
  HEADER,
  OPCODE,
  OPT_SIZE,
  PLAIN_SIZE,
  parseQuery,
  type Query,
  questionName,
  RCODE,
  TCP_SIZE,
  UDP_SIZE,
} from "./wire.ts";
import { isNewer, TYPE, type Zone } from "./zone.ts";
import type { Zones } from "./zones.ts";

const QR = 0x80;
const OPCODE_BITS = 0x78;
const AA = 0x04;
const TC = 0x02;
const RD = 0x01;

export interface ResponderOptions {
  readonly zones: Zones;
  readonly limiter: Limiter | null;
  /** Count loopback too, whose addresses nobody outside can forge. */
  readonly limitLoopback: boolean;
  readonly keys: ReadonlyMap<string, Key>;
  readonly mayTransfer: (address: string) => boolean;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly fault: (fault: unknown) => void;
}

export interface Responder {
  /** The answer to a datagram, or null for silence. It is lent: the next call may write into it, unless `keep` comes before. */
  udp(packet: Buffer, address: string): Buffer | null;
  /** Leaves the last answer of `udp` to its taker for good. */
  keep(): void;
  /** The answers to a message that came by TCP: none, one, or the many of a transfer (null: not ready yet). They are the taker's. */
  tcp(packet: Buffer, address: string): Iterable<Buffer | null>;
}

/** One question and where it came from. */
interface Request {
  readonly packet: Buffer;
  /** Null when the message could not be read. */
  readonly query: Query | null;
  readonly tcp: boolean;
  readonly address: string;
}

interface Asked extends Request {
  readonly query: Query;
}

type Transfer = Generator<Buffer | null, void>;

export function createResponder(options: ResponderOptions): Responder {
  const { zones, limiter, keys, now } = options;
  const cache = createCache();
  const writer = createWriter();
  let epoch = zones.epoch;
  let lent: Reply | null = null;

  /** Puts the query's header and question before what was written; `counts` are those of answer, authority and additional. */
  const compose = (packet: Buffer, end: number, flags: number, rcode: number, counts: readonly number[]): Buffer => {
    const message = Buffer.allocUnsafe(writer.end);
    packet.copy(message, 0, 0, end);
    writer.copy(message, end);
    message[2] = QR | ((packet[2] as number) & (OPCODE_BITS | RD)) | flags;
    message[3] = rcode & 15;
    message.writeUInt16BE(end > HEADER ? 1 : 0, 4);
    for (const [i, count] of counts.entries()) message.writeUInt16BE(count, 6 + 2 * i);
    return message;
  };

  /** An answer without records. */
  const plain = ({ packet, query }: Request, rcode: number, flags = 0, zone?: Zone): Reply => {
    const end = query?.end ?? HEADER;
    writer.start(null, end);
    if (query?.edns) writer.addOpt(rcode >> 4, query.dnssec);
    return { message: compose(packet, end, flags, rcode, [0, 0, query?.edns ? 1 : 0]), zone, sameness: rcode };
  };

  /** Writes what fits into `limit` bytes; without room for what must be told the answer says so (RFC 2181 section 9). */
  const encode = (request: Asked, name: string, found: Answer, limit: number): Reply => {
    const { packet, query, tcp } = request;
    const { rcode, zone } = found;
    const room = limit - (query.edns ? OPT_SIZE : 0);
    const flags = found.authoritative ? AA : 0;
    const same = sameness(found, query);
    writer.start(name, query.end);
    const ends = [0, 0, 0];
    for (const [i, records] of [found.answer, found.authority, found.glue].entries()) {
      for (const set of records) {
        if (writer.add(set, room) === set.end) continue;
        const short = tcp ? plain(request, RCODE.SERVFAIL, 0, zone) : plain(request, rcode, flags | TC, zone);
        return { ...short, sameness: same };
      }
      ends[i] = writer.count;
    }
    for (const set of found.extra) {
      const { end, count } = writer;
      if (writer.add(set, room) !== set.end) writer.cut(end, count);
    }
    const [answers = 0, authorities = 0] = ends;
    const additionals = writer.count - authorities + (query.edns ? 1 : 0);
    if (query.edns) writer.addOpt(0, query.dnssec);
    const message = compose(packet, query.end, flags, rcode, [answers, authorities - answers, additionals]);
    return { message, zone, sameness: same };
  };

  const answer = (request: Asked, reserve: number): Reply => {
    const { packet, query, tcp } = request;
    const fault = ednsFault(query);
    if (fault !== RCODE.NOERROR) return plain(request, fault);
    if (query.class !== CLASS_IN) return plain(request, RCODE.REFUSED);
    if (epoch !== zones.epoch) {
      cache.clear();
      epoch = zones.epoch;
    }
    const usual = tcp ? TCP_SIZE : query.edns ? UDP_SIZE : PLAIN_SIZE;
    const most = tcp ? TCP_SIZE : Math.min(usual, Math.max(PLAIN_SIZE, query.size));
    const variant = (tcp ? 4 : 0) | (query.edns ? 2 : 0) | (query.dnssec ? 1 : 0);
    const cached = reserve === 0 ? cache.get(packet, query, variant) : undefined;
    if (cached !== undefined && cached.message.length <= most) return readdress(cached, packet, query.end);
    const name = questionName(packet, query);
    const found = resolve(zones, name, query.type);
    const reply = encode(request, name, found, most - reserve);
    return reserve === 0 && found.local && most === usual ? cache.put(query, variant, reply) : reply;
  };

  const transfer = (request: Asked, signer: Signer | null): Reply | Transfer => {
    const { packet, query, tcp, address } = request;
    const fault = ednsFault(query);
    if (fault !== RCODE.NOERROR) return plain(request, fault);
    const name = questionName(packet, query);
    const zone = zones.get(name);
    if (signer === null && !options.mayTransfer(address)) return plain(request, RCODE.REFUSED, 0, zone);
    if (zone === undefined) return plain(request, RCODE.NOTAUTH);
    const { serial, ttl } = zone.authority;
    const current = query.serial !== null && !isNewer(serial, query.serial);
    if (query.type === TYPE.IXFR && (!tcp || current)) {
      const found = { ...resolve(zones, name, TYPE.SOA), answer: [soaOf(zone, ttl)] };
      const reserve = signer === null ? 0 : signatureSize(signer.key);
      return encode(request, name, found, (tcp ? TCP_SIZE : PLAIN_SIZE) - reserve);
    }
    if (!tcp) return plain(request, RCODE.FORMERR, 0, zone);
    count(zone, RCODE.NOERROR);
    writer.start(null, query.end);
    const head = compose(packet, query.end, AA, RCODE.NOERROR, [0, 0, 0]);
    return transferZone(zone, head, signer, () => Math.floor(now() / 1000));
  };

  const finish = (request: Request, reply: Reply): Reply | null => {
    const { zone, message } = reply;
    if (zone !== undefined) count(zone, (message[3] as number) & 15);
    if (limiter === null || request.tcp || (!options.limitLoopback && isLoopback(request.address))) return reply;
    const verdict = limiter.admit(request.address, reply.sameness);
    if (verdict === "send") return reply;
    return verdict === "drop" ? null : plain(request, RCODE.NOERROR, TC, zone);
  };

  const signed = (request: Asked): Reply | Transfer | null => {
    const { packet, query } = request;
    const seconds = Math.floor(now() / 1000);
    const verdict = verify(packet, query.tsig, keys, seconds);
    if (verdict.state === "broken") return finish(request, plain({ ...request, query: null }, RCODE.FORMERR));
    if (verdict.state === "bad") {
      const refusal = finish(request, plain(request, RCODE.NOTAUTH));
      return refusal === null ? null : { ...refusal, message: verdict.refuse(refusal.message) };
    }
    const { signer } = verdict;
    const reply = isTransfer(query) ? transfer(request, signer) : answer(request, signatureSize(signer.key));
    if (!("message" in reply)) return reply;
    const sent = finish(request, reply);
    return sent === null ? null : { ...sent, message: sign(sent.message, signer, seconds).bytes };
  };

  const respond = (packet: Buffer, tcp: boolean, address: string): Reply | Transfer | null => {
    if (packet.length < HEADER) return null;
    const bits = packet[2] as number;
    if ((bits & QR) !== 0) return null;
    const query = parseQuery(packet);
    const opcode = (bits & OPCODE_BITS) >> 3;
    if (opcode !== OPCODE.QUERY) {
      const request = { packet, query, tcp, address };
      const fault = query === null ? RCODE.NOERROR : ednsFault(query);
      const rcode = opcode === OPCODE.NOTIFY ? RCODE.REFUSED : RCODE.NOTIMP;
      return finish(request, plain(request, fault === RCODE.NOERROR ? rcode : fault));
    }
    if (query === null) {
      const request = { packet, query, tcp, address };
      return finish(request, plain(request, RCODE.FORMERR));
    }
    const request = { packet, query, tcp, address };
    if (query.tsig > 0) return signed(request);
    const reply = isTransfer(query) ? transfer(request, null) : answer(request, 0);
    return "message" in reply ? finish(request, reply) : reply;
  };

  /** The last line: a fault of ours costs this client its answer and nobody else anything. */
  const guarded = (packet: Buffer, tcp: boolean, address: string): Reply | Transfer | null => {
    try {
      return respond(packet, tcp, address);
    } catch (fault) {
      options.fault(fault);
      return plain({ packet, query: null, tcp, address }, RCODE.SERVFAIL);
    }
  };

  return {
    udp(packet, address) {
      const reply = guarded(packet, false, address);
      if (reply === null || !("message" in reply)) return null;
      lent = reply;
      return reply.message;
    },
    keep() {
      if (lent !== null) lent.message = Buffer.from(lent.message);
    },
    tcp(packet, address) {
      const reply = guarded(packet, true, address);
      if (reply === null) return [];
      return "message" in reply ? [Buffer.from(reply.message)] : reply;
    },
  };
}

/** Makes a reply the one to this packet, which asks the same question with another id, RD and letter case. */
function readdress(reply: Reply, packet: Buffer, end: number): Reply {
  const { message } = reply;
  message[0] = packet[0] as number;
  message[1] = packet[1] as number;
  message[2] = ((message[2] as number) & ~RD) | ((packet[2] as number) & RD);
  for (let at = HEADER; at < end; at++) message[at] = packet[at] as number;
  return reply;
}

/** What an OPT record that we cannot go by is answered with, whatever the message wants (RFC 6891 sections 6.1.3 and 7). */
function ednsFault({ version, ednsBroken }: Query): number {
  if (version > 0) return RCODE.BADVERS;
  return ednsBroken ? RCODE.FORMERR : RCODE.NOERROR;
}

function isTransfer(query: Query): boolean {
  return (query.type === TYPE.AXFR || query.type === TYPE.IXFR) && query.class === CLASS_IN;
}

function count(zone: Zone, rcode: number): void {
  zone.counts[rcode] = (zone.counts[rcode] ?? 0) + 1;
}

/**
 * What a rate limit takes for one and the same answer. Whoever asks for a new random name each time gets the same "does not
 * exist" or the same wildcard, and must not get around the limit by it.
 */
function sameness(found: Answer, query: Query): number {
  if (found.kind === "data") return Math.imul(query.hash ^ query.type, 0x85ebca6b) >>> 0;
  let hash = KINDS.indexOf(found.kind);
  const name = found.zone?.name ?? "";
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
