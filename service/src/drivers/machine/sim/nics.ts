/**
 * Adds the names and notifications of NIC devices to a driver, for both the real and the simulated one. A driver reports the devices after
 * each start and change, so that a router that does not watch the host's devices (the simulated one) can connect them.
 */

import type { MachineSpec, Machines } from "../interface.ts";
import { deviceOf } from "../qemu/name.ts";

type Calls = Pick<Machines, "ensureRunning" | "apply">;

/** Adds `deviceOf` and `onDevice` to a driver. `logError` logs an error of a listener. */
export function withDevices<Driver extends Calls>(
  tag: string,
  logError: (sentence: string, error: unknown) => void,
  driver: Driver,
): Driver & Pick<Machines, "deviceOf" | "onDevice"> {
  const listeners = new Set<(device: string) => void>();
  const publish = ({ nics }: MachineSpec): void => {
    for (const { id } of nics)
      for (const listener of listeners) {
        try {
          listener(deviceOf(tag, id));
        } catch (error) {
          logError(`A listener for NIC devices failed (NIC ${id}).`, error);
        }
      }
  };
  return {
    ...driver,
    async ensureRunning(machine) {
      const before = await driver.ensureRunning(machine);
      if (before === null) publish(machine);
      return before;
    },
    async apply(machine) {
      const changes = await driver.apply(machine);
      if (changes.nics === "live") publish(machine);
      return changes;
    },
    deviceOf: (nic) => deviceOf(tag, nic),
    onDevice(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
