/**
 * Answers as bytes, ready to send. A table of fixed size where an answer lives in one of a few places given by its hash:
 * nothing to evict, nothing to sweep, and random names cannot make it grow. What a zone's change makes untrue is not searched
 * for: an entry knows the generation of its zone and is worth nothing under another.
 */
import { type Query, sameName, UDP_SIZE } from "../wire/message.ts";
import type { Zone } from "./zone.ts";

const SLOTS = 1 << 15;
const WAYS = 4;

/** A whole message, lent to one question after the other: id, RD and the question's letters are the last asker's. */
export interface Reply {
  message: Buffer;
  readonly zone: Zone | undefined;
  /** What a rate limit counts as the same answer. */
  readonly sameness: number;
}

/** One object with all that a look-up reads: at this rate every pointer followed is a wait for memory. */
interface Entry extends Reply {
  readonly zone: Zone;
  readonly generation: number;
  readonly type: number;
  readonly end: number;
  readonly variant: number;
}

export interface Cache {
  /** The reply to the same question in the same variant, unless its zone has changed. */
  get(packet: Uint8Array, query: Query, variant: number): Reply | undefined;
  /** Keeps a reply that comes from its zone alone, and gives the object that is to be used from now on. */
  put(query: Query, variant: number, reply: Reply): Reply;
  clear(): void;
}

export function createCache(): Cache {
  const slots = new Array<Entry | undefined>(SLOTS).fill(undefined);
  // Most places that a question looks at hold something else: one number says so without touching the entry.
  const tags = new Int32Array(SLOTS);
  let used = false;
  let turn = 0;

  return {
    get(packet, query, variant) {
      const tag = query.hash | 0;
      for (let way = 0; way < WAYS; way++) {
        const slot = (tag + way) & (SLOTS - 1);
        if (tags[slot] !== tag) continue;
        const entry = slots[slot];
        if (entry === undefined || entry.variant !== variant || entry.type !== query.type) continue;
        if (entry.end !== query.end || !sameName(packet, entry.message, query.end)) continue;
        return entry.generation === entry.zone.generation ? entry : undefined;
      }
      return undefined;
    },
    put(query, variant, reply) {
      const { message, zone, sameness } = reply;
      // Longer messages are rare, come by TCP, and would let the table grow to tens of megabytes.
      if (zone === undefined || message.length > UDP_SIZE) return reply;
      const tag = query.hash | 0;
      let place = (tag + (turn++ % WAYS)) & (SLOTS - 1);
      for (let way = WAYS - 1; way >= 0; way--) {
        const slot = (tag + way) & (SLOTS - 1);
        if (slots[slot] === undefined) place = slot;
      }
      for (let way = 0; way < WAYS; way++) {
        const slot = (tag + way) & (SLOTS - 1);
        const there = slots[slot];
        if (tags[slot] === tag && there?.variant === variant && there.type === query.type) place = slot;
      }
      tags[place] = tag;
      const { type, end } = query;
      const entry = { message, zone, sameness, generation: zone.generation, type, end, variant };
      slots[place] = entry;
      used = true;
      return entry;
    },
    clear() {
      if (used) slots.fill(undefined);
      used = false;
    },
  };
}
