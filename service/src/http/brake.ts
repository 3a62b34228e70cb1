/**
 * Delays the responses to invalid tokens. Each client network may fail a number of times without delay; beyond that its rejections are
 * sent at a fixed pace. So a flood of guessed tokens costs little, and valid tokens of the same network are not affected.
 */
import { networkOf } from "../base/address.ts";

/** Limits of the delay. */
export interface BrakeLimits {
  /** Rejections without delay. */
  readonly burst: number;
  /** Milliseconds between two rejections beyond these. */
  readonly pace: number;
  /** Maximum delay of a rejection in milliseconds. */
  readonly longest: number;
}

/** Number of networks above which those without a delay are deleted: they are the same as new ones. */
const sweepAbove = 1000;

/** Returns the delay in milliseconds of a rejection at `now` (ms, steady clock) to this address. */
export type Brake = (address: string, now: number) => number;

/** Creates the delay. */
export function createBrake({ burst, pace, longest }: BrakeLimits): Brake {
  /** By network: the time of its next rejection if there were no burst. */
  const slots = new Map<number, number>();
  /** Milliseconds that a rejection may be sent before its slot. */
  const head = (burst - 1) * pace;
  let sweepAt = sweepAbove;
  return (address, now) => {
    if (slots.size >= sweepAt) {
      for (const [network, slot] of slots) if (slot <= now) slots.delete(network);
      sweepAt = Math.max(sweepAbove, slots.size * 2);
    }
    const network = networkOf(address);
    const slot = Math.max(now, slots.get(network) ?? 0);
    // Rejections with the maximum delay use no further slots, so the network recovers soon.
    slots.set(network, Math.min(slot + pace, now + head + longest));
    return Math.min(longest, Math.max(0, slot - head - now));
  };
}
