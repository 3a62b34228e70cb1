/**
 * Sends the first requests of a page load, while the browser still loads the script of the page: who is signed in, and the newest event.
 * It is part of a small chunk of its own.
 */
import { sessionHeader } from "@brume/api/session.ts";

/** Sends a request with the session cookie. The cookie counts only with a header that pages of other origins cannot send. */
export const withCookie: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(sessionHeader, "1");
  return fetch(input, { ...init, headers, credentials: "same-origin" });
};

const paths = ["/account", "/event?newest=true&limit=1"];

/** The responses by address. Each is used once; later reads send a request. */
export const firstReads: ReadonlyMap<string, Promise<Response>> = new Map(
  paths.map((path) => {
    const response = withCookie(path, { headers: { Accept: "application/json" } });
    // The read that uses it reports the error.
    response.catch(() => undefined);
    return [location.origin + path, response];
  }),
);
