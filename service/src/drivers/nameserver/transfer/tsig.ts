/**
 * Transaction signatures (RFC 8945): they prove that a client holds a key and that a response is ours. The signature of a received message
 * is checked over its original bytes without the signature record; the message is never encoded again.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { TYPE, type Zone } from "../builtin/zone.ts";
import { lowerCase, NAME_LIMIT, nameOf } from "../wire/name.ts";

/** Error field of the TSIG record (RFC 8945 section 3). */
export const TSIG_ERROR = { BADSIG: 16, BADKEY: 17, BADTIME: 18 } as const;

const HASHES: ReadonlyMap<string, string> = new Map([
  ["hmac-sha1", "sha1"],
  ["hmac-sha256", "sha256"],
  ["hmac-sha384", "sha384"],
  ["hmac-sha512", "sha512"],
]);
/** Maximum difference of the clocks in seconds. */
const FUDGE = 300;
const CLASS_ANY = 255;

/** Zones that a key may transfer: those with these names, and those of these groups. */
export interface Scope {
  readonly zones: ReadonlySet<string>;
  readonly groups: ReadonlySet<number>;
}

/** A key that signs messages (RFC 8945), with its secret decoded. */
export interface TsigKey {
  readonly name: string;
  readonly algorithm: string;
  readonly hash: string;
  readonly secret: Buffer;
  /** Null: all zones. */
  readonly scope: Scope | null;
}

/** A key of the configuration. */
export interface KeyOptions {
  readonly name: string;
  readonly algorithm: string;
  /** Base64. */
  readonly secret: string;
  /** Dotted names of zones, and groups; absent: all zones. */
  readonly only?: { readonly zones: readonly string[]; readonly groups: readonly number[] } | null;
}

/** Returns whether the scope contains the zone, by name or by group. */
export function inScope({ zones, groups }: Scope, zone: Pick<Zone, "name" | "group">): boolean {
  return zones.has(zone.name) || groups.has(zone.group);
}

/** Creates a key from its configuration. Throws a RangeError for an unknown algorithm, a bad name or an empty secret. */
export function createKey({ name, algorithm, secret, only = null }: KeyOptions): TsigKey {
  const hash = HASHES.get(algorithm.toLowerCase());
  if (hash === undefined)
    throw new RangeError(`TSIG algorithm "${algorithm}" must be one of ${[...HASHES.keys()].join(", ")}`);
  const bytes = Buffer.from(secret, "base64");
  if (bytes.length === 0) throw new RangeError(`TSIG key "${name}" has no secret`);
  const scope = only && { zones: new Set(only.zones.map(nameOf)), groups: new Set(only.groups) };
  return { name: nameOf(name.replace(/\.$/, "")), algorithm: nameOf(algorithm), hash, secret: bytes, scope };
}

interface Signature {
  readonly keyName: string;
  readonly algorithm: string;
  readonly time: number;
  readonly fudge: number;
  readonly mac: Buffer;
  readonly originalId: number;
  readonly error: number;
  readonly other: Buffer;
}

/** Returns the size of a response's signature in bytes. */
export function signatureSize(key: TsigKey): number {
  const mac = createHmac(key.hash, "").digest().length;
  return key.name.length + 1 + 10 + key.algorithm.length + 1 + 16 + mac;
}

function readName(packet: Buffer, from: number): string | null {
  let at = from;
  for (;;) {
    const size = packet[at];
    if (size === undefined || size > 63 || at - from >= NAME_LIMIT) return null;
    if (size === 0) return lowerCase(packet.toString("latin1", from, at));
    at += 1 + size;
  }
}

/** Parses the TSIG record at `start`, which `parseQuery` has found inside the packet. Returns null if its fields are malformed. */
function readSignature(packet: Buffer, start: number): Signature | null {
  const keyName = readName(packet, start);
  if (keyName === null) return null;
  const fixed = start + keyName.length + 1;
  if (packet.readUInt16BE(fixed + 2) !== CLASS_ANY || packet.readUInt32BE(fixed + 4) !== 0) return null;
  const data = fixed + 10;
  const algorithm = readName(packet, data);
  if (algorithm === null) return null;
  let at = data + algorithm.length + 1;
  if (at + 10 > packet.length) return null;
  const time = packet.readUIntBE(at, 6);
  const fudge = packet.readUInt16BE(at + 6);
  const mac = packet.subarray(at + 10, at + 10 + packet.readUInt16BE(at + 8));
  at += 10 + packet.readUInt16BE(at + 8);
  if (at + 6 > packet.length) return null;
  const originalId = packet.readUInt16BE(at);
  const other = packet.subarray(at + 6, at + 6 + packet.readUInt16BE(at + 4));
  if (at + 6 + packet.readUInt16BE(at + 4) !== packet.length) return null;
  return { keyName, algorithm, time, fudge, mac, originalId, error: packet.readUInt16BE(at + 2), other };
}

type Variables = Pick<Signature, "time" | "fudge" | "error" | "other">;

