/**
 * The catalog zone (RFC 9432) lists all zones, so that secondaries add and remove them automatically. Only clients that may transfer zones
 * can read it, and each sees only those zones. The serial is the second of the last change. It changes at most once a second, so it never
 * exceeds the clock and need not be stored. If the clock was set back, the serial increases all the same; after a restart it continues above
 * the serial that a secondary reports.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../../base/clock.ts";
import { type Authority, createZone, putSet, TYPE, type Zone } from "../builtin/zone.ts";
import type { Zones } from "../builtin/zones.ts";
import { nameOf } from "../wire/name.ts";

/** Milliseconds in which changes are collected for one serial. */
const GATHER_MS = 10;
/** Longest time in which changes are collected: the clock was set back below the serial. */
const WAIT_MS = 2100;
/** Members listed in one step. */
const STEP = 1000;
const TTL = 0;
/** Higher serials would be lower ones by serial arithmetic soon. No clock has them before the year 2100. */
const LARGEST = 2 ** 32 - 2 ** 24;

/** Builds the catalog of one name server from its zones. */
export interface Catalog {
  readonly name: string;
  /** 0 until all zones are loaded. */
  serial(): number;
  authority(): Authority;
  /** Records that a zone was added, removed or replaced by another one of the same name. */
  touch(): void;
  /** Starts to serve the catalog: all zones are loaded. */
  load(): void;
  /** Continues above a serial that a secondary has, if it is higher. */
  exceed(serial: number): void;
  /** Builds the catalog of the zones that `isListed` accepts; yields between steps. */
  image(isListed: (zone: Zone) => boolean): Generator<null, Zone>;
  close(): void;
}

/** Creates the catalog. `changed` is called for each new serial. Throws a RangeError for an invalid name. */
export function createCatalog(text: string, zones: Zones, clock: Clock, changed: () => void): Catalog {
  const name = nameOf(text.replace(/\.$/, ""));
  let serial = 0;
  let timer: NodeJS.Timeout | null = null;

  const second = (): number => Math.floor(clock.now() / 1000);

  const plan = (): void => {
    // Some ms more, because a timer can fire before its time.
    const untilNext = (serial + 1) * 1000 - clock.now() + 2;
    timer = setTimeout(
      () => {
        timer = null;
        serial = Math.max(serial + 1, second());
        changed();
      },
      Math.min(WAIT_MS, Math.max(GATHER_MS, untilNext)),
    );
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
      // Higher than every serial of an earlier process.
      serial = Math.max(serial, second()) + 1;
      changed();
    },
    exceed(theirs) {
      if (serial === 0 || theirs <= serial || theirs >= LARGEST) return;
      serial = theirs;
      if (timer === null) plan();
    },
    *image(isListed) {
      const catalog = createZone(name, authority(), []);
      putSet(catalog, "", TYPE.NS, packed(TYPE.NS, "\x07invalid\0"));
      putSet(catalog, "\x07version", TYPE.TXT, packed(TYPE.TXT, "\x012"));
      let scanned = 0;
      for (const zone of zones.all()) {
        if (isListed(zone))
          putSet(catalog, `\x20${labelOf(zone)}\x05zones`, TYPE.PTR, packed(TYPE.PTR, `${zone.name}\0`));
        if (++scanned % STEP === 0) yield null;
      }
      return catalog;
    },
    close() {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** Returns the label of a member. It identifies the zone: a zone that is deleted and created again is another member. */
function labelOf({ name, identity }: Zone): string {
  return createHash("sha256").update(`${identity} ${name}`, "latin1").digest("hex").slice(0, 32);
}

/** Returns a set of one record in the packed form of `zone.ts`. */
function packed(type: number, rdata: string): string {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(type, 0);
  bytes.writeUInt32BE(TTL, 2);
  bytes.writeUInt32BE(rdata.length + 2, 6);
  bytes.writeUInt16BE(rdata.length, 10);
  return bytes.toString("latin1") + rdata;
}

/** Returns the SOA data: invalid names and the longest expiry (RFC 9432 section 4.1), because secondaries drop all members when it expires. */
function soaData(serial: number): string {
  const numbers = Buffer.alloc(20);
  for (const [i, value] of [serial, 3600, 600, 0x7ffffffe, 0].entries()) numbers.writeUInt32BE(value, 4 * i);
  return `\x07invalid\0\x07invalid\0${numbers.toString("latin1")}`;
}
