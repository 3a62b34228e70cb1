/** The list of domains. It reads rows in slices, and with a name or a label by an index. */
import { readByIds, readPages } from "../base/turn.ts";
import type { Caller, Page } from "../http/handler.ts";
import { cutPage, type Facets, type ListQuery, plainPage, takePage } from "../http/list.ts";
import { conditionsOf } from "../http/read/selector.ts";
import type { Reader } from "../store/db.ts";
import { findIds } from "../store/term.ts";
import { countDomains, type DomainRow, findDomain, listDomainsOf, pageDomains } from "./table.ts";

/** Rows of one query: few enough that reading them takes less than 5 ms. */
const readTogether = 300;

/** Returns the page of the domains that the caller may read and that match the filters. */
export async function filterDomains(
  db: Reader,
  { projectId: project, restriction }: Caller,
  query: ListQuery,
  { state, parts }: Required<Pick<Facets<DomainRow>, "state" | "parts">>,
): Promise<Page<DomainRow>> {
  const facets: Facets<DomainRow> = {
    id: (row) => row.id,
    name: (row) => row.name,
    state,
    labels: (row) => JSON.parse(row.labels) as Record<string, string>,
    parts,
  };
  if (restriction !== null) {
    const row = await findDomain.first(db, { id: restriction.domainId, project });
    return takePage(row === undefined ? [] : [row], query, facets);
  }
  const plain = plainPage({ ...query });
  if (plain !== null) {
    const rows = await pageDomains.all(db, { project, after: plain.after, limit: plain.limit + 1 });
    return { ...cutPage(rows, plain.limit, parts), total: await countDomains(db, project) };
  }
  const { limit: _, cursor: __, ...filters } = query;
  const conditions = conditionsOf(filters);
  const pages =
    conditions === null
      ? readPages(readTogether, (after) => pageDomains.all(db, { project, after, limit: readTogether }))
      : readByIds(await findIds(db, { kind: "domain", project }, conditions), readTogether, (ids) =>
          listDomainsOf(db, project, ids),
        );
  const found: DomainRow[] = [];
  for await (const rows of pages) found.push(...takePage(rows, filters, { ...facets, parts: () => 0 }).items);
  return takePage(found, query, { id: facets.id, parts });
}
