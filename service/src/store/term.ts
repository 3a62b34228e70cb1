/**
 * The index of the names and labels of servers, networks and domains: a table of their terms (`../base/term.ts`), because SQL cannot
 * compare names as the filters of lists do. Rows change together with their objects, in the same transaction.
 */
import { type SqlBool, sql } from "kysely";
import { endOfPrefix, type TermCondition, termsOf } from "../base/term.ts";
import { readPages, turn } from "../base/turn.ts";
import { insertMany, prepare, type Reader, rest, type Tx } from "./db.ts";
import type { TermTable } from "./schema/infrastructure.ts";

type Kind = TermTable["kind"];

/** The fields of an object that the index contains. Objects without a project are in no list with filters. */
export interface Indexed {
  readonly id: number;
  readonly project_id: number | null;
  readonly name: string;
  readonly labels: string;
}

const put = insertMany("term", ["kind", "project_id", "term", "object_id"]);

const remove = prepare<TermTable>()((db, p) =>
  db
    .deleteFrom("term")
    .where("kind", "=", p("kind"))
    .where("project_id", "=", p("project_id"))
    .where("term", "=", p("term"))
    .where("object_id", "=", p("object_id")),
);

const indexed = ["id", "project_id", "name", "labels"] as const;

/** Changes the terms of an object. `before` null: inserted; `after` null: deleted. */
export function indexObject(tx: Tx, kind: Kind, before: Indexed | null, after: Indexed | null): void {
  const old = before === null ? [] : rowsOf(kind, before);
  const now = after === null ? [] : rowsOf(kind, after);
  const has = (rows: readonly TermTable[], row: TermTable) => rows.some(({ term }) => term === row.term);
  for (const row of old) if (!has(now, row)) remove.send(tx, row);
  const added = now.filter((row) => !has(old, row));
  if (added.length > 0) put(tx, added);
}

/** Changes the terms of an object whose row gets `change`; call it before. No effect if its name and its labels stay. */
export async function indexChange(
  tx: Tx,
  kind: Kind,
  id: number,
  change: { readonly name?: string | undefined; readonly labels?: string | undefined },
): Promise<void> {
  if (change.name === undefined && change.labels === undefined) return;
  const before = await tx.selectFrom(kind).select(indexed).where("id", "=", id).executeTakeFirst();
  if (before === undefined) return;
  const { name = before.name, labels = before.labels } = change;
  indexObject(tx, kind, before, { ...before, name, labels });
}

const rowsOf = (kind: Kind, object: Indexed): TermTable[] => {
  const { id, project_id } = object;
  return project_id === null ? [] : termsOf(object).map((term) => ({ kind, project_id, term, object_id: id }));
};

/** Ids that are read at once: few enough for less than 5 ms. */
const idsPerPage = 1000;

const pageWithTerm = prepare<Omit<TermTable, "object_id"> & { after: number }>()((db, p) =>
  db
    .selectFrom("term")
    .select("object_id as id")
    .where("kind", "=", p("kind"))
    .where("project_id", "=", p("project_id"))
    .where("term", "=", p("term"))
    .where("object_id", ">", p("after"))
    .orderBy("object_id")
    .limit(idsPerPage),
);

const pageOfTerms = prepare<Omit<TermTable, "object_id"> & { after: number; end: string }>()((db, p) =>
  db
    .selectFrom("term")
    .select(["term", "object_id as id"])
    .where("kind", "=", p("kind"))
    .where("project_id", "=", p("project_id"))
    .where(sql<SqlBool>`(term, object_id) > (${p("term")}, ${p("after")})`)
    .where("term", "<", p("end"))
    .orderBy("term")
    .orderBy("object_id")
    .limit(idsPerPage),
);

/** Returns the ids of the project's objects that meet one of the conditions, in ascending order. Reads in slices. */
export async function findIds(
  db: Reader,
  { kind, project }: { readonly kind: Kind; readonly project: number },
  conditions: readonly TermCondition[],
): Promise<number[]> {
  const owner = { kind, project_id: project };
  const found = new Set<number>();
  for (const condition of conditions) {
    if (turn.isOver()) await turn.next();
    const pages =
      "term" in condition
        ? readPages(idsPerPage, (after) => pageWithTerm.all(db, { ...owner, ...condition, after }))
        : readPrefix(db, owner, condition.prefix);
    for await (const page of pages) for (const { id } of page) found.add(id);
  }
  return [...found].sort((a, b) => a - b);
}

/** Yields the ids of the objects with a term that begins with `prefix`, in slices. */
async function* readPrefix(db: Reader, owner: Omit<TermTable, "term" | "object_id">, prefix: string) {
  type Row = { readonly term: string; readonly id: number };
  const end = endOfPrefix(prefix);
  for (let last: Row | undefined = { term: prefix, id: 0 }; last !== undefined; ) {
    const page: Row[] = await pageOfTerms.all(db, { ...owner, term: last.term, after: last.id, end });
    yield page;
    last = page.length < idsPerPage ? undefined : page.at(-1);
    if (turn.isOver()) await turn.next();
  }
}

/** Objects whose terms are inserted at once. */
const together = 500;

/** Fills the empty index from the rows of all objects. */
export async function indexAll(tx: Tx): Promise<void> {
  for (const kind of ["server", "network", "domain"] as const)
    for (let after = 0, rows; rows === undefined || rows.length === together; await rest(tx)) {
      rows = await tx.selectFrom(kind).select(indexed).where("id", ">", after).orderBy("id").limit(together).execute();
      const terms = rows.flatMap((row) => rowsOf(kind, row));
      if (terms.length > 0) put(tx, terms);
      after = rows.at(-1)?.id ?? after;
    }
}
