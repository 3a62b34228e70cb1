/**
 * All zones of the server by name. Every lookup and change of zones goes through it, so that finding the zone of a name and invalidating
 * caches are each in one place.
 */
import { LOWER, lowerCase, parentOf } from "../wire/name.ts";
import { hashOn } from "./table.ts";
import { isNewer, type Zone } from "./zone.ts";

/** The zones of the server. */
export interface Zones {
  /** Returns the zone with exactly this name. */
  get(name: string): Zone | undefined;
  /** Returns the deepest zone that contains the name (RFC 1034 section 4.3.2, step 2). */
  find(name: string): Zone | undefined;
  /** Returns what `find` returns for the name at `from` to `to` of a packet, in any letter case. */
  findIn(packet: Uint8Array, from: number, to: number): Zone | undefined;
  /** Returns whether there is a zone at or below the name. The name then exists, regardless of the parent zone's data (RFC 8020). */
  reach(name: string): boolean;
  /** Returns whether there is a zone below this zone. */
  hasBelow(zone: Zone): boolean;
  /** Adds a zone or replaces the one with its name. */
  put(zone: Zone): void;
  /** Removes the zone unless its served serial is newer than `serial`. */
  withdraw(name: string, serial: number): void;
  all(): Iterable<Zone>;
  readonly size: number;
  /** Grows when a zone is added, removed or replaced; cached responses from before are invalid, also for names in other zones. */
  readonly epoch: number;
  /** See `createTable`. */
  readonly seed: number;
}

/** Creates an empty set of zones. `random` is a number that prevents clients from choosing names with equal hashes. */
export function createZones(random = 0): Zones {
  const seed = random | 0;
  const zones = new Map<string, Zone>();
  /** Zones by the hash of their name. Zones with equal hashes are found by their name only. */
  const byHash = new Map<number, Zone | null>();
  /** Number of zones at or below a name. */
  const below = new Map<string, number>();
  let epoch = 0;
  let deepest = 0;

  const depth = (name: string): number => {
    let labels = 0;
    for (let at = 0; at < name.length; at += 1 + name.charCodeAt(at)) labels++;
    return labels;
  };

  const count = (name: string, by: 1 | -1): void => {
    for (let rest = name; ; rest = parentOf(rest)) {
      const number = (below.get(rest) ?? 0) + by;
      if (number > 0) below.set(rest, number);
      else below.delete(rest);
      if (rest === "") return;
    }
  };

  const hashOf = (name: string): number => hashOn(seed, Buffer.from(name, "latin1"), 0, name.length);

  const set = (name: string, zone: Zone | undefined): void => {
    const hash = hashOf(name);
    const there = byHash.get(hash);
    if (there === null || (there !== undefined && there.name !== name)) byHash.set(hash, null);
    else if (zone === undefined) byHash.delete(hash);
    else byHash.set(hash, zone);
  };

  const find = (name: string): Zone | undefined => {
    let rest = name;
    // No zone has more labels than the deepest one, so a query of 127 labels costs no more lookups than a normal one.
    for (let labels = depth(name); labels > deepest; labels--) rest = parentOf(rest);
    for (;;) {
      const zone = zones.get(rest);
      if (zone !== undefined || rest === "") return zone;
      rest = parentOf(rest);
    }
  };

  return {
    get: (name) => zones.get(name),
    find,
    findIn(packet, from, to) {
      let labels = 0;
      for (let at = from; at < to; at += 1 + (packet[at] as number)) labels++;
      let found = zones.get("");
      let hash = seed;
      let end = to;
      const last = Math.max(0, labels - deepest);
      while (labels > last) {
        let start = from;
        labels--;
        for (let i = 0; i < labels; i++) start += 1 + (packet[start] as number);
        hash = hashOn(hash, packet, start, end);
        end = start;
        const zone = byHash.get(hash);
        if (zone === null) return find(lowerCase(String.fromCharCode(...packet.subarray(from, to))));
        if (zone !== undefined && isName(packet, start, to, zone.name)) found = zone;
      }
      return found;
    },
    reach: (name) => below.has(name),
    hasBelow: ({ name }) => (below.get(name) ?? 0) > 1,
    put(zone) {
      if (!zones.has(zone.name)) count(zone.name, 1);
      zones.set(zone.name, zone);
      set(zone.name, zone);
      deepest = Math.max(deepest, depth(zone.name));
      epoch++;
    },
    withdraw(name, serial) {
      const zone = zones.get(lowerCase(name));
      if (zone === undefined || isNewer(zone.authority.serial, serial)) return;
      zones.delete(zone.name);
      set(zone.name, undefined);
      count(zone.name, -1);
      epoch++;
    },
    all: () => zones.values(),
    get size() {
      return zones.size;
    },
    get epoch() {
      return epoch;
    },
    seed,
  };
}

function isName(packet: Uint8Array, from: number, to: number, name: string): boolean {
  if (to - from !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (LOWER[packet[from + i] as number] !== name.charCodeAt(i)) return false;
  return true;
}
