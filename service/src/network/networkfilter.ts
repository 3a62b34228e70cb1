/** The filters of the lists of networks. They read only the columns that they need, in slices, and with a name or a label by an index. */
import { readByIds, readPages } from "../base/turn.ts";
import type { Page } from "../http/handler.ts";
import { type Facets, type ListQuery, takePage } from "../http/list.ts";
import { conditionsOf } from "../http/read/selector.ts";
import type { Reader } from "../store/db.ts";
import { findIds } from "../store/term.ts";
import { type FilteredRow, listFiltered, type NetworkRow, pageFiltered } from "./table.ts";

/** Rows of one query: few enough that reading them takes less than 5 ms. */
export const readTogether = 300;

/** Returns the page of the project's networks of this kind that match the filters. `state` returns what responses show. */
export async function filterNetworks(
  db: Reader,
  { project, kind }: { readonly project: number; readonly kind: NetworkRow["kind"] },
  query: ListQuery & { readonly location?: string | undefined },
  state: (row: FilteredRow) => string,
): Promise<Page<FilteredRow>> {
  const facets: Facets<FilteredRow> = {
    id: (row) => row.id,
    name: (row) => row.name,
    state,
    labels: (row) => JSON.parse(row.labels) as Record<string, string>,
  };
  const { limit: _, cursor: __, location, ...filters } = query;
  const isThere = inLocation(location);
  const conditions = conditionsOf(filters);
  const pages =
    conditions === null
      ? readPages(readTogether, (after) => pageFiltered.all(db, { project, kind, after, limit: readTogether }))
      : readByIds(await findIds(db, { kind: "network", project }, conditions), readTogether, (ids) =>
          listFiltered(db, project, kind, ids),
        );
  const found: FilteredRow[] = [];
  for await (const rows of pages) found.push(...takePage(rows.filter(isThere), filters, facets).items);
  return takePage(found, query, { id: facets.id });
}

/** Returns a filter for the rows in one of the locations, whose names commas separate. */
function inLocation(wanted: string | undefined): (row: FilteredRow) => boolean {
  if (wanted === undefined) return () => true;
  const names = wanted.split(",").map((name) => name.trim().toLowerCase());
  return (row) => names.includes(row.location.toLowerCase());
}
