/**
 * Slows requests with tokens that are not good. A client network may fail often for a moment; beyond that its refusals leave at a fixed
 * pace, and each connection waits for its own. So a flood of guesses costs little, whatever its tokens are, and good tokens of the same
 * network are not affected.
 */
import { networkOf } from "../base/address.ts";

export interface BrakeLimits {
  /** Refusals that leave at once. */
  readonly burst: number;
  /** Milliseconds between two refusals beyond these. */
  readonly pace: number;
  /** Milliseconds that a refusal waits at most. */
  readonly longest: number;
}

/** Networks are swept when there are more; one whose turn is past is as a new one. */
const sweepAbove = 1000;

/** Milliseconds that a refusal at `now` to this address has to wait. `now` never goes back. */
export type Brake = (address: string, now: number) => number;

export function createBrake({ burst, pace, longest }: BrakeLimits): Brake {
  /** By network: when its next refusal would leave if there were no burst. */
  const turns = new Map<number, number>();
  /** How far ahead of its turn a refusal may leave. */
  const head = (burst - 1) * pace;
  let sweepAt = sweepAbove;
  return (address, now) => {
    if (turns.size >= sweepAt) {
      for (const [network, turn] of turns) if (turn <= now) turns.delete(network);
      sweepAt = Math.max(sweepAbove, turns.size * 2);
    }
    const network = networkOf(address);
    const turn = Math.max(now, turns.get(network) ?? 0);
    // Those that wait longest take no further turns, so that the network is soon as a new one.
    turns.set(network, Math.min(turn + pace, now + head + longest));
    return Math.min(longest, Math.max(0, turn - head - now));
  };
}
