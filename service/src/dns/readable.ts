/**
 * Reads domains of a database file with damaged pages. A page that cannot be read hides all its rows from a walk over the table, but not
 * those of other pages. So the ids come from an index, which has pages of its own, and their rows are read by ranges of ids: a range that
 * cannot be read is read by its halves. What is left out is on damaged pages, and the reads are at most twice as many as the rows.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Reader, StorageError } from "../store/db.ts";
import * as table from "./table.ts";

export const isDamage = (error: unknown): boolean => error instanceof StorageError && error.isDamage;

const pageDomains = 1000;

/** Rejects with the damage when no index can be read. */
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

/** Hands every domain after this id that can be read to `take`, in the order of ids. Resolves to how many cannot be read. */
export async function readReadable(
  db: Reader,
  after: number,
  take: (domains: readonly table.DomainRow[]) => Promise<void>,
): Promise<number> {
  const ids = (await listIds(db)).filter((id) => id > after);
  let lost = 0;
  /** Reads the ids from index `first` to before `end`. */
  async function read(first: number, end: number): Promise<void> {
    const ask = { first: ids[first] ?? 0, last: ids[end - 1] ?? 0 };
    let domains: readonly table.DomainRow[];
    try {
      // A range is left by a step onto the page behind it, which a single row does without.
      domains =
        end - first === 1
          ? await table.findAnyDomain.all(db, { id: ask.first })
          : await table.listDomainRange.all(db, ask);
    } catch (error) {
      if (!isDamage(error)) throw error;
      // Requests come in between.
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
