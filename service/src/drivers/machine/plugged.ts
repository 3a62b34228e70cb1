/**
 * Simulated machines beside a simulated router: whoever takes cards into networks is told of each that comes, as the kernel tells of a
 * real one by making its device.
 */
import type { Machine, Machines } from "./port.ts";

/** `plug: null`: the router sees cards by itself. */
export function withCards<M extends Machines>(machines: M, plug: ((device: string) => void) | null): M {
  if (plug === null) return machines;
  const tell = ({ cards }: Machine): void => {
    for (const { device } of cards) plug(device);
  };
  return {
    ...machines,
    async ensureRunning(machine) {
      const before = await machines.ensureRunning(machine);
      if (before === null) tell(machine);
      return before;
    },
    async apply(machine) {
      const changes = await machines.apply(machine);
      if (changes.cards === "live") tell(machine);
      return changes;
    },
  };
}
