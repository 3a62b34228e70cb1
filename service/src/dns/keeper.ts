/**
 * Keeps the name server equal to the database. Every change is handed over right after its commit, in order, as a step from the serial
 * before; when a step does not fit (the server was restarted, another process was quicker) the whole zone is read and handed over.
 * A zone that cannot be published shows as `New` and is tried again until it is served: never a silent difference.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Nameserver, ZoneChange } from "../drivers/nameserver/port.ts";
import { append } from "../engine/event.ts";
import { type Keeper, keeper } from "../engine/flow.ts";
import type { Cap } from "../engine/prune.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import type { Store, Tx } from "../store/db.ts";
import { wholeZone } from "./apply.ts";
import { type Delegation, type DelegationOptions, findDelegation } from "./delegation.ts";
import { isDamage, readReadable } from "./readable.ts";
import { showDomain } from "./show.ts";
import * as table from "./table.ts";

export interface Zones {
  /** The serial that is served of a zone, by its ASCII name; 0: none. */
  served(ascii: string): number;
  /** How often `served` has changed. */
  steps(): number;
  /** Null when everything is served that was there at the start; else what is still missing. */
  trouble(): string | null;
  /** Resolves when the step is served or `ms` are over; the order of calls is the order of steps. */
  publish(step: ZoneChange, ms: number): Promise<void>;
  withdraw(zone: string, serial: number, ms: number): Promise<void>;
  /** Resolves when every zone that was there at the start is served. */
  readonly loaded: Promise<void>;
  /** Looks for zones that differ, and mends them. */
  reconcile(): Promise<void>;
  close(): void;
}

export interface ZonesOptions {
  readonly store: Store;
  readonly nameserver: Nameserver;
  readonly nameServers: readonly string[];
  readonly log: Log;
}

/** Records read at once while loading: enough to be quick, few enough to let requests in between. */
const pageRecords = 5000;
/** Milliseconds between looks for zones that differ; other processes write to PostgreSQL too. */
const period = { one: 30_000, many: 1000 } as const;
const retryAfter = 1000;

