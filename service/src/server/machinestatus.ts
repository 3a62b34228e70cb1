/**
 * How the machines stand, as observed: told by the driver at once when one starts or ends, and looked at as a whole now and then for
 * what nobody told. Asking costs a look at every machine, so those who ask while a look is under way share the next one.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import { coalesce } from "../base/coalesce.ts";
import type { MachineStatus, Machines, MachinesStatus } from "../drivers/machine/interface.ts";

export interface MachineStatusCache {
  /** Whether the server is on, by the last that was heard of it. */
  power(id: number): boolean;
  /** Of the last look. */
  of(id: number): MachineStatus | null;
  /** Begins after the call. */
  look(): Promise<MachinesStatus>;
  /** The last look if it is fresh, for who asks of the host as a whole: an order must not wait for every machine there is. */
  recent(): Promise<MachinesStatus>;
  close(): void;
}

/** Milliseconds: as long as from one look of the reconciler to the next, and a little more. */
const freshness = 6000;

/** `changed` is called for every start and end that the driver tells of. */
export function createMachineStatusCache(
  machines: Pick<Machines, "observe" | "onPower">,
  clock: Clock,
  changed: (id: number, isOn: boolean) => void,
): MachineStatusCache {
  const power = new Map<number, boolean>();
  /** Of which something was heard since the present look began: its answer may be older than that. */
  let heard = new Set<number>();
  let last = new Map<number, MachineStatus>();
  let whole: { readonly at: number; readonly status: MachinesStatus } | null = null;

  const stop = machines.onPower(({ id, exit }) => {
    power.set(id, exit === null);
    heard.add(id);
    changed(id, exit === null);
  });

  async function ask(): Promise<MachinesStatus> {
    heard = new Set();
    const at = steadyOf(clock);
    try {
      const status = await machines.observe();
      whole = { at, status };
      last = new Map(status.machines.map((machine) => [machine.id, machine]));
      for (const id of power.keys()) if (!last.has(id) && !heard.has(id)) power.delete(id);
      for (const machine of status.machines) if (!heard.has(machine.id)) power.set(machine.id, machine.power !== "off");
      return status;
    } catch (error) {
      whole = null;
      throw error;
    }
  }
  const look = coalesce(ask);

  return {
    power: (id) => power.get(id) ?? false,
    of: (id) => last.get(id) ?? null,
    look,
    recent: async () => (whole !== null && steadyOf(clock) - whole.at < freshness ? whole.status : look()),
    close: stop,
  };
}
