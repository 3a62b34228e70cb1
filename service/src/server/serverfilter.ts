/**
 * The filters of the list of servers. They read only the columns that they need, page by page, so that the event loop serves requests in
 * between; the servers of the page of the response are read completely afterwards.
 */
import { serverStates } from "@brume/api/action.ts";
import type { Query } from "@brume/api/operation.ts";
import type { serverOperations } from "@brume/api/server.ts";
import { readPages } from "../base/turn.ts";
import { takePage } from "../http/list.ts";
import { stateMatcher } from "../http/read/selector.ts";
import { listNetworksById } from "../network/table.ts";
import type { Reader } from "../store/db.ts";
import { showLink } from "./links.ts";
import { serverFilter } from "./model/filter.ts";
import { type FilteredRow, listProjectLinks, pageFiltered, pageInState, type ServerRow } from "./table.ts";

type Filters = Query<typeof serverOperations.listServers>;

/** Rows of one query. */
const readTogether = 300;

/** Returns the state if the filter selects one that rows have; null: none or several. */
export function onlyState(filter: string | undefined): ServerRow["state"] | null {
  if (filter === undefined) return null;
  const [state, ...others] = serverStates.filter(stateMatcher(filter)).filter((each) => each !== "NeedMoney");
  return state !== undefined && others.length === 0 ? state : null;
}

/** Returns the servers of the project that match the filters, by id. Throws `query_invalid` for a malformed selector. */
export async function filterServers(db: Reader, project: number, query: Filters): Promise<readonly FilteredRow[]> {
  const { limit: _, cursor: __, ...filters } = query;
  const needsLinks = query.network !== undefined || query.ip !== undefined;
  const matches = serverFilter(query);
  const facets = {
    id: (row: FilteredRow) => row.id,
    name: (row: FilteredRow) => row.name,
    state: (row: FilteredRow) => row.state,
    labels: (row: FilteredRow) => JSON.parse(row.labels) as Record<string, string>,
  };
  // Also without a server to compare, a malformed selector is an error.
  const found = [...takePage<FilteredRow>([], filters, facets).items];
  const state = onlyState(query.state);
  const limit = readTogether;
  const pages = readPages(limit, (after) =>
    state === null
      ? pageFiltered.all(db, { project, after, limit })
      : pageInState.all(db, { project, state, after, limit }),
  );
  for await (const rows of pages) {
    const links = needsLinks ? await linksOf(db, project, rows) : null;
    const fitting = rows.filter((row) => matches(row, links?.get(row.id) ?? []));
    found.push(...takePage(fitting, filters, facets).items);
  }
  return found;
}

async function linksOf(db: Reader, project: number, rows: readonly FilteredRow[]) {
  const links = await listProjectLinks(db, project, [0, ...rows.map(({ id }) => id)]);
  const networks = await listNetworksById(db, [...new Set(links.map(({ network_id }) => network_id))]);
  const networkOf = new Map(networks.map((network) => [network.id, network]));
  const shown = links.flatMap((link) => {
    const network = networkOf.get(link.network_id);
    return network === undefined ? [] : [{ server: link.server_id, link: showLink({ link, network }) }];
  });
  const byServer = Map.groupBy(shown, ({ server }) => server);
  return new Map([...byServer].map(([server, own]) => [server, own.map(({ link }) => link)]));
}
