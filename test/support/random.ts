/** Chance that can be had again: every fire says its seed when it finds something. The moments of a kill stay the machine's own. */
import { randomInt } from "node:crypto";

export interface Random {
  readonly seed: number;
  /** From 0 to `end` - 1. */
  below(end: number): number;
  pick<T>(list: readonly T[]): T;
  /** True in `percent` of a hundred cases. */
  chance(percent: number): boolean;
}

/** Mulberry32. */
export function createRandom(seed: number): Random {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (end: number): number => Math.floor(next() * end);
  return { seed, below, pick: (list) => list[below(list.length)] as never, chance: (percent) => below(100) < percent };
}

/** Runs with a new seed, or with `FIRE_SEED`, and names it in whatever goes wrong. */
export async function withSeed(run: (random: Random) => Promise<void>): Promise<void> {
  const random = createRandom(Number(process.env["FIRE_SEED"] ?? randomInt(2 ** 31)));
  try {
    await run(random);
  } catch (error) {
    throw new Error(`FIRE_SEED=${random.seed}: ${(error as Error).message}`, { cause: error });
  }
}
