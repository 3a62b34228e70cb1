/**
 * A cache of the encoded responses that `answer/direct.ts` does not write: a table of fixed size in which a response is in one of a few slots selected by its hash. It needs no
 * eviction, and random names cannot make it grow. An entry records the generation of its zone and is invalid for any other.
 */
import { type Query, sameName, UDP_SIZE } from "../wire/message.ts";
import type { Zone } from "./zone.ts";

const SLOTS = 1 << 15;
const WAYS = 4;

/** A complete message, reused for one query after the other: id, RD and letter case of the question belong to the last query. */
export interface Reply {
  message: Buffer;
  readonly zone: Zone | undefined;
  /** Number by which a rate limit recognises equal responses. */
  readonly sameness: number;
}

/** One object with all fields of a lookup, because at this rate every pointer followed costs a memory access. */
interface Entry extends Reply {
  readonly zone: Zone;
  readonly generation: number;
  readonly type: number;
  readonly end: number;
  readonly variant: number;
}

/** Cached responses. */
export interface Cache {
  /** Returns the response to the same question in the same variant, unless its zone has changed. */
  get(packet: Uint8Array, query: Query, variant: number): Reply | undefined;
  /** Stores a response that depends on its zone alone, and returns the object to use from then on. */
  put(query: Query, variant: number, reply: Reply): Reply;
  clear(): void;
}

/** Creates an empty cache. */
export function createCache(): Cache {
  const slots = new Array<Entry | undefined>(SLOTS).fill(undefined);
  // Most slots of a query contain another response; the tag shows that without reading the entry.
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
      // Longer messages are rare, use TCP, and would let the table grow to tens of megabytes.
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
