/**
 * Publishes zones: brings the zones of the name server to the state in the database. Each change is published right after its commit, in
 * order, as a step from the previous serial. If a step does not apply (the server restarted, another process was faster), the complete zone
 * is read and published. If other processes write to the database too, the changed zones are read every second by their event ids, and all
 * zones are compared every 30 s. A zone that cannot be published is shown as `New` and is retried until it is served.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import { createSerialQueue } from "../base/serialqueue.ts";
import { readPages, turn } from "../base/turn.ts";
import type { Nameserver, ZoneChange } from "../drivers/nameserver/interface.ts";
import { newestEventId } from "../engine/eventquery.ts";
import type { Store } from "../store/db.ts";
import { listChangedDomains } from "./changetable.ts";
import { isDamage } from "./readable.ts";
import { adoptSaved, readMark } from "./savedzones.ts";
import * as table from "./table.ts";
import { readAllZones, readZone } from "./zonesource.ts";

/** Brings the zones of the name server to the records in the database. */
export interface ZonePublisher {
  /** Returns the serial that the name server serves of a zone (ASCII name), or 0 if it does not serve the zone. */
  served(ascii: string): number;
  /** Returns how often a result of `served` has changed. */
  revision(): number;
  /** Returns null when all zones that existed at the start are served, else a sentence for the readiness report. */
  loadProblem(): string | null;
  /** Publishes a step. Resolves when it is served, when it failed (it is retried) or after `ms`. Steps apply in the order of the calls. */
  publish(step: ZoneChange, ms: number): Promise<void>;
  /** Removes a zone whose last serial was `serial` from the name server. Resolves as `publish` does. */
  withdraw(zone: string, serial: number, ms: number): Promise<void>;
  /** Resolves when the saved zones are served, or none can be. It never rejects. */
  readonly adopted: Promise<void>;
  /** Resolves when every zone that existed at the start is served. */
  readonly loaded: Promise<void>;
  /** Compares all zones with the database, and publishes those that differ. */
  reconcile(): Promise<void>;
  /** Does the same for the zones that have changed since the last call. It reads no others. */
  reconcileChanged(): Promise<void>;
  /** Saves the zones for the next start, if they changed since they were saved. A failure is logged. */
  save(): Promise<void>;
  close(): void;
}

export interface ZonePublisherOptions {
  readonly store: Store;
  readonly nameserver: Nameserver;
  /** Host names of the automatic NS sets. */
  readonly nameServers: readonly string[];
  readonly log: Log;
  /** Version of the contents of saved zones, which the next start serves (`contentsVersion`). Null, the default: none are saved. */
  readonly version?: number | null;
  /** In ms: between comparisons of all zones, between checks for changes of other processes, and before a retry. */
  readonly periods?: { readonly all: number; readonly changed: number; readonly retry: number };
}

/** Milliseconds after a start that has read zones from the database, and between two times, at which the zones are saved. */
const savePeriods = { first: 5000, next: 3_600_000 };

type SerialRow = Awaited<ReturnType<typeof table.listSerialsOf>>[number];

/** The readiness report contains it while a name server is being loaded. */
const loading = "The zones are being loaded into the name server.";

/** Milliseconds after which a step that was committed is served, unless it failed. */
const publishTime = 100;

const defaultPeriods = { all: 30_000, changed: 1000, retry: 1000 };

