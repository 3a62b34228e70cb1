/**
 * Zone transfers to secondaries (AXFR, RFC 5936): access control and the sequence of messages. A transfer reads a snapshot of the zone, so
 * that it contains one serial regardless of its duration.
 */
import { BlockList } from "node:net";
import { isVersion6, plainAddress } from "../../../base/address.ts";
import { soaOf } from "../answer/answer.ts";
import { entriesOf, type Snapshot, snapshotOf } from "../builtin/table.ts";
import { type Authority, SET_HEADER, u32, type Zone } from "../builtin/zone.ts";
import { createWriter, HEADER, type Records, recordsOf } from "../wire/message.ts";
import { type Signer, sign, signatureSize } from "./tsig.ts";

/** Bytes per message: large, so that there are few, but every name in it is within reach of a compression pointer. */
const MESSAGE_SIZE = 16_000;

/** Returns a test whether an address of a socket is in the list of addresses and blocks. Throws a TypeError for an entry that is neither. */
export function createAccess(addresses: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of addresses) {
    const [address = "", prefix] = entry.split("/");
    const family = isVersion6(address) ? "ipv6" : "ipv4";
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    const plain = plainAddress(address).split("%")[0] as string;
    return list.check(plain, isVersion6(plain) ? "ipv6" : "ipv4");
  };
}

const noOpt = Buffer.alloc(0);

/** A zone at one serial. It can be passed to another thread. */
export interface ZoneImage {
  readonly name: string;
  readonly authority: Authority;
  readonly snapshot: Snapshot;
}

/** Returns the zone as it is now; later changes do not affect it. */
export const imageOf = ({ name, authority, table, generation }: Zone): ZoneImage => {
  return { name, authority, snapshot: snapshotOf(table, generation) };
};

/**
 * Yields the messages of a transfer: SOA, all records, SOA. `head` is the header and question of the first message, which ends with `opt`,
 * its OPT record (RFC 5936 section 2.2.5); `now` returns seconds for the signatures.
 */
export function* transferZone(
  { name, authority, snapshot }: ZoneImage,
  head: Buffer,
  signer: Signer | null,
  now: () => number,
  opt: Buffer = noOpt,
): Generator<Buffer, void> {
  const soa = soaOf({ name, authority }, authority.ttl);
  const records = recordsIn(snapshot, name, soa);
  const writer = createWriter();
  const limit = MESSAGE_SIZE - (signer === null ? 0 : signatureSize(signer.key));
  let prior = signer?.prior ?? null;
  let message = head;
  const finish = (): Buffer => {
    const last = message === head ? opt : noOpt;
    const bytes = Buffer.allocUnsafeSlow(writer.end + last.length);
    message.copy(bytes);
    writer.copy(bytes, message.length);
    last.copy(bytes, writer.end);
    bytes.writeUInt16BE(writer.count, 6);
    if (signer === null) return bytes;
    const signed = sign(bytes, { key: signer.key, prior }, now(), message !== head);
    prior = signed.mac;
    return signed.bytes;
  };

  writer.start(name, head.length);
  for (const set of records) {
    let start = set.start;
    while (start < set.end) {
      const rest = { ...set, start };
      // A record larger than a usual message gets one of its own.
      start = writer.add(rest, writer.count === 0 ? 0xffff - 512 : limit);
      if (start === set.end) break;
      if (writer.count === 0) throw new RangeError(`a record of ${name} is too long to be transferred`);
      yield finish();
      if (message === head) {
        message = Buffer.from(head.subarray(0, HEADER));
        message.writeUInt16BE(0, 4);
        message.writeUInt16BE(0, 10);
      }
      writer.start(null, HEADER);
    }
  }
  yield finish();
}

function* recordsIn(snapshot: Snapshot, zone: string, soa: Records): Generator<Records, void> {
  yield soa;
  for (const [owner, sets] of entriesOf(snapshot))
    for (let at = 0; at < sets.length; at += SET_HEADER + u32(sets, at + 6)) yield recordsOf(owner + zone, sets, at);
  yield soa;
}