function digest(
  key: TsigKey,
  message: Buffer,
  prior: Buffer | null,
  variables: Variables,
  timersOnly: boolean,
): Buffer {
  const hmac = createHmac(key.hash, key.secret);
  if (prior !== null) hmac.update(Buffer.from([prior.length >> 8, prior.length & 0xff])).update(prior);
  hmac.update(message);
  const timers = Buffer.alloc(8);
  timers.writeUIntBE(variables.time, 0, 6);
  timers.writeUInt16BE(variables.fudge, 6);
  if (timersOnly) return hmac.update(timers).digest();
  const { error, other } = variables;
  hmac
    .update(`${key.name}\0`, "latin1")
    .update(Buffer.from([0, CLASS_ANY, 0, 0, 0, 0]))
    .update(`${key.algorithm}\0`, "latin1");
  hmac.update(timers).update(Buffer.from([error >> 8, error & 0xff, other.length >> 8, other.length & 0xff]));
  return hmac.update(other).digest();
}

function append(
  message: Buffer,
  names: Pick<TsigKey, "name" | "algorithm">,
  mac: Buffer,
  variables: Variables,
): Buffer {
  const { time, fudge, error, other } = variables;
  const rdata = names.algorithm.length + 1 + 16 + mac.length + other.length;
  const record = Buffer.alloc(names.name.length + 1 + 10 + rdata);
  let at = record.write(names.name, "latin1") + 1;
  at = record.writeUInt16BE(TYPE.TSIG, at);
  at = record.writeUInt16BE(CLASS_ANY, at) + 4;
  at = record.writeUInt16BE(rdata, at);
  at += record.write(names.algorithm, at, "latin1") + 1;
  at = record.writeUIntBE(time, at, 6);
  at = record.writeUInt16BE(fudge, at);
  at = record.writeUInt16BE(mac.length, at);
  at += mac.copy(record, at);
  at += message.copy(record, at, 0, 2);
  at = record.writeUInt16BE(error, at);
  at = record.writeUInt16BE(other.length, at);
  other.copy(record, at);
  const signed = Buffer.concat([message, record]);
  signed.writeUInt16BE(message.readUInt16BE(10) + 1, 10);
  return signed;
}

/** The key of a signature, and the MAC that it continues: that of the request for a response, that of the previous message in a transfer. */
export interface Signer {
  readonly key: TsigKey;
  readonly prior: Buffer | null;
}

/** Signs a message at `now` (seconds since 1970). Also returns its MAC. `timersOnly`: for all but the first message of a transfer. */
export function sign(
  message: Buffer,
  { key, prior }: Signer,
  now: number,
  timersOnly = false,
): { bytes: Buffer; mac: Buffer } {
  const variables = { time: now, fudge: FUDGE, error: 0, other: Buffer.alloc(0) };
  const mac = digest(key, message, prior, variables, timersOnly);
  return { bytes: append(message, key, mac, variables), mac };
}

/** Result of `verify`. `broken`: the record is malformed, so the response is FORMERR. */
export type TsigVerdict =
  | { readonly state: "good"; readonly signer: Signer }
  /** `refuse` adds the TSIG record with the error to an unsigned NOTAUTH response. */
  | { readonly state: "bad"; readonly error: number; refuse(answer: Buffer): Buffer }
  | { readonly state: "broken" };

/** Verifies the TSIG record at `start` of a message at `now` (seconds since 1970). `prior`: the MAC of the request, for a response. */
export function verify(
  packet: Buffer,
  start: number,
  keys: ReadonlyMap<string, TsigKey>,
  now: number,
  prior: Buffer | null = null,
): TsigVerdict {
  const signature = readSignature(packet, start);
  if (signature === null) return { state: "broken" };
  const { keyName, algorithm, time, fudge } = signature;
  // RFC 8945 section 5.2.3: the error of a wrong clock is signed and contains our time; all others are unsigned, with an empty MAC.
  const unsigned = (error: number): TsigVerdict => ({
    state: "bad",
    error,
    refuse: (answer) =>
      append(answer, { name: keyName, algorithm }, Buffer.alloc(0), { time, fudge, error, other: Buffer.alloc(0) }),
  });
  const key = keys.get(keyName);
  if (key === undefined || key.algorithm !== algorithm) return unsigned(TSIG_ERROR.BADKEY);
  const message = Buffer.from(packet.subarray(0, start));
  message.writeUInt16BE(signature.originalId, 0);
  message.writeUInt16BE(message.readUInt16BE(10) - 1, 10);
  const mac = digest(key, message, prior, signature, false);
  if (mac.length !== signature.mac.length || !timingSafeEqual(mac, signature.mac)) return unsigned(TSIG_ERROR.BADSIG);
  if (Math.abs(now - time) <= fudge) return { state: "good", signer: { key, prior: signature.mac } };
  const other = Buffer.alloc(6);
  other.writeUIntBE(now, 0, 6);
  const variables = { time, fudge, error: TSIG_ERROR.BADTIME, other };
  return {
    state: "bad",
    error: TSIG_ERROR.BADTIME,
    refuse: (answer) => append(answer, key, digest(key, answer, signature.mac, variables, false), variables),
  };
}
