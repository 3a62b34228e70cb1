/** Zones as the database has them, in the form that the name server takes: one, or all. What is damaged is left out, and logged. */
import type { Log } from "../base/log.ts";
import type { ZoneChange } from "../drivers/nameserver/interface.ts";
import type { Reader } from "../store/db.ts";
import { fullZone } from "./apply.ts";
import { isDamage, readReadable } from "./readable.ts";
import * as table from "./table.ts";

/** Records read at once: enough to be quick, few enough to let requests in between. */
const pageRecords = 5000;

/** One zone as it is now; null: there is no such domain. */
export async function readZone(db: Reader, id: number, nameServers: readonly string[]): Promise<ZoneChange | null> {
  // Serial and records may be read around a commit: then once more.
  for (;;) {
    const domain = await table.findAnyDomain.first(db, { id });
    if (domain === undefined) return null;
    const records = await table.listRecords(db, id);
    const again = await table.findAnyDomain.first(db, { id });
    if (again?.serial === domain.serial) return fullZone(domain, records, nameServers);
  }
}

export interface SourceOptions {
  readonly nameServers: readonly string[];
  readonly log: Log;
}

/** Hands all zones to `take` in the order of their ids, many at a time. Of a damaged table, those that can be read. */
export async function readAllZones(
  db: Reader,
  { nameServers, log }: SourceOptions,
  take: (zones: readonly ZoneChange[]) => Promise<void>,
): Promise<void> {
  /** Many records at a time, or one zone. */
  async function takePage(domains: readonly table.DomainRow[]): Promise<void> {
    for (let from = 0; from < domains.length; ) {
      let count = 0;
      let to = from;
      while (to < domains.length && (to === from || count + (domains[to]?.record_count ?? 0) <= pageRecords)) {
        count += domains[to]?.record_count ?? 0;
        to += 1;
      }
      await takeSome(domains.slice(from, to));
      from = to;
    }
  }

  async function takeSome(domains: readonly table.DomainRow[]): Promise<void> {
    try {
      await takeAllOf(domains);
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (domains.length > 1) for (const domain of domains) await takeSome([domain]);
      else log("error", `The zone ${domains[0]?.ascii} is not served: its records cannot be read.`);
    }
  }

  async function takeAllOf(domains: readonly table.DomainRow[]): Promise<void> {
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
