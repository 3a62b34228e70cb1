/**
 * Cache of the observed status of all VMs. The driver reports each start and end at once; a complete observation corrects missed reports.
 * An observation reads every VM, so callers that arrive while one is running share the next one. Objects are kept while they are equal:
 * thousands that are replaced every 5 s would live just long enough to fill the part of the heap that is collected last.
 */

import { isDeepStrictEqual } from "node:util";
import { type Clock, steadyOf } from "../base/clock.ts";
import { coalesce } from "../base/coalesce.ts";
import { forEachInTurns } from "../base/turn.ts";
import type { MachineStatus, Machines, MachinesStatus, MachineTrouble, Usage } from "../drivers/machine/interface.ts";

/** Status of a VM without its usage, which changes all the time. */
export type MachineState = Omit<MachineStatus, "usage">;

/** What the last observation of a VM found. It changes in place. */
export interface ObservedMachine {
  readonly state: MachineState;
  readonly usage: Usage | null;
  /** Begin of the observation, in ms of the steady clock. */
  readonly at: number;
}

/** What an observation finds of the host itself. */
export type HostStatus = Omit<MachinesStatus, "machines">;

/** Observed status of the VMs, by id of the server. */
export interface MachineStatusCache {
  /** True if the VM was on by the latest report or observation. */
  power(id: number): boolean;
  /** Returns the status in the last observation; null: the VM was not in it. */
  of(id: number): MachineState | null;
  /** Returns the VMs of the last observation. */
  all(): Iterable<ObservedMachine>;
  /** Returns a number that grows when `power` changes for a VM: while it is the same, so is what responses show. */
  revision(): number;
  /** Returns the VMs that had a problem in the last observation. */
  troubled(): readonly { readonly id: number; readonly condition: MachineTrouble }[];
  /** Observes all VMs; the observation starts after the call. Rejects if the driver fails. */
  observe(): Promise<MachinesStatus>;
  /** Observes the host and only the VMs of these servers. Rejects if the driver fails. */
  observeServers(ids: readonly number[]): Promise<MachinesStatus>;
  /** True if the driver reported a start or end of the VM since the last observation of all began, which may be older than the report. */
  hasReported(id: number): boolean;
  /** Resolves to the host in the last observation of all VMs if it is at most 6 s old, else in a new one. */
  recent(): Promise<HostStatus>;
  /** Returns the servers whose VM has started or ended since the last call. */
  takeReported(): readonly number[];
  /** Stops listening to the driver. */
  close(): void;
}

interface Known {
  state: MachineState;
  usage: Usage | null;
  at: number;
  /** Count of the observation, see `moment`. */
  begun: number;
}

/** Milliseconds within which an observation is recent: a little more than the period of the reconciler that observes. */
export const maxAge = 6000;

/** Creates the cache. `changed` is called for the first start or end that the driver reports since the last `takeReported`. */
export function createMachineStatusCache(
  machines: Pick<Machines, "observe" | "onPower">,
  clock: Clock,
  changed: (id: number, isOn: boolean) => void,
): MachineStatusCache {
  const power = new Map<number, boolean>();
  /** Counts the reports and the begins of observations. */
  let moment = 0;
  /** When each VM was reported last. */
  const reports = new Map<number, number>();
  /** When the last observation of all VMs began. */
  let begunAll = 0;
  /** True if the VM was reported after an observation began, which may be older than the report. */
  const isReportedSince = (id: number, begun: number): boolean => (reports.get(id) ?? 0) > begun;
  /** Servers with a report that `takeReported` has not returned yet. */
  let unchecked = new Set<number>();
  const last = new Map<number, Known>();
  let observed: { readonly at: number; readonly host: HostStatus } | null = null;
  /** When the last failed observation began. An older one may succeed after it, and is no longer what the host is like. */
  let failed = 0;
  let revision = 0;

  const setPower = (id: number, isOn: boolean): void => {
    if ((power.get(id) ?? false) !== isOn) revision += 1;
    power.set(id, isOn);
  };
  const forget = (id: number): void => {
    if (power.get(id) === true) revision += 1;
    power.delete(id);
    reports.delete(id);
  };

  const stop = machines.onPower(({ id, exit }) => {
    setPower(id, exit === null);
    reports.set(id, ++moment);
    // The check that an earlier report has requested is still to come, and takes this one too.
    const isFirst = unchecked.size === 0;
    unchecked.add(id);
    if (isFirst) changed(id, exit === null);
  });

  /** Notes what an observation found of one VM. `begun`: when it began, as a count and as a time. */
  const note = ({ usage, ...state }: MachineStatus, begun: number, at: number): void => {
    const known = last.get(state.id);
    // Another observation, of this VM only, began later.
    if (known !== undefined && known.begun > begun) return;
    if (!isReportedSince(state.id, begun)) setPower(state.id, state.power !== "off");
    if (known === undefined) {
      last.set(state.id, { state, usage: usage && { ...usage }, at, begun });
      return;
    }
    if (!isDeepStrictEqual(known.state, state)) known.state = state;
    if (known.usage === null || usage === null) known.usage = usage && { ...usage };
    else Object.assign(known.usage, usage);
    known.at = at;
    known.begun = begun;
  };

  const noteFailure = (begun: number): void => {
    failed = Math.max(failed, begun);
    observed = null;
  };

  async function observe(): Promise<MachinesStatus> {
    const begun = ++moment;
    begunAll = begun;
    const at = steadyOf(clock);
    try {
      const status = await machines.observe();
      await forEachInTurns(status.machines, (machine) => note(machine, begun, at));
      const { machines: _, ...host } = status;
      if (begun > failed) observed = { at, host };
      await forEachInTurns(last, ([id, known]) => {
        if (known.begun < begun) last.delete(id);
      });
      await forEachInTurns(power.keys(), (id) => {
        if (!last.has(id) && !isReportedSince(id, begun)) forget(id);
      });
      return status;
    } catch (error) {
      noteFailure(begun);
      throw error;
    }
  }
  const observeAll = coalesce(observe);

  async function observeIds(ids: readonly number[]): Promise<MachinesStatus> {
    const begun = ++moment;
    const at = steadyOf(clock);
    const status = await machines.observe(ids).catch((error: unknown) => {
      noteFailure(begun);
      throw error;
    });
    if (observed !== null && begun > failed) {
      const { ready, detail, capacity } = status;
      observed = { at: observed.at, host: { ...observed.host, ready, detail, capacity } };
    }
    for (const machine of status.machines) note(machine, begun, at);
    for (const id of ids) if ((last.get(id)?.begun ?? begun) < begun) last.delete(id);
    return status;
  }

  return {
    power: (id) => power.get(id) ?? false,
    of: (id) => last.get(id)?.state ?? null,
    all: () => last.values(),
    revision: () => revision,
    troubled: () =>
      [...last.values()].flatMap(({ state: { id, trouble } }) => (trouble === null ? [] : { id, condition: trouble })),
    observe: observeAll,
    observeServers: observeIds,
    takeReported() {
      const ids = [...unchecked];
      unchecked = new Set();
      return ids;
    },
    hasReported: (id) => isReportedSince(id, begunAll),
    recent: async () => (observed !== null && steadyOf(clock) - observed.at < maxAge ? observed.host : observeAll()),
    close: stop,
  };
}
