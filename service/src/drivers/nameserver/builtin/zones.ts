/**
 * All zones of the server by name. Every lookup and change of zones goes through it, so that finding the zone of a name and invalidating
 * caches are each in one place.
 */
import { lowerCase, parentOf } from "../wire/name.ts";
import { isNewer, type Zone } from "./zone.ts";

/** The zones of the server. */
export interface Zones {
  /** Returns the zone with exactly this name. */
  get(name: string): Zone | undefined;
  /** Returns the deepest zone that contains the name (RFC 1034 section 4.3.2, step 2). */
  find(name: string): Zone | undefined;
  /** Returns whether there is a zone at or below the name. The name then exists, regardless of the parent zone's data (RFC 8020). */
  reach(name: string): boolean;
  /** Adds a zone or replaces the one with its name. */
  put(zone: Zone): void;
  /** Removes the zone unless its served serial is newer than `serial`. */
  withdraw(name: string, serial: number): void;
  all(): Iterable<Zone>;
  readonly size: number;
  /** Grows when a zone is added, removed or replaced; cached responses from before are invalid, also for names in other zones. */
  readonly epoch: number;
}

/** Creates an empty set of zones. */
export function createZones(): Zones {
  const zones = new Map<string, Zone>();
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

  return {
    get: (name) => zones.get(name),
    find(name) {
      let rest = name;
      // No zone has more labels than the deepest one, so a query of 127 labels costs no more lookups than a normal one.
      for (let labels = depth(name); labels > deepest; labels--) rest = parentOf(rest);
      for (;;) {
        const zone = zones.get(rest);
        if (zone !== undefined || rest === "") return zone;
        rest = parentOf(rest);
      }
    },
    reach: (name) => below.has(name),
    put(zone) {
      if (!zones.has(zone.name)) count(zone.name, 1);
      zones.set(zone.name, zone);
      deepest = Math.max(deepest, depth(zone.name));
      epoch++;
    },
    withdraw(name, serial) {
      const zone = zones.get(lowerCase(name));
      if (zone === undefined || isNewer(zone.authority.serial, serial)) return;
      zones.delete(zone.name);
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
  };
}
