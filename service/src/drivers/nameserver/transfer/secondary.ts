/**
 * The state of each secondary: the zones whose serial it has not confirmed, and the last serials that it confirmed.
 */

import { isNewer } from "../builtin/zone.ts";
import type { Signer, TsigKey } from "./tsig.ts";

/** Where a secondary listens, and the key of its messages. */
export interface SecondaryTarget {
  readonly host: string;
  readonly port: number;
  readonly key: TsigKey | null;
}

/** A zone whose serial a secondary has not confirmed. Times in milliseconds. */
export interface Job {
  readonly name: string;
  serial: number;
  /** Since when the secondary is behind, and when the zone changed last. */
  since: number;
  changed: number;
  /** NOTIFY: messages since the last change, when the next is due, id of the last one (-1: acknowledged), its time and response code. */
  tries: number;
  due: number;
  id: number;
  sentAt: number;
  signer: Signer | null;
  rcode: number | null;
  /** SOA queries to the secondary. */
  probes: number;
  probeDue: number;
  probeId: number;
  probeSigner: Signer | null;
  /** The serial in the response to its own SOA query. */
  queried: number | null;
}

/** What this name server knows about one secondary. */
export interface Secondary {
  readonly target: SecondaryTarget;
  readonly address: string;
  /** By name of the zone. */
  readonly jobs: Map<string, Job>;
  readonly confirmed: Map<string, number>;
  /** Whether it responded to the last message; null: there was none yet. */
  reachable: boolean | null;
  respondedAt: number;
  /** Whether a warning that it lags was logged. */
  isLagLogged: boolean;
  /** Records that the secondary must confirm this serial. `time` in ms. */
  expect(name: string, serial: number, time: number): void;
  /** Records a confirmed serial. Returns whether this confirmed the last serial that was still unconfirmed. */
  confirm(name: string, serial: number): boolean;
  /** Removes the zone. */
  forget(name: string): void;
  /** Returns the zone that has been unconfirmed for longest. */
  oldest(): Job | null;
}

/** The state of a secondary in metrics. */
export interface SecondaryState {
  readonly address: string;
  readonly reachable: boolean | null;
  readonly behind: number;
  /** Seconds. */
  readonly lag: number;
  readonly confirmed: ReadonlyMap<string, number>;
}

/** Milliseconds to wait for an acknowledgement if the zone has changed again. */
const RETRY_MS = 1000;

export function createSecondary(target: SecondaryTarget): Secondary {
  const { host, port } = target;
  const jobs = new Map<string, Job>();
  const confirmed = new Map<string, number>();
  return {
    target,
    address: host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`,
    jobs,
    confirmed,
    reachable: null,
    respondedAt: 0,
    isLagLogged: false,
    expect(name, serial, time) {
      const job = jobs.get(name);
      if (job === undefined) {
        const notify = { tries: 0, due: time, id: -1, sentAt: 0, signer: null, rcode: null };
        const probe = { probes: 0, probeDue: Number.POSITIVE_INFINITY, probeId: -1, probeSigner: null };
        jobs.set(name, { name, serial, since: time, changed: time, ...notify, ...probe, queried: null });
        return;
      }
      const isOnItsWay = job.id >= 0;
      Object.assign(job, { serial, changed: time, tries: 0, probes: 0 });
      job.due = isOnItsWay ? Math.min(job.due, time + RETRY_MS) : time;
    },
    confirm(name, serial) {
      const known = confirmed.get(name);
      const isProgress = known === undefined || isNewer(serial, known);
      if (isProgress) confirmed.set(name, serial);
      const job = jobs.get(name);
      if (job === undefined) return false;
      const isAll = !isNewer(job.serial, serial);
      if (isAll) jobs.delete(name);
      else if (isProgress) job.since = job.changed;
      return isAll;
    },
    forget(name) {
      jobs.delete(name);
      confirmed.delete(name);
    },
    oldest() {
      let found: Job | null = null;
      for (const job of jobs.values()) if (found === null || job.since < found.since) found = job;
      return found;
    },
  };
}

/**
 * Returns the secondary with this address and key, or null. Several at one address are distinguished by their keys; an ambiguous match is
 * null.
 */
export function findSecondary(all: readonly Secondary[], address: string, key: TsigKey | null): Secondary | null {
  const here = all.filter(({ target }) => target.host === address);
  if (here.length === 1) return here[0] ?? null;
  const candidates = here.length > 0 || key === null ? here : all;
  const found = candidates.filter(({ target }) => target.key === key);
  return found.length === 1 ? (found[0] ?? null) : null;
}
