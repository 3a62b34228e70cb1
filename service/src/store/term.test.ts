/** The index of names and labels, on both databases. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { databases, startDatabase } from "../../../test/support/databases.ts";
import { type TermCondition, termsOf } from "../base/term.ts";
import { findIds, type Indexed, indexObject } from "./term.ts";

const project = 1;
/** More than are read at once. Names fold to other lengths and are in another order than ids. */
const objects: readonly Indexed[] = Array.from({ length: 2300 }, (_, index) => ({
  id: index + 1,
  project_id: project,
  name: `${index % 2 ? "Straße" : "STRASSE"}-${(index * 7) % 2300}`,
  labels: JSON.stringify(index % 3 === 0 ? { env: "prod" } : { env: `e${index}`, odd: "" }),
}));

for (const kind of databases)
  test(`${kind}: the index finds what has a term or a prefix, in order of id, also after changes`, async () => {
    const database = await startDatabase(kind);
    const { store } = database;
    const find = (...conditions: TermCondition[]) => findIds(store.read, { kind: "server", project }, conditions);
    const having = (all: readonly Indexed[], fits: (term: string) => boolean) =>
      all.filter((object) => termsOf(object).some(fits)).map(({ id }) => id);
    const check = async (all: readonly Indexed[]) => {
      for (const term of ["nSTRASSE-77", "lenv=prod", "lodd=", "n", "l"])
        assert.deepEqual(
          await find({ term }),
          having(all, (each) => each === term),
          term,
        );
      for (const prefix of ["nSTRASSE-", "nSTRASSE-1", "nSTRASSE-2299", "lenv=", "lod", "nT"])
        assert.deepEqual(
          await find({ prefix }),
          having(all, (each) => each.startsWith(prefix)),
          prefix,
        );
      const either = await find({ term: "lenv=prod" }, { prefix: "nSTRASSE-1" });
      assert.deepEqual(
        either,
        having(all, (each) => each === "lenv=prod" || each.startsWith("nSTRASSE-1")),
      );
    };
    try {
      await store.write(async (tx) => {
        for (const object of objects) {
          indexObject(tx, "server", null, object);
          indexObject(tx, "server", null, { ...object, project_id: 2 });
          indexObject(tx, "network", null, { ...object, id: object.id + 5000 });
        }
        indexObject(tx, "network", null, { id: 1, project_id: null, name: "STRASSE-77", labels: "{}" });
      });
      await check(objects);
      const changed = objects.slice(1000).map((object) => ({ ...object, name: `T${object.name}`, labels: "{}" }));
      await store.write(async (tx) => {
        for (const object of objects.slice(0, 500)) indexObject(tx, "server", object, null);
        for (const [index, object] of changed.entries())
          indexObject(tx, "server", objects[index + 1000] ?? object, object);
      });
      await check([...objects.slice(500, 1000), ...changed]);
      await store.write(async (tx) => {
        for (const object of [...objects.slice(500, 1000), ...changed]) indexObject(tx, "server", object, null);
      });
      const left = await store.read.selectFrom("term").selectAll().where("kind", "=", "server").execute();
      assert.equal(left.length, objects.flatMap(termsOf).length, "the terms of the other project stay");
      assert.ok(left.every(({ project_id }) => project_id === 2));
    } finally {
      await database.close();
    }
  });
