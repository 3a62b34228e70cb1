/**
 * Authenticates requests: returns the caller of a token or session. Only hashes are stored. If this process is the only writer of the database, callers
 * are cached in memory until a token or project changes.
 */

import type { Scope } from "@brume/api/operation.ts";
import type { RateLimit } from "@brume/api/token.ts";
import { type Clock, since } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import { hashToken } from "../base/secret.ts";
import { type Caller, TokenRefused } from "../http/handler.ts";
import { sessionPrefix } from "../http/head.ts";
import type { Store } from "../store/db.ts";
import { type Block, isAllowedFrom, parseBlock } from "./model/rules.ts";
import { findTokenBySession } from "./sessiontable.ts";
import { findTokenByHash, touchToken } from "./table.ts";

/** Resolves tokens to callers, with a cache of the tokens in use. */
export interface Authenticator {
  /** `value`: a token, or `sessionPrefix` and the value of a session cookie. Throws `token_invalid`, `token_expired`, or `scope_missing` when the token may not be used from `address`. */
  authenticate(value: string, address: string): Caller | Promise<Caller>;
  /** Clears the cache, after a change of a token or project. */
  forget(): void;
  /** Stores when tokens were last used, exact to a minute. */
  flush(): Promise<void>;
}

interface Known {
  readonly caller: Caller;
  readonly allowedFrom: readonly Block[] | null;
  /** Time (ms) of the last recorded use. */
  notedAt: number;
}

/** Ms between two recorded uses of a token. With the period of `flush`, `LastUsedAt` is exact to a minute. */
const resolution = 30_000;
/** Maximum number of cached tokens, which limits the memory. */
const mostKnown = 10_000;

const unknown = (value: string): ApiError =>
  new ApiError(
    "token_invalid",
    value.startsWith(sessionPrefix) ? "The session has ended. Sign in again." : "The token is not known.",
  );

export function createAuthenticator(store: Store, clock: Clock): Authenticator {
  const known = new Map<string, Known>();
  const used = new Map<number, number>();
  /** Number of `forget` calls: a row read before one must not be cached after it. */
  let generation = 0;
  let foreignWrites = store.foreignWrites();

  const forget = (): void => {
    generation += 1;
    known.clear();
  };

  const admit = (found: Known, address: string): Caller => {
    const { caller, allowedFrom } = found;
    const now = clock.now();
    if (caller.expiresAt !== null && caller.expiresAt <= now)
      throw new TokenRefused(
        caller,
        "token_expired",
        `The ${caller.sessionId === undefined ? "token" : "session"} expired at ${new Date(caller.expiresAt).toISOString()}.`,
      );
    if (allowedFrom !== null && !isAllowedFrom(allowedFrom, address))
      throw new TokenRefused(caller, "scope_missing", `The token may not be used from ${address}.`);
    if (since(found.notedAt, now) >= resolution) {
      found.notedAt = now;
      used.set(caller.tokenId, now);
    }
    return caller;
  };

  const lookUp = async (value: string, address: string): Promise<Caller> => {
    const before = generation;
    const isSession = value.startsWith(sessionPrefix);
    const hash = hashToken(isSession ? value.slice(sessionPrefix.length) : value);
    const session = isSession ? await findTokenBySession.first(store.read, { hash }) : undefined;
    const row = isSession ? session : await findTokenByHash.first(store.read, { hash });
    if (row === undefined) throw unknown(value);
    const rateLimit = row.rate_limit === null ? null : (JSON.parse(row.rate_limit) as RateLimit);
    const found: Known = {
      notedAt: 0,
      allowedFrom:
        row.allowed_from === null
          ? null
          : (JSON.parse(row.allowed_from) as string[]).map(parseBlock).filter((block) => block !== null),
      caller: {
        tokenId: row.id,
        tokenName: row.name,
        projectId: row.project_id,
        projectBlocked: row.is_blocked === 1,
        scopes: JSON.parse(row.scopes) as Scope[],
        restriction:
          row.domain_id === null
            ? null
            : {
                domainId: row.domain_id,
                domain: row.domain ?? "",
                pattern: row.record_pattern,
                types: row.record_types === null ? null : (JSON.parse(row.record_types) as string[]),
              },
        rateLimit: rateLimit === null ? null : { requests: rateLimit.Requests, seconds: rateLimit.Seconds },
        expiresAt:
          session === undefined ? row.expires_at : Math.min(session.session_expires, row.expires_at ?? Infinity),
        ...(session !== undefined && { sessionId: session.session_id }),
      },
    };
    if (foreignWrites !== null && before === generation) {
      if (known.size >= mostKnown) known.clear();
      known.set(value, found);
    }
    return admit(found, address);
  };

  return {
    authenticate(value, address) {
      const current = store.foreignWrites();
      if (current !== foreignWrites) {
        foreignWrites = current;
        forget();
      }
      const found = known.get(value);
      if (found !== undefined) return admit(found, address);
      if (!/^(?:session )?[0-9a-f]{64}$/.test(value)) throw unknown(value);
      return lookUp(value, address);
    },
    forget,
    async flush() {
      const now = [...used];
      used.clear();
      if (now.length === 0) return;
      await store.write(async (tx) => {
        for (const [id, at] of now) await touchToken(tx, id, at);
      });
    },
  };
}
