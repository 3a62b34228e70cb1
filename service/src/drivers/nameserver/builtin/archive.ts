/** The saved zones of the server: those of an earlier run until they are served, and the file for the next one. */
import { rm } from "node:fs/promises";
import { createSerialQueue } from "../../../base/serialqueue.ts";
import type { SavedState } from "../interface.ts";
import { textOf } from "../wire/name.ts";
import { restoreZones, saveZones } from "./saved.ts";
import { isNewer, type Zone } from "./zone.ts";
import type { Zones } from "./zones.ts";

/** Zones that are adopted between two yields. */
const STEP = 256;

/** The saved zones. */
export interface Archive {
  /** Reads the file. Yields often. */
  restore(): Generator<void, void>;
  state(): SavedState | null;
  /** Serves the saved zones of these names unless newer ones are served, calls `adopted` for each, and forgets all others. */
  adopt(names: readonly string[], adopted: (zone: Zone) => void): Generator<void, void>;
  /** Saves all zones with a mark. Null: deletes the file. Calls run one after the other. */
  save(mark: string | null): Promise<void>;
}

/** Creates the archive in a file; null: nothing is saved. */
export function createArchive(file: string | null, zones: Zones): Archive {
  let mark = "";
  let saved: Map<string, Zone> | null = null;
  const writes = createSerialQueue();

  async function write(newMark: string | null): Promise<void> {
    if (file === null) return;
    if (newMark === null) await rm(file, { force: true });
    else await saveZones(file, newMark, zones.all());
  }

  return {
    *restore() {
      const found = file === null ? null : yield* restoreZones(file, zones.seed);
      if (found === null) return;
      mark = found.mark;
      saved = new Map(found.zones.map((zone) => [zone.name, zone]));
    },
    state() {
      if (saved === null) return null;
      const all = [...saved.values()].map(({ name, authority: { serial }, group, identity }) => {
        return { zone: textOf(name), serial, group, identity };
      });
      return { mark, zones: all };
    },
    *adopt(names, adopted) {
      const held = saved;
      saved = null;
      for (const [index, name] of names.entries()) {
        const zone = held?.get(name);
        const served = zones.get(name);
        if (zone === undefined || (served !== undefined && !isNewer(zone.authority.serial, served.authority.serial)))
          continue;
        zones.put(zone);
        adopted(zone);
        if (index % STEP === STEP - 1) yield;
      }
    },
    save: (newMark) => writes.run(() => write(newMark)),
  };
}
