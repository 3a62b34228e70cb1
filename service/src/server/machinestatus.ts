/**
 * Cache of the observed status of all VMs. The driver reports each start and end at once; a complete observation corrects missed reports.
 * An observation reads every VM, so callers that arrive while one is running share the next one.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import { coalesce } from "../base/coalesce.ts";
import { forEachInTurns } from "../base/turn.ts";
import type { MachineStatus, Machines, MachinesStatus, MachineTrouble } from "../drivers/machine/interface.ts";

/** Observed status of the VMs, by id of the server. */
export interface MachineStatusCache {
  /** True if the VM was on by the latest report or observation. */
  power(id: number): boolean;
  /** Returns the status in the last observation; null: the VM was not in it. */
  of(id: number): MachineStatus | null;
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
  /** Resolves to the last observation if it is at most 6 s old, else to a new one. For requests that need only the host as a whole. */
  recent(): Promise<MachinesStatus>;
  /** Returns the servers whose VM has started or ended since the last call. */
  takeReported(): readonly number[];
  /** Stops listening to the driver. */
  close(): void;
}

/** Milliseconds: a little more than the period of the reconciler that observes. */
const maxAge = 6000;

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
  let last = new Map<number, MachineStatus>();
  let observed: { readonly at: number; readonly status: MachinesStatus } | null = null;
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
      const seen = new Map<number, MachineStatus>();
      await forEachInTurns(status.machines, (machine) => {
        seen.set(machine.id, machine);
        if (!isReportedSince(machine.id, begun)) setPower(machine.id, machine.power !== "off");
      });
      if (begun > failed) observed = { at, status };
      last = seen;
      await forEachInTurns([...power.keys()], (id) => {
        if (!seen.has(id) && !isReportedSince(id, begun)) forget(id);
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
    const status = await machines.observe(ids).catch((error: unknown) => {
      noteFailure(begun);
      throw error;
    });
    if (observed !== null && begun > failed) {
      const { ready, detail, capacity } = status;
      observed = { at: observed.at, status: { ...observed.status, ready, detail, capacity } };
    }
    for (const id of ids) last.delete(id);
    for (const machine of status.machines) {
      last.set(machine.id, machine);
      if (!isReportedSince(machine.id, begun)) setPower(machine.id, machine.power !== "off");
    }
    return status;
  }

  return {
    power: (id) => power.get(id) ?? false,
    of: (id) => last.get(id) ?? null,
    revision: () => revision,
    troubled: () =>
      [...last.values()].flatMap(({ id, trouble }) => (trouble === null ? [] : { id, condition: trouble })),
    observe: observeAll,
    observeServers: observeIds,
    takeReported() {
      const ids = [...unchecked];
      unchecked = new Set();
      return ids;
    },
    hasReported: (id) => isReportedSince(id, begunAll),
    recent: async () => (observed !== null && steadyOf(clock) - observed.at < maxAge ? observed.status : observeAll()),
    close: stop,
  };
}
