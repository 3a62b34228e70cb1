/**
 * Turns a packet into a response: the name server without its sockets, shared by the worker, the simulation and the tests. It implements
 * the response to every kind of message (RFC 1035, 6891, 8945, 8906) and never throws because of a packet's content.
 */

import { createCache, type Reply } from "../builtin/cache.ts";
import { type Authority, isNewer, TYPE, type Zone } from "../builtin/zone.ts";
import type { Zones } from "../builtin/zones.ts";
import type { Catalog } from "../transfer/catalog.ts";
import type { Notifier } from "../transfer/notify.ts";
import { imageOf, transferZone } from "../transfer/transfer.ts";
import type { LentMessage, Transfers } from "../transfer/transfers.ts";
import { inScope, type Signer, sign, signatureSize, type TsigKey, verify } from "../transfer/tsig.ts";
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
} from "../wire/message.ts";
import { type Answer, resolve, soaOf } from "./answer.ts";
import { type AnswerDatagram, createDatagrams } from "./datagram.ts";
import { AA, count, datagramLimit, ednsError, isNoQuery, OPCODE_BITS, QR, RD, sameness, TC } from "./header.ts";
import { type Client, clientAt, isLimited, type Limiter } from "./ratelimit.ts";

/** Options of `createResponder`. */
export interface ResponderOptions {
  readonly zones: Zones;
  /** Limits equal responses over UDP. */
  readonly limiter: Limiter | null;
  /** Limits all queries over UDP. */
  readonly queries?: Limiter | null;
  /** Whether to limit loopback too, whose addresses cannot be forged from outside. */
  readonly limitLoopback: boolean;
  readonly keys: ReadonlyMap<string, TsigKey>;
  /** Returns whether this address may transfer all zones without a key. */
  readonly mayTransfer: (address: string) => boolean;
  readonly catalog?: Catalog | null;
  /** Composes large transfers. Without it all are composed here. */
  readonly transfers?: Transfers;
  /** Called when a client proved that it has the serial of a zone, or queried it. */
  readonly noteClient?: Notifier["noteClient"];
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly error: (error: unknown) => void;
}

/** Responds to packets. */
export interface Responder {
  readonly udp: AnswerDatagram;
  /** Returns the responses to a message over TCP: none, one, or the many of a transfer. The caller owns them. */
  tcp(packet: Buffer, address: string): Iterable<Turn>;
}

/** One query and its source. */
interface Request {
  readonly packet: Buffer;
  /** Null when the message could not be read. */
  readonly query: Query | null;
  readonly tcp: boolean;
  readonly client: Client;
}

interface Question extends Request {
  readonly query: Query;
}

/** A message of a response; null: serve others first; a promise: continue when it is resolved. */
export type Turn = Buffer | LentMessage | null | Promise<void>;
type Transfer = Generator<Turn, void>;

/** Zones with more names are transferred by `ResponderOptions.transfers`. */
const SMALL_ZONE = 1000;

