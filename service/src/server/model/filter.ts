/** Filters of the list of servers that other lists do not have (docs/spec.md#lists). They are joined by AND and ignore letter case. */

import type { Query } from "@brume/api/operation.ts";
import type { ServerLink, serverOperations } from "@brume/api/server.ts";
import type { FilteredRow } from "../table.ts";

type Filters = Pick<Query<typeof serverOperations.listServers>, "batch" | "location" | "network" | "ip">;

const words = (text: string): string[] =>
  text
    .toLowerCase()
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

/** Returns the predicate of the filters. `links` are the links of the row. */
export function serverFilter(filters: Filters): (row: FilteredRow, links: readonly ServerLink[]) => boolean {
  const { batch } = filters;
  const location = filters.location === undefined ? null : words(filters.location);
  const network = filters.network === undefined ? null : words(filters.network);
  const ip = filters.ip === undefined ? null : words(filters.ip);
  return (row, links) =>
    (batch === undefined || row.batch_id === batch) &&
    (location?.includes(row.location.toLowerCase()) ?? true) &&
    (network === null ||
      links.some(
        ({ NetworkID, NetworkName }) =>
          network.includes(String(NetworkID)) || network.includes(NetworkName.toLowerCase()),
      )) &&
    (ip === null || links.some(({ IP, IP6 }) => ip.includes(IP) || (IP6 !== "" && ip.includes(IP6))));
}
