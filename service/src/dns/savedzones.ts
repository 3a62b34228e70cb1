/**
 * Zones that the name server has saved for the next start, and whether they are those of the database. A saved zone is served if the domain
 * has its serial, and if the file belongs to this program and to this history of the database: a restored copy of the database can reach
 * the serial of a saved zone with other records. The newest event at the time of the file identifies the history.
 */
import { readPages } from "../base/turn.ts";
import type { Nameserver, SavedState } from "../drivers/nameserver/interface.ts";
import { findEvent } from "../engine/event.ts";
import type { Reader } from "../store/db.ts";
import { isDamage } from "./readable.ts";
import { pageSerials, serialsPerPage } from "./table.ts";

/**
 * Version of the contents of zones. Increase it if the same records lead to other bytes, or the bytes are in another form: the next start
 * then reads all records. A test compares the bytes.
 */
export const contentsVersion = 1;

/** What the contents of a saved zone depend on, besides its records. */
export interface ZoneMaker {
  /** `contentsVersion` of the program. */
  readonly version: number;
  readonly nameServers: readonly string[];
}

/** A zone that is served. */
export interface AdoptedZone {
  readonly id: number;
  readonly zone: string;
  readonly serial: number;
}

/** Returns the mark for `Nameserver.save`. It must be read before the zones are. */
export async function readMark(db: Reader, { version, nameServers }: ZoneMaker): Promise<string> {
  return JSON.stringify({ version, nameServers, event: (await findEvent(db)) ?? null });
}

/** Returns whether zones with this mark come from a program of this version and this history of the database. */
async function isOwn(db: Reader, mark: string, { version, nameServers }: ZoneMaker): Promise<boolean> {
  const { event } = JSON.parse(mark) as { event: { readonly id: number } | null };
  const found = event === null ? null : await findEvent(db, event.id);
  return mark === JSON.stringify({ version, nameServers, event: found });
}

/** The saved zones that are those of the database, and the number of all domains. Null: all zones must be read. */
interface Comparison {
  readonly zones: readonly AdoptedZone[];
  readonly domains: number;
}

async function compare(db: Reader, { mark, zones }: SavedState, maker: ZoneMaker): Promise<Comparison | null> {
  if (!(await isOwn(db, mark, maker))) return null;
  const saved = new Map(zones.map((zone) => [zone.zone, zone]));
  const current: AdoptedZone[] = [];
  let domains = 0;
  for await (const page of readPages(serialsPerPage, (after) => pageSerials.all(db, { after }))) {
    domains += page.length;
    for (const { id, ascii: zone, serial, project_id } of page) {
      const found = saved.get(zone);
      if (found === undefined || found.identity !== id) continue;
      // The database is older than the file.
      if (found.serial > serial) return null;
      if (found.serial === serial && found.group === project_id) current.push({ id, zone, serial });
    }
  }
  return { zones: current, domains };
}

/**
 * Serves the saved zones that are those of the database. Resolves to them and to whether they are all. If the file has another
 * version or history, none is served, and the file is deleted: the serials of this history could reach those of the file later.
 */
export async function adoptSaved(
  db: Reader,
  nameserver: Nameserver,
  maker: ZoneMaker,
  isWithdrawn: (zone: string, serial: number) => boolean,
): Promise<{ readonly adopted: readonly AdoptedZone[]; readonly isAll: boolean }> {
  const saved = await nameserver.saved();
  const found =
    saved === null
      ? null
      : await compare(db, saved, maker).catch((error: unknown) => {
          if (isDamage(error)) return null;
          throw error;
        });
  const adopted = (found?.zones ?? []).filter(({ zone, serial }) => !isWithdrawn(zone, serial));
  await nameserver.adopt(adopted.map(({ zone }) => zone));
  if (saved !== null && found === null) await nameserver.save(null);
  return { adopted, isAll: found !== null && adopted.length === found.domains };
}
