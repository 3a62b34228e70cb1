/**
 * Sends the first requests of a page load, while the browser still loads the script of the page: who is signed in, the newest event, and then
 * what the page shows first. It is part of a small chunk of its own.
 */
import type { Account } from "@brume/api/account.ts";
import { grants, type Scope } from "@brume/api/operation.ts";
import { sessionHeader } from "@brume/api/session.ts";

/** A read that a page sends when it opens: its address as the SDK writes it, and the scope that it needs. */
export interface FirstRead {
  readonly address: string;
  readonly scope?: Scope;
}

/** The responses by URL; null: the token may not send the request, or there is no session. */
export type FirstReads = ReadonlyMap<string, Promise<Response | null>>;

/** Sends a request with the session cookie. The cookie counts only with a header that pages of other origins cannot send. */
export const withCookie: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(sessionHeader, "1");
  return fetch(input, { ...init, headers, credentials: "same-origin" });
};

/** Sends the first requests. Those of the page follow when the newest event is known, so that no change after them is missed. */
export function sendFirst(reads: readonly FirstRead[]): FirstReads {
  const send = (address: string) => withCookie(address, { headers: { Accept: "application/json" } });
  const [account, newest] = [send("/account"), send("/event?newest=true&limit=1")];
  // The copy is made before another reads the response.
  const held = account.then((response) => (response.ok ? (response.clone().json() as Promise<Account>) : null));
  const scopes = Promise.all([held, newest]).then(([read]) => read?.Token.Scopes ?? null);
  const page = reads.map(({ address, scope }) => {
    const response = scopes.then((granted) =>
      granted !== null && (scope === undefined || grants(granted, scope)) ? send(address) : null,
    );
    return [address, response] as const;
  });
  const all = [["/account", account], ["/event?newest=true&limit=1", newest], ...page] as const;
  // The read that uses a response reports its error.
  for (const [, response] of all) response.catch(() => undefined);
  return new Map(all.map(([address, response]) => [location.origin + address, response]));
}
