/** The index of names and labels, compared with the objects. */
import assert from "node:assert/strict";
import { termsOf } from "../../service/src/base/term.ts";
import type { Store } from "../../service/src/store/db.ts";

/** Asserts that the index contains the names and labels of all objects that belong to a project, and nothing else. */
export async function checkTerms(store: Store): Promise<void> {
  const { read, close } = await store.snapshot();
  try {
    const wanted: string[] = [];
    for (const kind of ["server", "network", "domain"] as const) {
      const rows = await read.selectFrom(kind).select(["id", "project_id", "name", "labels"]).execute();
      for (const row of rows.filter(({ project_id }) => project_id !== null))
        wanted.push(...termsOf(row).map((term) => `${kind} ${row.project_id} ${term} ${row.id}`));
    }
    const found = await read.selectFrom("term").selectAll().execute();
    assert.deepEqual(
      found.map(({ kind, project_id, term, object_id }) => `${kind} ${project_id} ${term} ${object_id}`).sort(),
      wanted.sort(),
    );
  } finally {
    await close();
  }
}
