/**
 * Reads domains from a database file with damaged pages. A damaged page ends a scan of the table, although rows on other pages are readable.
 * Therefore the ids are read from an index, which has separate pages, and the rows by ranges of ids. An unreadable range is split in halves.
 * Only rows on damaged pages are lost, and there are at most twice as many queries as rows.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Reader, StorageError } from "../store/db.ts";
import * as table from "./table.ts";

/** Returns whether the error reports a damaged database file. */
export const isDamage = (error: unknown): boolean => error instanceof StorageError && error.isDamage;

/** Domains per query. */
const pageDomains = 1000;

/** Returns all domain ids, from the first index that is readable. Rejects with the damage if none is. */
async function listIds(db: Reader): Promise<readonly number[]> {
  let damage: unknown;
  for (const index of table.indexedBy)
    try {
      return await table.listDomainIds(db, index);
    } catch (error) {
      if (!isDamage(error)) throw error;
      damage = error;
    }
  throw damage;
}

/** Passes every readable domain with an id above `after` to `take`, by ascending id. Resolves to the number of unreadable domains. */
export async function readReadable(
  db: Reader,
  after: number,
  take: (domains: readonly table.DomainRow[]) => Promise<void>,
): Promise<number> {
  const ids = (await listIds(db)).filter((id) => id > after);
  let lost = 0;
  /** Reads the ids from index `first` to before `end`. */
  async function read(first: number, end: number): Promise<void> {
    const range = { first: ids[first] ?? 0, last: ids[end - 1] ?? 0 };
    let domains: readonly table.DomainRow[];
    try {
      // A range query also reads the row after the range, whose page may be damaged. A query by id does not.
      domains =
        end - first === 1
          ? await table.findAnyDomain.all(db, { id: range.first })
          : await table.listDomainRange.all(db, range);
    } catch (error) {
      if (!isDamage(error)) throw error;
      // Lets the event loop process API requests.
      await nextTurn();
      if (end - first === 1) {
        lost += 1;
        return;
      }
      const middle = (first + end) >> 1;
      await read(first, middle);
      await read(middle, end);
      return;
    }
    await take(domains);
  }
  for (let first = 0; first < ids.length; first += pageDomains)
    await read(first, Math.min(ids.length, first + pageDomains));
  return lost;
}
