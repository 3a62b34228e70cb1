/**
 * Cache of the observed status of all VMs. The driver reports each start and end at once; a complete observation corrects missed reports.
 * An observation reads every VM, so callers that arrive while one is running share the next one.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import { coalesce } from "../base/coalesce.ts";
import type { MachineStatus, Machines, MachinesStatus } from "../drivers/machine/interface.ts";

/** Observed status of the VMs, by id of the server. */
export interface MachineStatusCache {
  /** True if the VM was on by the latest report or observation. */
  power(id: number): boolean;
  /** Returns the status in the last observation; null: the VM was not in it. */
  of(id: number): MachineStatus | null;
  /** Observes all VMs; the observation starts after the call. Rejects if the driver fails. */
  look(): Promise<MachinesStatus>;
  /** Resolves to the last observation if it is at most 6 s old, else to a new one. For requests that need only the host as a whole. */
  recent(): Promise<MachinesStatus>;
  /** Stops listening to the driver. */
  close(): void;
}

/** Milliseconds: a little more than the period of the reconciler that observes. */
const maxAge = 6000;

/** Creates the cache. `changed` is called for each start and end that the driver reports. */
export function createMachineStatusCache(
  machines: Pick<Machines, "observe" | "onPower">,
  clock: Clock,
  changed: (id: number, isOn: boolean) => void,
): MachineStatusCache {
  const power = new Map<number, boolean>();
  /** Servers with a report since the current observation started; the observation may be older than the report. */
  let reported = new Set<number>();
  let last = new Map<number, MachineStatus>();
  let observed: { readonly at: number; readonly status: MachinesStatus } | null = null;

  const stop = machines.onPower(({ id, exit }) => {
    power.set(id, exit === null);
    reported.add(id);
    changed(id, exit === null);
  });

  async function observe(): Promise<MachinesStatus> {
    reported = new Set();
    const at = steadyOf(clock);
    try {
      const status = await machines.observe();
      observed = { at, status };
      last = new Map(status.machines.map((machine) => [machine.id, machine]));
      for (const id of power.keys()) if (!last.has(id) && !reported.has(id)) power.delete(id);
      for (const machine of status.machines)
        if (!reported.has(machine.id)) power.set(machine.id, machine.power !== "off");
      return status;
    } catch (error) {
      observed = null;
      throw error;
    }
  }
  const look = coalesce(observe);

  return {
    power: (id) => power.get(id) ?? false,
    of: (id) => last.get(id) ?? null,
    look,
    recent: async () => (observed !== null && steadyOf(clock) - observed.at < maxAge ? observed.status : look()),
    close: stop,
  };
}