export function createZones({ store, nameserver, nameServers, log }: ZonesOptions): Zones {
  const serials = new Map<string, number>();
  /** Last serials of zones that were withdrawn: an image read before must not bring them back. A name made again begins above. */
  const gone = new Map<string, number>();
  let missing: string | null = "The zones are being handed to the name server.";
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let reconciling: Promise<void> | null = null;
  let tellLoaded = (): void => {};

  let steps = 0;
  const note = (zone: string, serial: number | undefined): void => {
    steps += 1;
    if (serial) serials.set(zone, serial);
    else serials.delete(zone);
  };

  const plan = (ms: number): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(() => {
      zones.reconcile().then(
        () => plan(period[store.processes]),
        (error: unknown) => {
          log("error", "The name server could not be compared with the database; trying again.", { error });
          plan(retryAfter);
        },
      );
    }, ms);
    timer.unref();
  };

  /** Reads and publishes one zone as it is now. Serial and records may be read around a commit: then once more. */
  async function publishWhole(id: number): Promise<void> {
    for (;;) {
      const domain = await table.findAnyDomain.first(store.read, { id });
      if (domain === undefined) return;
      const records = await table.listRecords(store.read, id);
      const again = await table.findAnyDomain.first(store.read, { id });
      if (again?.serial !== domain.serial) continue;
      return hand([wholeZone(domain, records, nameServers)]);
    }
  }

  /**
   * Hands over whole zones. One that cannot be encoded, which no rule lets in, is told of and left out, so that it keeps no other from
   * being served.
   */
  async function hand(images: readonly ZoneChange[]): Promise<void> {
    const alive = images.filter(({ zone, serial }) => (gone.get(zone) ?? -1) < serial);
    try {
      const served = await nameserver.publish(alive);
      alive.forEach(({ zone }, index) => note(zone, served[index]));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (alive.length > 1) for (const image of alive) await hand([image]);
      else log("error", "A zone cannot be served.", { zone: alive[0]?.zone, error });
    }
  }

  async function step(change: ZoneChange): Promise<void> {
    const [served = 0] = await nameserver.publish([change]);
    note(change.zone, served);
    if (served >= change.serial) return;
    const [domain] = await table.findByNames(store.read, [change.zone]);
    if (domain !== undefined) await publishWhole(domain.id);
  }

  async function takeOut(zone: string, serial: number): Promise<void> {
    await nameserver.withdraw(zone, serial);
    if ((serials.get(zone) ?? 0) <= serial) note(zone, 0);
  }

  /** Resolves when `work` is done, has failed (then the zone is looked at again soon) or `ms` are over. */
  const within = (work: Promise<void>, ms: number, zone: string): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      const settle = (): void => {
        clearTimeout(timer);
        resolve();
      };
      work.then(settle, (error: unknown) => {
        log("error", "A zone could not be handed to the name server; trying again.", { zone, error });
        plan(retryAfter);
        settle();
      });
    });

  /** Whole zones in the order of their ids, many at a time. Of a damaged table, those that can be read. */
  async function publishAll(): Promise<void> {
    let after = 0;
    try {
      for (;;) {
        const domains = await table.listAllDomains.all(store.read, { after, limit: 1000 });
        if (domains.length === 0) return;
        await publishPage(domains);
        after = domains.at(-1)?.id ?? after;
      }
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    try {
      const lost = await readReadable(store.read, after, publishPage);
      log("error", `${lost} zones are not served: their rows cannot be read.`);
    } catch (error) {
      if (!isDamage(error)) throw error;
      log("error", `Zones with ids above ${after} are not served: neither their rows nor their ids can be read.`);
    }
  }

  /** Many records at a time, or one zone. */
  async function publishPage(domains: readonly table.DomainRow[]): Promise<void> {
    for (let from = 0; from < domains.length; ) {
      let count = 0;
      let to = from;
      while (to < domains.length && (to === from || count + (domains[to]?.record_count ?? 0) <= pageRecords)) {
        count += domains[to]?.record_count ?? 0;
        to += 1;
      }
      await publishSome(domains.slice(from, to));
      from = to;
    }
  }

  async function publishSome(domains: readonly table.DomainRow[]): Promise<void> {
    try {
      await publishAllOf(domains);
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (domains.length > 1) for (const domain of domains) await publishSome([domain]);
      else log("error", `The zone ${domains[0]?.ascii} is not served: its records cannot be read.`);
    }
  }

  async function publishAllOf(domains: readonly table.DomainRow[]): Promise<void> {
    const first = domains[0]?.id ?? 0;
    const last = domains.at(-1)?.id ?? 0;
    const recordsOf = new Map<number, table.ServedRow[]>(domains.map(({ id }) => [id, []]));
    for (const record of await table.listServedOf(store.read, first, last))
      recordsOf.get(record.domain_id)?.push(record);
    await hand(domains.map((domain) => wholeZone(domain, recordsOf.get(domain.id) ?? [], nameServers)));
  }

  /** The name server has begun anew and knows nothing. */
  async function load(): Promise<void> {
    serials.clear();
    steps += 1;
    missing = "The zones are being handed to the name server.";
    await publishAll();
    await nameserver.loaded();
    missing = null;
    plan(period[store.processes]);
    tellLoaded();
  }

  const zones: Zones = {
    served: (ascii) => serials.get(ascii) ?? 0,
    steps: () => steps,
    trouble: () => missing,
    publish: (change, ms) => within(step(change), ms, change.zone),
    withdraw(zone, serial, ms) {
      gone.set(zone, serial);
      return within(takeOut(zone, serial), ms, zone);
    },
    loaded: new Promise((resolve) => {
      tellLoaded = resolve;
    }),
    reconcile() {
      reconciling ??= compare().finally(() => {
        reconciling = null;
      });
      return reconciling;
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };

  async function compare(): Promise<void> {
    const past = [...gone.keys()];
    const wished = new Map((await table.listSerials(store.read)).map((row) => [row.ascii, row]));
    for (const { id, ascii, serial } of wished.values()) if (serials.get(ascii) !== serial) await publishWhole(id);
    for (const [ascii, serial] of serials) {
      if (wished.has(ascii)) continue;
      const [back] = await table.findByNames(store.read, [ascii]);
      if (back !== undefined) continue;
      await takeOut(ascii, serial);
    }
    // Whatever was read before those were withdrawn has arrived by now.
    for (const ascii of past) gone.delete(ascii);
  }

  nameserver.onStart(() => {
    const attempt = (): void => {
      if (isClosed) return;
      load().catch((error: unknown) => {
        log("error", "The zones could not be handed to the name server; trying again.", { error });
        setTimeout(attempt, retryAfter).unref();
      });
    };
    attempt();
  });
  return zones;
}

const hour = 3_600_000;
/** An event shows no records of a domain that has more. */
const mostInEvent = 1000;
const day = 86_400_000;

/** Asks every hour the name servers of a domain's parent whether they name `nameServers`, and tells when their answer changes. */
export function delegationKeeper(
  store: Store,
  clock: Clock,
  options: Omit<DelegationOptions, "signal">,
  served: (ascii: string) => number = () => Number.MAX_SAFE_INTEGER,
): Keeper {
  const { nameServers } = options;
  const save = async (tx: Tx, id: number, delegation: Delegation): Promise<void> => {
    await table.lockDomain(tx, id);
    const before = await table.findAnyDomain.first(tx, { id });
    if (before === undefined || before.delegation === delegation) return;
    const is_delegate = Number(delegation === "Delegated" || delegation === "Partial");
    await table.updateDomain(tx, id, { delegation, is_delegate });
    const records = before.record_count > mostInEvent ? [] : await table.listRecords(tx, id);
    const shown = showDomain({ ...before, delegation, is_delegate }, records, served(before.ascii), nameServers);
    const event = { type: "domain.changed", date: clock.now(), project: before.project_id, resource: "domain", id };
    await append(tx, [{ ...event, data: JSON.stringify(shown) }]);
  };
  return keeper({
    name: "dns.delegation",
    subject: "domain",
    period: hour,
    async run({ subject, signal }) {
      const domain = await table.findAnyDomain.first(store.read, { id: subject });
      if (domain === undefined) return { gone: true };
      const found = await findDelegation(domain.ascii, { ...options, signal });
      if (found === domain.delegation || found === "Unknown") return { at: clock.now() + hour };
      return { at: clock.now() + hour, save: (tx) => save(tx, subject, found) };
    },
  });
}

/** Newest versions that every domain keeps, however old, unless fewer are allowed. */
const leastVersions = 1000;
/** Versions deleted in one transaction: each may have thousands of records. */
const sliceVersions = 50;

export interface HistoryOptions {
  /** The time that ages are counted up to. */
  readonly time: PruneTime;
  /** Of one domain. */
  readonly cap: Cap;
  readonly period: number;
}

/** Deletes old versions, and those beyond what one domain may have. */
export function historyKeeper(store: Store, { time, cap, period }: HistoryOptions): Keeper {
  return keeper({
    name: "dns.history",
    subject: "history",
    single: true,
    period,
    async run({ signal }) {
      const before = (await time.read()) - cap.days * day;
      const prune = async (id: number, place: number, date: number): Promise<void> => {
        const kept = await table.findNewest(store.read, id, place);
        if (kept === undefined) return;
        const some = (tx: Tx) => table.pruneVersions(tx, id, kept.serial, date, sliceVersions);
        while (!signal.aborted && (await store.write(some)) === sliceVersions);
      };
      for (const id of await table.listDomainsWithOldVersions(store.read, before))
        await prune(id, Math.min(leastVersions, cap.count), before);
      for (const id of await table.listDomainsWithManyVersions(store.read, cap.count))
        await prune(id, cap.count, Number.MAX_SAFE_INTEGER);
    },
  });
}
