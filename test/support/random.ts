/** Reproducible random values for chaos and fuzz tests. A failure names its seed; the moment of a kill still depends on the host. */
import { randomInt } from "node:crypto";

/** A generator with a seed. */
export interface Random {
  readonly seed: number;
  /** Returns an integer from 0 to `end` - 1. */
  below(end: number): number;
  pick<T>(list: readonly T[]): T;
  /** Returns true in `percent` % of the calls. */
  chance(percent: number): boolean;
}

/** Creates a generator (Mulberry32): the same seed gives the same values. */
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

/** True with `TEST_RUNS=all`, as `npm run test:long` sets it: tests of many combinations try all of them, otherwise a chosen part. */
export const triesAll = process.env["TEST_RUNS"] === "all";

/**
 * Returns how many cases a test tries: `all` with `TEST_RUNS=all`, otherwise `few`, by default a tenth. Each run of the tests has a new seed, so many
 * runs try many cases.
 */
export const runsOf = (all: number, few = Math.ceil(all / 10)): number => (triesAll ? all : few);

/** Returns a function that returns true in every second call, in another run in the others; with `TEST_RUNS=all` in each. */
export function everySecond(): () => boolean {
  let calls = randomInt(2);
  return () => triesAll || calls++ % 2 === 0;
}

/** Runs with a new seed, or with that of `CHAOS_SEED`, and adds the seed to the message of any error. */
export async function withSeed(run: (random: Random) => Promise<void>): Promise<void> {
  const random = createRandom(Number(process.env["CHAOS_SEED"] ?? randomInt(2 ** 31)));
  try {
    await run(random);
  } catch (error) {
    throw new Error(`CHAOS_SEED=${random.seed}: ${(error as Error).message}`, { cause: error });
  }
}
