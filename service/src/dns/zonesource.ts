/** Reads zones from the database in the form of the name server driver: one zone, or all. Unreadable zones are logged and skipped. */
import { readConsistently } from "../base/consistent.ts";
import type { Log } from "../base/log.ts";
import type { ZoneChange } from "../drivers/nameserver/interface.ts";
import type { Reader } from "../store/db.ts";
import { fullZone } from "./apply.ts";
import { isDamage, readReadable } from "./readable.ts";
import * as table from "./table.ts";

/** Records per query: enough for a high throughput, few enough that API requests are not delayed. */
const pageRecords = 5000;

/** Returns the complete zone of a domain at its present serial; null: there is no such domain. */
export async function readZone(db: Reader, id: number, nameServers: readonly string[]): Promise<ZoneChange | null> {
  const found = await readConsistently({
    find: () => table.findAnyDomain.first(db, { id }),
    version: ({ serial }) => serial,
    read: () => table.listRecords(db, id),
  });
  return found === undefined ? null : fullZone(found.row, found.rest, nameServers);
}

export interface SourceOptions {
  readonly nameServers: readonly string[];
  readonly log: Log;
  /** Ids of the domains that are left out. */
  readonly without?: ReadonlySet<number>;
}

/** Passes all zones to `take` by ascending domain id, in batches. If the table is damaged, it passes the readable zones. */
export async function readAllZones(
  db: Reader,
  { nameServers, log, without = new Set() }: SourceOptions,
  take: (zones: readonly ZoneChange[]) => Promise<void>,
): Promise<void> {
  /** Splits the domains into batches of at most `pageRecords` records, or one zone. */
  async function takePage(domains: readonly table.DomainRow[]): Promise<void> {
    let batch: table.DomainRow[] = [];
    let count = 0;
    const endBatch = async (): Promise<void> => {
      if (batch.length > 0) await takeBatch(batch);
      batch = [];
      count = 0;
    };
    for (const domain of domains) {
      const isLeftOut = without.has(domain.id);
      // The records of a batch are read by one range of ids, which must not contain a domain that is left out.
      if (isLeftOut || count + domain.record_count > pageRecords) await endBatch();
      if (isLeftOut) continue;
      batch.push(domain);
      count += domain.record_count;
    }
    await endBatch();
  }

  async function takeBatch(domains: readonly table.DomainRow[]): Promise<void> {
    try {
      await takeZones(domains);
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (domains.length > 1) for (const domain of domains) await takeBatch([domain]);
      else log("error", `The zone ${domains[0]?.ascii} is not served: its records cannot be read.`);
    }
  }

  async function takeZones(domains: readonly table.DomainRow[]): Promise<void> {
    const first = domains[0]?.id ?? 0;
    const last = domains.at(-1)?.id ?? 0;
    const recordsOf = new Map<number, table.ServedRow[]>(domains.map(({ id }) => [id, []]));
    for (const record of await table.listServedOf(db, first, last)) recordsOf.get(record.domain_id)?.push(record);
    await take(domains.map((domain) => fullZone(domain, recordsOf.get(domain.id) ?? [], nameServers)));
  }

  let after = 0;
  try {
    for (;;) {
      const domains = await table.listAllDomains.all(db, { after, limit: 1000 });
      if (domains.length === 0) return;
      await takePage(domains);
      after = domains.at(-1)?.id ?? after;
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  try {
    const lost = await readReadable(db, after, takePage);
    log("error", `${lost} zones are not served: their rows cannot be read.`);
  } catch (error) {
    if (!isDamage(error)) throw error;
    log("error", `Zones with ids above ${after} are not served: neither their rows nor their ids can be read.`);
  }
}
