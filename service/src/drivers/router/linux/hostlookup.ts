/**
 * Looks up the addresses of peers without waiting long. The resolver of the host tries for 5 to 20 seconds if no name server responds, and
 * meanwhile an apply of the network would wait, and others behind it. A later address is not lost: the next attempt gets it.
 */
import { within } from "../../../base/within.ts";

/** Resolves a host name to an IPv4 address. */
export type Lookup = (host: string) => Promise<string>;

/** Milliseconds that a caller waits. */
const longest = 1000;
/** Milliseconds that a late result is kept for the next attempt. */
const kept = 10_000;

/** Returns the look-up that rejects after `limit` milliseconds. Calls for the same name share one look-up. */
export function createHostLookup(lookup: Lookup, limit = longest): Lookup {
  const running = new Map<string, Promise<string>>();

  function begin(host: string): Promise<string> {
    const work = lookup(host);
    running.set(host, work);
    const forget = (): void => {
      if (running.get(host) === work) running.delete(host);
    };
    const forgetLater = () => void setTimeout(forget, kept).unref();
    work.then(forgetLater, forgetLater);
    return work;
  }

  return async (host) => {
    const work = running.get(host) ?? begin(host);
    const address = await within(work, limit, null).catch((error: unknown) => {
      running.delete(host);
      throw error;
    });
    if (address === null) throw new Error(`no name server responded within ${limit / 1000} s`);
    running.delete(host);
    return address;
  };
}