/** Creates a responder with its own cache. */
export function createResponder(options: ResponderOptions): Responder {
  const { zones, limiter, keys, now, catalog = null, noteClient = () => {} } = options;
  const cache = createCache();
  const writer = createWriter();
  let epoch = zones.epoch;

  /**
   * Composes a message from the query's header and question and the written records; `counts` are those of answer, authority and
   * additional.
   */
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

  /** Returns a response without records. */
  const plain = ({ packet, query }: Request, rcode: number, flags = 0, zone?: Zone): Reply => {
    const end = query?.end ?? HEADER;
    writer.start(null, end);
    if (query?.edns) writer.addOpt(rcode >> 4, query.dnssec);
    return { message: compose(packet, end, flags, rcode, [0, 0, query?.edns ? 1 : 0]), zone, sameness: rcode };
  };

  /** Encodes the records that fit into `limit` bytes. If required records do not fit, the response is truncated (RFC 2181 section 9). */
  const encode = (request: Question, name: string, found: Answer, limit: number): Reply => {
    const { packet, query, tcp } = request;
    const { rcode, zone } = found;
    const space = limit - (query.edns ? OPT_SIZE : 0);
    const flags = found.authoritative ? AA : 0;
    const same = sameness(found, query);
    writer.start(name, query.end);
    const ends = [0, 0, 0];
    for (const [i, records] of [found.answer, found.authority, found.glue].entries()) {
      for (const set of records) {
        if (writer.add(set, space) === set.end) continue;
        const short = tcp ? plain(request, RCODE.SERVFAIL, 0, zone) : plain(request, rcode, flags | TC, zone);
        return { ...short, sameness: same };
      }
      ends[i] = writer.count;
    }
    for (const set of found.extra) {
      const { end, count } = writer;
      if (writer.add(set, space) !== set.end) writer.cut(end, count);
    }
    const [answers = 0, authorities = 0] = ends;
    const additionals = writer.count - authorities + (query.edns ? 1 : 0);
    if (query.edns) writer.addOpt(0, query.dnssec);
    const message = compose(packet, query.end, flags, rcode, [answers, authorities - answers, additionals]);
    return { message, zone, sameness: same };
  };

  /** Returns whether the signer, or any client at the address, may transfer the zone. */
  const mayHave = (zone: Zone, client: Client, signer: Signer | null): boolean =>
    options.mayTransfer(client.address()) ||
    (signer !== null && (signer.key.scope === null || inScope(signer.key.scope, zone)));

  const answerSoa = (
    request: Question,
    name: string,
    authority: Authority,
    zone: Zone | undefined,
    limit: number,
  ): Reply => {
    const soa = soaOf({ name, authority }, authority.ttl);
    const none = { answer: [soa], authority: [], glue: [], extra: [], kind: "data", local: true } as const;
    return encode(request, name, { ...none, rcode: RCODE.NOERROR, authoritative: true, zone }, limit);
  };

  /**
   * Responds to queries for the catalog zone from clients that may transfer zones: with its SOA, or with the part that the client may see.
   * Null: not the catalog, or not for this client.
   */
  const answerCatalog = (request: Question, signer: Signer | null): Reply | Transfer | null => {
    const { packet, query, tcp, client } = request;
    if (catalog === null || query.class !== CLASS_IN || questionName(packet, query) !== catalog.name) return null;
    if (signer === null && !options.mayTransfer(client.address())) return null;
    const address = client.address();
    const error = ednsError(query);
    if (error !== RCODE.NOERROR) return plain(request, error);
    const { name } = catalog;
    const serial = catalog.serial();
    if (serial === 0) return plain(request, RCODE.SERVFAIL);
    const isIxfr = query.type === TYPE.IXFR;
    const isCurrent = query.serial !== null && !isNewer(serial, query.serial);
    if (isIxfr && isCurrent) noteClient(name, query.serial ?? 0, "has", address, signer?.key ?? null);
    if (query.type === TYPE.SOA || (isIxfr && (!tcp || isCurrent))) {
      if (query.type === TYPE.SOA) noteClient(name, serial, "queried", address, signer?.key ?? null);
      const reserve = signer === null ? 0 : signatureSize(signer.key);
      return answerSoa(request, name, catalog.authority(), undefined, (tcp ? TCP_SIZE : PLAIN_SIZE) - reserve);
    }
    if (query.type !== TYPE.AXFR && !isIxfr) return plain(request, RCODE.REFUSED);
    if (!tcp) return plain(request, RCODE.FORMERR);
    return start(
      request,
      catalog.image((zone) => mayHave(zone, client, signer)),
      signer,
    );
  };

  /** Returns the messages of a transfer, and reports when the last was taken. */
  function* start(
    { packet, query, client }: Question,
    image: Zone | Generator<null, Zone>,
    signer: Signer | null,
  ): Transfer {
    const zone = "next" in image ? yield* image : image;
    const { end } = query;
    writer.start(null, end);
    if (query.edns) writer.addOpt(0, query.dnssec);
    const first = compose(packet, end, AA, RCODE.NOERROR, [0, 0, query.edns ? 1 : 0]);
    const [head, opt] = [first.subarray(0, end), first.subarray(end)];
    const zoneImage = imageOf(zone);
    const { transfers } = options;
    yield* transfers !== undefined && zone.owners > SMALL_ZONE
      ? transfers.transfer(zoneImage, head, signer, opt)
      : transferZone(zoneImage, head, signer, () => Math.floor(now() / 1000), opt);
    noteClient(zone.name, zoneImage.authority.serial, "has", client.address(), signer?.key ?? null);
  }

  const answer = (request: Question, signer: Signer | null): Reply => {
    const { packet, query, tcp } = request;
    const reserve = signer === null ? 0 : signatureSize(signer.key);
    const error = ednsError(query);
    if (error !== RCODE.NOERROR) return plain(request, error);
    if (query.class !== CLASS_IN) return plain(request, RCODE.REFUSED);
    if (epoch !== zones.epoch) {
      cache.clear();
      epoch = zones.epoch;
    }
    const usual = tcp ? TCP_SIZE : query.edns ? UDP_SIZE : PLAIN_SIZE;
    const most = tcp ? TCP_SIZE : datagramLimit(query);
    const variant = (tcp ? 4 : 0) | (query.edns ? 2 : 0) | (query.dnssec ? 1 : 0);
    const cached = reserve === 0 ? cache.get(packet, query, variant) : undefined;
    if (cached !== undefined && cached.message.length <= most) return readdress(cached, packet, query.end);
    const name = questionName(packet, query);
    const found = resolve(zones, name, query.type);
    const reply = encode(request, name, found, most - reserve);
    return reserve === 0 && found.local && most === usual ? cache.put(query, variant, reply) : reply;
  };

  const transfer = (request: Question, signer: Signer | null): Reply | Transfer => {
    const { packet, query, tcp, client } = request;
    const error = ednsError(query);
    if (error !== RCODE.NOERROR) return plain(request, error);
    const name = questionName(packet, query);
    const zone = zones.get(name);
    const address = client.address();
    if (signer === null && !options.mayTransfer(address)) return plain(request, RCODE.REFUSED, 0, zone);
    if (zone === undefined) return plain(request, RCODE.NOTAUTH);
    if (!mayHave(zone, client, signer)) return plain(request, RCODE.REFUSED, 0, zone);
    const current = query.serial !== null && !isNewer(zone.authority.serial, query.serial);
    if (query.type === TYPE.IXFR && (!tcp || current)) {
      if (current) noteClient(name, query.serial ?? 0, "has", address, signer?.key ?? null);
      const reserve = signer === null ? 0 : signatureSize(signer.key);
      return answerSoa(request, name, zone.authority, zone, (tcp ? TCP_SIZE : PLAIN_SIZE) - reserve);
    }
    if (!tcp) return plain(request, RCODE.FORMERR, 0, zone);
    count(zone, RCODE.NOERROR);
    return start(request, zone, signer);
  };

  const serve = (request: Question, signer: Signer | null): Reply | Transfer => {
    const { packet, query, client } = request;
    const wantsZone = isTransfer(query);
    // Secondaries send only these queries; all others take the fast path.
    if (!wantsZone && query.type !== TYPE.SOA) return answer(request, signer);
    const hidden = answerCatalog(request, signer);
    if (hidden !== null) return hidden;
    if (wantsZone) return transfer(request, signer);
    const zone = zones.get(questionName(packet, query));
    if (zone !== undefined)
      noteClient(zone.name, zone.authority.serial, "queried", client.address(), signer?.key ?? null);
    return answer(request, signer);
  };

  const finish = (request: Request, reply: Reply): Reply | null => {
    const { zone, message } = reply;
    if (zone !== undefined) count(zone, (message[3] as number) & 15);
    if (limiter === null || request.tcp || !isLimited(options, request.client)) return reply;
    const verdict = limiter.admit(request.client.network(), reply.sameness);
    if (verdict === "send") return reply;
    return verdict === "drop" ? null : plain(request, RCODE.NOERROR, TC, zone);
  };

  const signed = (request: Question): Reply | Transfer | null => {
    const { packet, query } = request;
    const seconds = Math.floor(now() / 1000);
    const verdict = verify(packet, query.tsig, keys, seconds);
    if (verdict.state === "broken") return finish(request, plain({ ...request, query: null }, RCODE.FORMERR));
    if (verdict.state === "bad") {
      const refusal = finish(request, plain(request, RCODE.NOTAUTH));
      return refusal === null ? null : { ...refusal, message: verdict.refuse(refusal.message) };
    }
    const { signer } = verdict;
    const reply = serve(request, signer);
    if (!("message" in reply)) return reply;
    const sent = finish(request, reply);
    return sent === null ? null : { ...sent, message: sign(sent.message, signer, seconds).bytes };
  };

  const respond = (request: Request): Reply | Transfer | null => {
    const { packet, query } = request;
    const opcode = ((packet[2] as number) & OPCODE_BITS) >> 3;
    if (opcode !== OPCODE.QUERY) {
      const error = query === null ? RCODE.NOERROR : ednsError(query);
      const rcode = opcode === OPCODE.NOTIFY ? RCODE.REFUSED : RCODE.NOTIMP;
      return finish(request, plain(request, error === RCODE.NOERROR ? rcode : error));
    }
    if (!isQuestion(request)) return finish(request, plain(request, RCODE.FORMERR));
    if (request.query.tsig > 0) return signed(request);
    const reply = serve(request, null);
    return "message" in reply ? finish(request, reply) : reply;
  };

  /** The last safeguard: an internal error affects only this response. */
  const guarded = (request: Request): Reply | Transfer | null => {
    try {
      return respond(request);
    } catch (error) {
      options.error(error);
      return plain({ ...request, query: null }, RCODE.SERVFAIL);
    }
  };

  return {
    udp: createDatagrams({ ...options, queries: options.queries ?? null }, (packet, query, client) => {
      const reply = guarded({ packet, query, tcp: false, client });
      return reply === null || !("message" in reply) ? null : reply.message;
    }),
    tcp(packet, address) {
      if (isNoQuery(packet, packet.length)) return [];
      const reply = guarded({ packet, query: parseQuery(packet), tcp: true, client: clientAt(address) });
      if (reply === null) return [];
      return "message" in reply ? [Buffer.from(reply.message)] : reply;
    },
  };
}

const isQuestion = (request: Request): request is Question => request.query !== null;

/** Adapts a cached response to a packet with the same question but another id, RD and letter case. */
function readdress(reply: Reply, packet: Buffer, end: number): Reply {
  const { message } = reply;
  message[0] = packet[0] as number;
  message[1] = packet[1] as number;
  message[2] = ((message[2] as number) & ~RD) | ((packet[2] as number) & RD);
  for (let at = HEADER; at < end; at++) message[at] = packet[at] as number;
  return reply;
}

function isTransfer(query: Query): boolean {
  return (query.type === TYPE.AXFR || query.type === TYPE.IXFR) && query.class === CLASS_IN;
}
