/**
 * Publishes zones: makes the name server equal to the database. Every change is handed over right after its commit, in order, as a step
 * from the serial before; when a step does not fit (the server was restarted, another process was quicker) the whole zone is read and handed
 * over. Other processes may write to the database too: then the zones that were changed are read every second, by the numbers of their
 * changes, and all are compared now and then. A zone that cannot be published shows as `New` and is tried again until it is served.
 */
import type { Log } from "../base/log.ts";
import type { Nameserver, ZoneChange } from "../drivers/nameserver/interface.ts";
import type { Store } from "../store/db.ts";
import { listChangedDomains, newestChange } from "./changetable.ts";
import { isDamage } from "./readable.ts";
import * as table from "./table.ts";
import { readAllZones, readZone } from "./zonesource.ts";

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
  /** Compares all zones with the database, and publishes those that differ. */
  reconcile(): Promise<void>;
  /** The same for the zones that were changed since the last call. It reads no others. */
  follow(): Promise<void>;
  close(): void;
}

export interface ZonesOptions {
  readonly store: Store;
  readonly nameserver: Nameserver;
  readonly nameServers: readonly string[];
  readonly log: Log;
  /** Milliseconds between comparisons of all zones, between looks for changes of other processes, and before another try. */
  readonly periods?: { readonly all: number; readonly changed: number; readonly retry: number };
}

const usualPeriods = { all: 30_000, changed: 1000, retry: 1000 };