/** Creates the publisher. It loads all zones at each start of the name server, and compares until it is closed. */
export function createZonePublisher({
  store,
  nameserver,
  nameServers,
  log,
  version = null,
  periods = defaultPeriods,
}: ZonePublisherOptions): ZonePublisher {
  const maker = version === null ? null : { version, nameServers };
  /** The served serial and the domain id, by zone. */
  const served = new Map<string, { readonly serial: number; readonly id: number }>();
  const zoneOf = new Map<number, string>();
  /** Last serials of withdrawn zones: a zone read before must not restore them. A recreated domain begins with a higher serial. */
  const withdrawn = new Map<string, number>();
  let problem: string | null = loading;
  let revision = 0;
  /** Id of the newest event whose zone was compared. */
  let comparedUpTo = 0;
  /** `foreignWrites` of the store at the last comparison of changed zones. */
  let foreignBefore: number | null = null;
  /** A publication failed: the next comparison must include all zones. */
  let needsFullComparison = true;
  let comparisons = 0;
  let timer: NodeJS.Timeout | undefined;
  let saveTimer: NodeJS.Timeout | undefined;
  /** The revision that was saved. */
  let savedRevision = 0;
  let isClosed = false;
  const comparisonQueue = createSerialQueue();
  let fullComparison: Promise<void> | null = null;
  let resolveLoaded = (): void => {};
  let resolveAdopted = (): void => {};

  /** Ids of domains whose records could not be read. */
  const unreadable = new Set<number>();

  const setServed = (zone: string, serial: number, id: number): void => {
    revision += 1;
    const before = served.get(zone);
    if (before !== undefined) zoneOf.delete(before.id);
    if (serial === 0) {
      served.delete(zone);
      return;
    }
    // A step contains no domain id: it belongs to the domain whose zone it changes.
    const domain = id || (before?.id ?? 0);
    served.set(zone, { serial, id: domain });
    if (domain > 0) zoneOf.set(domain, zone);
  };

  const schedule = (ms: number): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(() => {
      compare().then(scheduleNext, (error: unknown) => {
        log("error", "Could not compare the name server with the database; retrying.", { error });
        scheduleRetry();
      });
    }, ms);
    timer.unref();
  };
  const scheduleRetry = (): void => {
    needsFullComparison = true;
    schedule(periods.retry);
  };
  /** Schedules the next comparison after one that succeeded. A publication may have failed after it began. */
  const scheduleNext = (): void => schedule(needsFullComparison ? periods.retry : period());
  const period = (): number => (store.processes === "many" ? periods.changed : periods.all);

  function compare(): Promise<void> {
    comparisons += 1;
    const isFullDue = comparisons % Math.max(1, Math.round(periods.all / period())) === 0;
    if (isFullDue || needsFullComparison) return publisher.reconcile();
    // The steps of this process are published as they are committed.
    const foreign = store.foreignWrites();
    if (foreign !== null && foreign === foreignBefore) return Promise.resolve();
    foreignBefore = foreign;
    return publisher.reconcileChanged();
  }

  /** Returns 0 if the events are damaged: the zones must be served all the same. */
  async function newestEvent(): Promise<number> {
    try {
      return await newestEventId(store.read);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return 0;
    }
  }

  async function publishZone(id: number): Promise<void> {
    const zone = await readZone(store.read, id, nameServers);
    if (zone !== null) await publishZones([zone]);
  }

  /**
   * Publishes complete zones. A zone that cannot be encoded (validation should have rejected it) is logged and skipped, so that the others
   * are served.
   */
  async function publishZones(all: readonly ZoneChange[]): Promise<void> {
    const current = all.filter(({ zone, serial }) => (withdrawn.get(zone) ?? -1) < serial);
    try {
      const serials = await nameserver.publish(current);
      current.forEach(({ zone, identity = 0 }, index) => setServed(zone, serials[index] ?? 0, identity));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (current.length > 1) for (const one of current) await publishZones([one]);
      else log("error", "Zone not served: it cannot be encoded.", { zone: current[0]?.zone, error });
    }
  }

  async function publishStep(change: ZoneChange): Promise<void> {
    const [serial = 0] = await nameserver.publish([change]);
    setServed(change.zone, serial, change.identity ?? 0);
    if (serial >= change.serial) return;
    const [domain] = await table.findByNames(store.read, [change.zone]);
    if (domain !== undefined) await publishZone(domain.id);
  }

  async function withdrawZone(zone: string, serial: number): Promise<void> {
    await nameserver.withdraw(zone, serial);
    if ((served.get(zone)?.serial ?? 0) <= serial) setServed(zone, 0, 0);
  }

  /** Withdraws the zone unless a domain of this name exists again. */
  async function withdrawDeleted(zone: string): Promise<void> {
    const serial = served.get(zone)?.serial;
    const [domain] = await table.findByNames(store.read, [zone]);
    if (domain === undefined && serial !== undefined) await withdrawZone(zone, serial);
  }

  /** Resolves when `work` has ended or after `ms`. If it failed, all zones are compared after `periods.retry`. */
  const within = (work: Promise<void>, ms: number, zone: string): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      const settle = (): void => {
        clearTimeout(timer);
        resolve();
      };
      work.then(settle, (error: unknown) => {
        log("error", "Could not publish a zone; retrying.", { zone, error });
        scheduleRetry();
        settle();
      });
    });

  /** Serves the saved zones that are those of the database. */
  async function adoptZones() {
    if (maker === null) return { adopted: [], isAll: false };
    const isWithdrawn = (zone: string, serial: number): boolean => (withdrawn.get(zone) ?? -1) >= serial;
    const found = await adoptSaved(store.read, nameserver, maker, isWithdrawn);
    for (const { id, zone, serial } of found.adopted)
      if ((served.get(zone)?.serial ?? 0) < serial) setServed(zone, serial, id);
    return found;
  }

  function scheduleSave(ms: number): void {
    clearTimeout(saveTimer);
    if (isClosed || maker === null) return;
    saveTimer = setTimeout(() => {
      void publisher.save().then(() => scheduleSave(savePeriods.next));
    }, ms);
    saveTimer.unref();
  }

  /** Publishes all zones to a name server that has just started and serves none. */
  async function load(): Promise<void> {
    served.clear();
    zoneOf.clear();
    revision += 1;
    problem = loading;
    needsFullComparison = false;
    // Read before the zones, so that zones which change meanwhile are compared again.
    const newest = await newestEvent();
    const { adopted, isAll } = await adoptZones().finally(resolveAdopted);
    // The next zones are read while the name server applies the last ones.
    let publishing: Promise<void> = Promise.resolve();
    const without = new Set(adopted.map(({ id }) => id));
    if (!isAll)
      await readAllZones(store.read, { nameServers, log, without }, async (zones) => {
        const before = publishing;
        publishing = publishZones(zones);
        // Its failure is thrown by the next call or below.
        publishing.catch(() => {});
        await before;
      });
    await publishing;
    await nameserver.loaded();
    if (isAll) savedRevision = revision;
    scheduleSave(isAll ? savePeriods.next : savePeriods.first);
    problem = null;
    comparedUpTo = newest;
    scheduleNext();
    resolveLoaded();
  }

  /**
   * Returns the ids of the zones that the name server does not serve as the database contained them. A zone that changes all the time is
   * served one step behind, or was read one step behind: its complete records are not read for that.
   */
  async function listStale(domains: readonly SerialRow[]): Promise<number[]> {
    const different = domains.filter(({ ascii, serial }) => served.get(ascii)?.serial !== serial);
    if (different.length === 0) return [];
    await sleep(publishTime, undefined, { ref: false });
    const serials = different.map(({ ascii }) => served.get(ascii)?.serial ?? 0);
    const ids = different.map(({ id }) => id);
    const newest = new Map((await table.listSerialsOf(store.read, ids)).map(({ id, serial }) => [id, serial]));
    const isStale = ({ id, serial }: SerialRow, index: number): boolean => {
      const now = serials[index] ?? 0;
      return now < serial || now > (newest.get(id) ?? 0);
    };
    return different.filter(isStale).map(({ id }) => id);
  }

  /** Publishes zones from the database. One whose records are damaged is logged once and left out, so that the others are served. */
  async function publishStale(ids: readonly number[]): Promise<void> {
    for (const id of ids)
      try {
        await publishZone(id);
        unreadable.delete(id);
      } catch (error) {
        if (!isDamage(error)) throw error;
        if (!unreadable.has(id))
          log("error", "A changed zone is not served: its records cannot be read.", { domain: id });
        unreadable.add(id);
      }
  }

  async function compareAll(): Promise<void> {
    const past = [...withdrawn.keys()];
    needsFullComparison = false;
    const newest = await newestEvent();
    const domains: SerialRow[] = [];
    const desired = new Set<string>();
    // A domain that is created meanwhile has an id above all others, so a later page has it.
    for await (const page of readPages(table.serialsPerPage, (after) => table.pageSerials.all(store.read, { after }))) {
      domains.push(...page);
      for (const { ascii } of page) desired.add(ascii);
    }
    await publishStale(await listStale(domains));
    for (const zone of served.keys()) {
      if (!desired.has(zone)) await withdrawDeleted(zone);
      if (turn.isOver()) await turn.next();
    }
    // All zones that were read before these withdrawals have been published by now.
    for (const zone of past) withdrawn.delete(zone);
    comparedUpTo = newest;
  }

  async function compareChanged(): Promise<void> {
    const newest = await newestEvent();
    if (newest <= comparedUpTo) return;
    const changed = await listChangedDomains(store.read, comparedUpTo, newest);
    const domains = await table.listSerialsOf(store.read, changed);
    const found = new Set(domains.map(({ id }) => id));
    await publishStale(await listStale(domains));
    for (const id of changed) {
      const zone = found.has(id) ? undefined : zoneOf.get(id);
      if (zone !== undefined) await withdrawDeleted(zone);
    }
    comparedUpTo = newest;
  }

  const publisher: ZonePublisher = {
    served: (ascii) => served.get(ascii)?.serial ?? 0,
    revision: () => revision,
    loadProblem: () => problem,
    publish: (change, ms) => within(publishStep(change), ms, change.zone),
    withdraw(zone, serial, ms) {
      withdrawn.set(zone, serial);
      return within(withdrawZone(zone, serial), ms, zone);
    },
    adopted: new Promise((resolve) => {
      resolveAdopted = resolve;
    }),
    loaded: new Promise((resolve) => {
      resolveLoaded = resolve;
    }),
    reconcile() {
      fullComparison ??= comparisonQueue.run(compareAll).finally(() => {
        fullComparison = null;
      });
      return fullComparison;
    },
    reconcileChanged: () => comparisonQueue.run(compareChanged),
    async save() {
      if (maker === null || problem !== null || savedRevision === revision) return;
      const saving = revision;
      try {
        await nameserver.save(await readMark(store.read, maker));
        savedRevision = saving;
      } catch (error) {
        log("warn", "Could not save the zones; the next start reads all records.", { error });
      }
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      clearTimeout(saveTimer);
    },
  };

  nameserver.onStart(() => {
    const attempt = (): void => {
      if (isClosed) return;
      load().catch((error: unknown) => {
        resolveAdopted();
        log("error", "Could not load the zones into the name server; retrying.", { error });
        setTimeout(attempt, periods.retry).unref();
      });
    };
    attempt();
  });
  return publisher;
}
