/** Of the host's own name servers those that guests can use too: IPv4, and not closed to guests as addresses of the host are. */
import { isIPv4 } from "node:net";
import { closedExcept, isIn } from "./closed.ts";

export interface Resolvers {
  readonly told: readonly string[];
  /** Left out, since guests do not reach them. */
  readonly closed: readonly string[];
}

/** `own`: the host's addresses. `opened`: what guests reach all the same. */
export function resolversFor(servers: readonly string[], own: readonly string[], opened: readonly string[]): Resolvers {
  const closed = closedExcept(opened, [...closedExcept([]), ...own]);
  const isClosed = (server: string) => isIn(closed, server);
  const usable = servers.filter((server) => isIPv4(server) && !server.startsWith("127."));
  return { told: usable.filter((server) => !isClosed(server)), closed: usable.filter(isClosed) };
}
