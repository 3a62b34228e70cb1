/**
 * The filters of the list of servers. An index finds the servers with a name, label, address, group, network or state; a name that begins
 * with `*` and `!` of labels compare all. They read only the columns that they need, page by page, so that the event loop serves requests
 * in between; the servers of the page of the response are read completely afterwards.
 */
import { serverStates } from "@brume/api/action.ts";
import type { Query } from "@brume/api/operation.ts";
import type { serverOperations } from "@brume/api/server.ts";
import { readAddress } from "../base/address.ts";
import { fold, nameTerm } from "../base/term.ts";
import { readByIds, readPages, turn } from "../base/turn.ts";
import { takePage } from "../http/list.ts";
import { conditionsOf, stateMatcher } from "../http/read/selector.ts";
import { type LinkRow, linksPerPage, listServersAt, pageLinks } from "../network/linktable.ts";
import { pack, unpack } from "../network/model/plan.ts";
import { findBy6, listNetworksById, listSharedNames } from "../network/table.ts";
import type { Reader } from "../store/db.ts";
import { findIds } from "../store/term.ts";
import { showLink } from "./links.ts";
import { serverFilter, wordsOf } from "./model/filter.ts";
import {
  type FilteredRow,
  listFiltered,
  listMemberIds,
  listProjectLinks,
  pageFiltered,
  pageInState,
  type ServerRow,
} from "./table.ts";

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
  const found: FilteredRow[] = [];
  for await (const rows of await candidates(db, project, filters)) {
    const links = needsLinks ? await linksOf(db, project, rows) : null;
    const fitting = rows.filter((row) => matches(row, links?.get(row.id) ?? []));
    found.push(...takePage(fitting, filters, facets).items);
  }
  return found;
}

/** Returns the rows of the project among which all matches are, by id: those that the most selective index finds. */
async function candidates(db: Reader, project: number, filters: Filters): Promise<AsyncGenerator<FilteredRow[]>> {
  const limit = readTogether;
  const ids = await findCandidates(db, project, filters);
  if (ids !== null) return readByIds(ids, limit, (some) => listFiltered(db, project, some));
  const state = onlyState(filters.state);
  return readPages(limit, (after) =>
    state === null
      ? pageFiltered.all(db, { project, after, limit })
      : pageInState.all(db, { project, state, after, limit }),
  );
}

/** Returns the ids of servers, also of other projects, among which all matches are. Null: the state finds fewer, or nothing does. */
async function findCandidates(db: Reader, project: number, filters: Filters): Promise<readonly number[] | null> {
  // Also without a server to compare, a malformed selector is an error.
  const conditions = conditionsOf(filters);
  if (filters.ip !== undefined) return findAtAddresses(db, filters.ip);
  if (filters.batch !== undefined) return listMemberIds(db, filters.batch);
  const state = onlyState(filters.state);
  const isNamed = filters.name?.includes("*") === false;
  // Most servers are Active.
  if (state !== null && state !== "Active" && !isNamed) return null;
  if (conditions !== null) return findIds(db, { kind: "server", project }, conditions);
  return filters.network === undefined ? null : findInNetworks(db, project, filters.network);
}

const ascending = (ids: Iterable<number>): number[] => [...new Set(ids)].sort((a, b) => a - b);

/** Returns the servers of all projects that have one of the addresses. */
async function findAtAddresses(db: Reader, filter: string): Promise<number[]> {
  const found: number[] = [];
  for (const word of new Set(wordsOf(filter))) {
    const ip = await storedAddress(db, word);
    if (ip !== null) found.push(...(await listServersAt(db, ip)));
    if (turn.isOver()) await turn.next();
  }
  return ascending(found);
}

/** Returns the IPv4 address of the link that has this address. Null: no link has it. */
async function storedAddress(db: Reader, text: string): Promise<string | null> {
  const ip = readAddress(text);
  if (ip === null || ip.family === 4) return ip === null ? null : pack(4, ip.value);
  const host = BigInt.asUintN(64, ip.value);
  const network = await findBy6(db, pack(6, ip.value - host));
  return network === undefined ? null : pack(4, unpack(network.first) + host);
}

/** Returns the servers of all projects in the networks with these ids or names. */
async function findInNetworks(db: Reader, project: number, filter: string): Promise<number[]> {
  const words = [...new Set(wordsOf(fold(filter)))];
  const named = await findIds(
    db,
    { kind: "network", project },
    words.map((word) => ({ term: nameTerm(word) })),
  );
  const shared = (await listSharedNames(db)).filter(({ name }) => words.includes(fold(name))).map(({ id }) => id);
  const numbered = words.map(Number).filter((id) => Number.isSafeInteger(id) && id > 0);
  const found: number[] = [];
  for (const network of new Set([...named, ...shared, ...numbered]))
    for (let after: string | undefined = ""; after !== undefined; ) {
      const links: LinkRow[] = await pageLinks.all(db, { network, after });
      found.push(...links.map(({ server_id }) => server_id));
      after = links.length < linksPerPage ? undefined : links.at(-1)?.ip;
      if (turn.isOver()) await turn.next();
    }
  return ascending(found);
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
