/** Opens the built-in name server. Its thread takes longer to start than anything else, so it starts before other modules are loaded. */
import { join } from "node:path";
import type { Log } from "./base/log.ts";
import { within } from "./base/within.ts";
import type { Config } from "./config.ts";
import { createBuiltin } from "./drivers/nameserver/builtin/builtin.ts";
import type { Nameserver } from "./drivers/nameserver/interface.ts";

/** File of the saved zones. */
const savedZonesName = "zones";

/** Starts the name server with the zones that are saved in `folder`. The caller handles its rejection, if it cannot listen, when it needs it. */
export function openNameserver({ dns }: Config, folder: string, log: Log): Promise<Nameserver> {
  const opening = createBuiltin({
    ...dns.listen,
    rateLimit: dns.rateLimit,
    queryLimit: dns.queryLimit,
    file: join(folder, savedZonesName),
    transfer: dns.transfer,
    log,
  });
  // An error of the database is reported first.
  opening.catch(() => {});
  return opening;
}

/** Milliseconds that an error of the start waits for the thread of the name server. */
const longestWait = 5000;

/**
 * Resolves as `start` does. Throws its error once the thread of the name server has started, or after 5 s: the caller ends the process, and
 * an end while the thread loads a native module aborts with a stack trace instead.
 */
export async function withNameserver<T>(nameserver: Promise<Nameserver>, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const started = nameserver.then(
      () => null,
      () => null,
    );
    await within(started, longestWait, null);
    throw error;
  }
}
