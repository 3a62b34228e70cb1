/**
 * Adds `RateLimit` to responses that are decided before the token is checked, or without it: unknown paths, methods, open operations. So a
 * token with a limit gets the headers on each response. Nothing is taken from its bucket here. `/healthz` and `/readyz` check no token,
 * because they respond without the database.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import { readCredential } from "./head.ts";
import type { Limiter } from "./limit.ts";

/** Dependencies of `createRateNote`. */
export interface RateContext {
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  readonly limiter: Limiter;
  readonly clock: Clock;
}

/** Adds the headers to the response of a request. */
export type NoteRate = (exchange: Exchange) => Promise<void>;

/** Creates the function that adds the headers once. An invalid token, or one that cannot be looked up now, adds none. */
export function createRateNote({ authenticate, limiter, clock }: RateContext): NoteRate {
  return async ({ head, headers, caller, address }) => {
    const token = caller === null ? readCredential(head) : null;
    if (token === null) return;
    try {
      const { tokenId, rateLimit } = await authenticate(token, address);
      if (rateLimit !== null) limiter.take(tokenId, rateLimit, steadyOf(clock), false, headers);
    } catch {
      // The response reports another error, or none.
    }
  };
}
