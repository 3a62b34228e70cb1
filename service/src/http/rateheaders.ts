/**
 * `RateLimit` on answers that are given before the token is looked at, or without: unknown paths, methods, open operations. A token with a
 * limit sees its figures on each of its answers; nothing is taken from its bucket here. Only `/healthz` and `/readyz` look at no token, for
 * they answer when the database does not.
 */
import { type Clock, steadyOf } from "../base/clock.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import { readBearer } from "./head.ts";
import type { Limiter } from "./limit.ts";

export interface RateTools {
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  readonly limiter: Limiter;
  readonly clock: Clock;
}

export type NoteRate = (exchange: Exchange) => Promise<void>;

/** Adds the headers unless they are there. A token that is not good, or cannot be looked up now, has no limit to show. */
export function createRateNote({ authenticate, limiter, clock }: RateTools): NoteRate {
  return async ({ head, headers, caller, address }) => {
    const token = caller === null ? readBearer(head.authorization) : null;
    if (token === null) return;
    try {
      const { tokenId, rateLimit } = await authenticate(token, address);
      if (rateLimit !== null) limiter.take(tokenId, rateLimit, steadyOf(clock), false, headers);
    } catch {
      // The answer is about something else.
    }
  };
}
