/** Filters of the list of servers that other lists do not have (docs/spec.md#lists). They are joined by AND and ignore letter case. */

import type { Query } from "@brume/api/operation.ts";
import type { ServerLink, serverOperations } from "@brume/api/server.ts";
import { fold } from "../../base/term.ts";
import type { FilteredRow } from "../table.ts";

type Filters = Pick<Query<typeof serverOperations.listServers>, "batch" | "location" | "network" | "ip">;

/** Returns the words of a filter, which commas separate. */
export const wordsOf = (text: string): string[] =>
  text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

/** Returns the predicate of the filters. `links` are the links of the row. */
export function serverFilter(filters: Filters): (row: FilteredRow, links: readonly ServerLink[]) => boolean {
  const { batch } = filters;
  const words = (text: string | undefined) => (text === undefined ? null : wordsOf(fold(text)));
  const [location, network, ip] = [words(filters.location), words(filters.network), words(filters.ip)];
  return (row, links) =>
    (batch === undefined || row.batch_id === batch) &&
    (location?.includes(fold(row.location)) ?? true) &&
    (network === null ||
      links.some(
        ({ NetworkID, NetworkName }) => network.includes(String(NetworkID)) || network.includes(fold(NetworkName)),
      )) &&
    (ip === null || links.some(({ IP, IP6 }) => ip.includes(IP) || (IP6 !== "" && ip.includes(fold(IP6)))));
}