export function createZones({ store, nameserver, nameServers, log, periods = usualPeriods }: ZonesOptions): Zones {
  /** By zone what is served, and which domain it is. */
  const served = new Map<string, { readonly serial: number; readonly id: number }>();
  const names = new Map<number, string>();
  /** Last serials of zones that were withdrawn: an image read before must not bring them back. A name made again begins above. */
  const gone = new Map<string, number>();
  let missing: string | null = "The zones are being handed to the name server.";
  let steps = 0;
  /** Number of the newest change that was looked at. */
  let seen = 0;
  /** Something failed: all zones must be compared. */
  let isDoubtful = true;
  let looks = 0;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let working: Promise<void> = Promise.resolve();
  let comparing: Promise<void> | null = null;
  let tellLoaded = (): void => {};

  const note = (zone: string, serial: number, id: number): void => {
    steps += 1;
    const before = served.get(zone);
    if (before !== undefined) names.delete(before.id);
    if (serial === 0) {
      served.delete(zone);
      return;
    }
    // A step does not say which domain it is of: the one whose zone it changes.
    const known = id || (before?.id ?? 0);
    served.set(zone, { serial, id: known });
    if (known > 0) names.set(known, zone);
  };

  const plan = (ms: number): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(() => {
      look().then(
        () => plan(periodOf()),
        (error: unknown) => {
          log("error", "The name server could not be compared with the database; trying again.", { error });
          planRetry();
        },
      );
    }, ms);
    timer.unref();
  };
  const planRetry = (): void => {
    isDoubtful = true;
    plan(periods.retry);
  };
  const periodOf = (): number => (store.processes === "many" ? periods.changed : periods.all);

  function look(): Promise<void> {
    looks += 1;
    const isTurn = looks % Math.max(1, Math.round(periods.all / periodOf())) === 0;
    return isTurn || isDoubtful ? zones.reconcile() : zones.follow();
  }

  /** Comparisons run one after the other. */
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const done = working.then(work);
    working = done.catch(() => {});
    return done;
  };

  /** 0 if events cannot be read: damaged ones keep no zone from being served. */
  async function newestNumber(): Promise<number> {
    try {
      return await newestChange(store.read);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return 0;
    }
  }

  async function publishWhole(id: number): Promise<void> {
    const zone = await readZone(store.read, id, nameServers);
    if (zone !== null) await hand([zone]);
  }

  /**
   * Hands over whole zones. One that cannot be encoded, which no rule lets in, is logged and left out, so that it keeps no other from
   * being served.
   */
  async function hand(images: readonly ZoneChange[]): Promise<void> {
    const alive = images.filter(({ zone, serial }) => (gone.get(zone) ?? -1) < serial);
    try {
      const serials = await nameserver.publish(alive);
      alive.forEach(({ zone, identity = 0 }, index) => note(zone, serials[index] ?? 0, identity));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (alive.length > 1) for (const image of alive) await hand([image]);
      else log("error", "A zone cannot be served.", { zone: alive[0]?.zone, error });
    }
  }

  async function step(change: ZoneChange): Promise<void> {
    const [serial = 0] = await nameserver.publish([change]);
    note(change.zone, serial, change.identity ?? 0);
    if (serial >= change.serial) return;
    const [domain] = await table.findByNames(store.read, [change.zone]);
    if (domain !== undefined) await publishWhole(domain.id);
  }

  async function takeOut(zone: string, serial: number): Promise<void> {
    await nameserver.withdraw(zone, serial);
    if ((served.get(zone)?.serial ?? 0) <= serial) note(zone, 0, 0);
  }

  /** Of a zone that no domain has any more. */
  async function takeOutUnknown(zone: string): Promise<void> {
    const serial = served.get(zone)?.serial;
    const [back] = await table.findByNames(store.read, [zone]);
    if (back === undefined && serial !== undefined) await takeOut(zone, serial);
  }

  /** Resolves when `work` is done, has failed (then all zones are compared soon) or `ms` are over. */
  const within = (work: Promise<void>, ms: number, zone: string): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      const settle = (): void => {
        clearTimeout(timer);
        resolve();
      };
      work.then(settle, (error: unknown) => {
        log("error", "A zone could not be handed to the name server; trying again.", { zone, error });
        planRetry();
        settle();
      });
    });

  /** The name server has begun anew and knows nothing. */
  async function load(): Promise<void> {
    served.clear();
    names.clear();
    steps += 1;
    missing = "The zones are being handed to the name server.";
    // Before the zones are read: what changes meanwhile is looked at again.
    const newest = await newestNumber();
    await readAllZones(store.read, { nameServers, log }, hand);
    await nameserver.loaded();
    missing = null;
    seen = newest;
    isDoubtful = false;
    plan(periodOf());
    tellLoaded();
  }

  async function compareAll(): Promise<void> {
    const past = [...gone.keys()];
    isDoubtful = false;
    const newest = await newestNumber();
    const domains = await table.listSerials(store.read);
    const wanted = new Set(domains.map(({ ascii }) => ascii));
    for (const { id, ascii, serial } of domains) if (served.get(ascii)?.serial !== serial) await publishWhole(id);
    for (const zone of served.keys()) if (!wanted.has(zone)) await takeOutUnknown(zone);
    // Whatever was read before those were withdrawn has arrived by now.
    for (const zone of past) gone.delete(zone);
    seen = newest;
  }

  async function compareChanged(): Promise<void> {
    const newest = await newestNumber();
    if (newest <= seen) return;
    const changed = await listChangedDomains(store.read, seen, newest);
    const domains = await table.listSerialsOf(store.read, changed);
    const found = new Set(domains.map(({ id }) => id));
    for (const { id, ascii, serial } of domains) if (served.get(ascii)?.serial !== serial) await publishWhole(id);
    for (const id of changed) {
      const zone = found.has(id) ? undefined : names.get(id);
      if (zone !== undefined) await takeOutUnknown(zone);
    }
    seen = newest;
  }

  const zones: Zones = {
    served: (ascii) => served.get(ascii)?.serial ?? 0,
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
      comparing ??= inTurn(compareAll).finally(() => {
        comparing = null;
      });
      return comparing;
    },
    follow: () => inTurn(compareChanged),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };

  nameserver.onStart(() => {
    const attempt = (): void => {
      if (isClosed) return;
      load().catch((error: unknown) => {
        log("error", "The zones could not be handed to the name server; trying again.", { error });
        setTimeout(attempt, periods.retry).unref();
      });
    };
    attempt();
  });
  return zones;
}
