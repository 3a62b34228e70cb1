/**
 * The devices that are the host's ends of cards, as both drivers name and announce them: a driver says which are there after each start
 * and change, so that a router that does not watch the host's devices (the simulated one) can take them into networks.
 */

import type { MachineSpec, Machines } from "../interface.ts";
import { deviceOf } from "../qemu/name.ts";

type Verbs = Pick<Machines, "ensureRunning" | "apply">;

/** `fault`: a listener has thrown. */
export function withDevices<Driver extends Verbs>(
  tag: string,
  fault: (sentence: string, error: unknown) => void,
  driver: Driver,
): Driver & Pick<Machines, "deviceOf" | "onDevice"> {
  const listeners = new Set<(device: string) => void>();
  const announce = ({ nics }: MachineSpec): void => {
    for (const { id } of nics)
      for (const listener of listeners) {
        try {
          listener(deviceOf(tag, id));
        } catch (error) {
          fault("A listener for devices of cards failed.", error);
        }
      }
  };
  return {
    ...driver,
    async ensureRunning(machine) {
      const before = await driver.ensureRunning(machine);
      if (before === null) announce(machine);
      return before;
    },
    async apply(machine) {
      const changes = await driver.apply(machine);
      if (changes.nics === "live") announce(machine);
      return changes;
    },
    deviceOf: (nic) => deviceOf(tag, nic),
    onDevice(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
