/**
 * Rate limits for networks of clients (/24, /56), each a table of token buckets. Equal responses to one network share a bucket, so that
 * forged queries cannot use the server to attack others; all queries of one network share another, so that no network takes the server
 * from the others. Over a rate, some responses are sent empty and truncated, so that a real client at a forged address can retry over TCP;
 * the others are dropped.
 */
import { networkOf, plainAddress } from "../../../base/address.ts";

const BUCKETS = 1 << 16;
/** Every n-th response over the rate of equal responses is sent, truncated. */
const SLIP = 2;
/** Every n-th query over the rate of all queries is answered, truncated. */
export const QUERY_SLIP = 16;

/** `slip`: send the response truncated. */
export type RateVerdict = "send" | "slip" | "drop";

/** A rate limit. */
export interface Limiter {
  /** Counts a response with this `sameness` to a network (see `networkOf`), and returns what to do with it. */
  admit(network: number, sameness: number): RateVerdict;
}

/** The source of a query. Most queries need none of it. */
export interface Client {
  /** The address as `dgram` writes it. */
  address(): string;
  /** See `networkOf`. */
  network(): number;
  isLoopback(): boolean;
  /** Returns a hash of address and port. */
  flow(): number;
}

/** Returns whether limits apply to a client: addresses of loopback cannot be forged from outside. */
export const isLimited = ({ limitLoopback }: { readonly limitLoopback: boolean }, client: Client): boolean =>
  limitLoopback || !client.isLoopback();

/** Returns the client at an address. */
export const clientAt = (address: string, port = 0): Client => ({
  address: () => address,
  network: () => networkOf(address),
  isLoopback: () => isLoopback(address),
  flow: () => mix(networkOf(address), port),
});

/**
 * Creates a limit of `rate` responses per second for each network and sameness, with a burst of one second. `now` returns milliseconds.
 * `seed` is a random number that prevents clients from choosing who shares a bucket. Every `slipEach`-th response over the rate is
 * truncated, the others are dropped.
 */
export function createLimiter(rate: number, now: () => number, seed: number, slipEach = SLIP): Limiter {
  const tags = new Uint32Array(BUCKETS);
  const tokens = new Float32Array(BUCKETS);
  const seen = new Float64Array(BUCKETS);
  const slips = new Uint8Array(BUCKETS);

  return {
    admit(network, sameness) {
      const tag = mix(mix(seed, network), sameness) >>> 0;
      const bucket = (tag ^ (tag >>> 16)) & (BUCKETS - 1);
      const time = now();
      // On a collision the bucket starts full: this allows too many responses, but only by chance.
      const isNew = tags[bucket] !== tag || seen[bucket] === 0;
      const refilled = (tokens[bucket] as number) + ((time - (seen[bucket] as number)) * rate) / 1000;
      const left = isNew ? rate : Math.min(rate, refilled);
      tags[bucket] = tag;
      seen[bucket] = time;
      if (left >= 1) {
        tokens[bucket] = left - 1;
        return "send";
      }
      tokens[bucket] = left;
      const slip = ((slips[bucket] as number) + 1) % slipEach;
      slips[bucket] = slip;
      return slip === 0 ? "slip" : "drop";
    },
  };
}

function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/** Returns whether the address is a loopback address. */
export function isLoopback(address: string): boolean {
  const plain = plainAddress(address);
  return plain.startsWith("127.") || plain === "::1";
}
