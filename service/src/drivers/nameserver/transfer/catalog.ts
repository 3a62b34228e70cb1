/**
 * The catalog zone (RFC 9432) lists all zones, so that secondaries add and remove them automatically. Only clients that may transfer zones
 * can read it, and each sees only those zones. The serial is the second of the last change. It changes at most once a second, so it never
 * exceeds the clock and need not be stored.
 */
import { createHash } from "node:crypto";
import { type Authority, createZone, putSet, TYPE, type Zone } from "../builtin/zone.ts";
import type { Zones } from "../builtin/zones.ts";
import { nameOf } from "../wire/name.ts";

/** Changes of one moment make one serial. */
const GATHER_MS = 10;
/** Members listed in one step. */
const STEP = 1000;
const TTL = 0;

export interface Catalog {
  readonly name: string;
  /** 0 until all zones are loaded. */
  serial(): number;
  authority(): Authority;
  /** A zone came, went, or is another one of the same name. */
  touch(): void;
  /** All zones are there: from now on it is served. */
  load(): void;
  /** The catalog of the zones that pass, made in steps (it yields between them). */
  image(isListed: (zone: Zone) => boolean): Generator<null, Zone>;
  close(): void;
}

/** `now` gives milliseconds since 1970; `changed` is called with each new serial. Throws a RangeError for a name that is none. */
export function createCatalog(text: string, zones: Zones, now: () => number, changed: () => void): Catalog {
  const name = nameOf(text.replace(/\.$/, ""));
  let serial = 0;
  let timer: NodeJS.Timeout | null = null;

  const plan = (): void => {
    const next = Math.max(now() + GATHER_MS, (serial + 1) * 1000);
    timer = setTimeout(() => {
      timer = null;
      const second = Math.floor(now() / 1000);
      if (second <= serial) return plan();
      serial = second;
      changed();
    }, next - now());
  };

  const authority = (): Authority => ({ serial, ttl: TTL, negativeTtl: TTL, rdata: soaData(serial) });

  return {
    name,
    serial: () => serial,
    authority,
    touch() {
      if (serial !== 0 && timer === null) plan();
    },
    load() {
      // Above whatever a process before this one has served until now.
      serial = Math.max(serial, Math.floor(now() / 1000)) + 1;
      changed();
    },
    *image(isListed) {
      const catalog = createZone(name, authority(), []);
      putSet(catalog, "", TYPE.NS, packed(TYPE.NS, "\x07invalid\0"));
      putSet(catalog, "\x07version", TYPE.TXT, packed(TYPE.TXT, "\x012"));
      let looked = 0;
      for (const zone of zones.all()) {
        if (isListed(zone))
          putSet(catalog, `\x20${labelOf(zone)}\x05zones`, TYPE.PTR, packed(TYPE.PTR, `${zone.name}\0`));
        if (++looked % STEP === 0) yield null;
      }
      return catalog;
    },
    close() {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** The label is the member's identity: a zone that is deleted and made again is another member. */
function labelOf({ name, identity }: Zone): string {
  return createHash("sha256").update(`${identity} ${name}`, "latin1").digest("hex").slice(0, 32);
}

/** A set of one record, as `zone.ts` has it. */
function packed(type: number, rdata: string): string {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(type, 0);
  bytes.writeUInt32BE(TTL, 2);
  bytes.writeUInt32BE(rdata.length + 2, 6);
  bytes.writeUInt16BE(rdata.length, 10);
  return bytes.toString("latin1") + rdata;
}

/** RFC 9432 section 4.1: names that lead nowhere, and an expiry far away, because what expires would take all members with it. */
function soaData(serial: number): string {
  const numbers = Buffer.alloc(20);
  for (const [i, value] of [serial, 3600, 600, 0x7ffffffe, 0].entries()) numbers.writeUInt32BE(value, 4 * i);
  return `\x07invalid\0\x07invalid\0${numbers.toString("latin1")}`;
}
