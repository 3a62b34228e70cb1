/** Requests whose costs do not depend on what exists: they read only the rows that they need. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onEveryDatabase, onSqlite } from "../support/harness.ts";
import { countRows } from "../support/rowcount.ts";

const namesOf = (servers: readonly Server[]): string[] => servers.map(({ Name }) => Name);

onEveryDatabase("servers in one state", (harness) => {
  test("are counted and listed in pages", async () => {
    const { client } = await harness.neighbour();
    await client.createBatch({ body: { Names: ["a", "b", "c", "d", "e"], RAM: 128, HDD: 1 } }, { wait: 60 });
    const list = (state: string, limit?: number) =>
      client.raw.listServers({ query: { state, ...(limit !== undefined && { limit }) } });
    assert.deepEqual(namesOf((await list("active")).answer), ["a", "b", "c", "d", "e"]);
    const first = await list("Active", 2);
    assert.deepEqual([namesOf(first.answer), first.headers.get("x-total-count")], [["a", "b"], "5"]);
    const seen: string[] = [];
    for await (const page of client.pages("listServers", { query: { state: "Active", limit: 2 } }))
      seen.push(...namesOf(page));
    assert.deepEqual(seen, ["a", "b", "c", "d", "e"]);
    assert.deepEqual(namesOf((await list("Active,New", 2)).answer), ["a", "b"]);
    const none = await list("New", 2);
    assert.deepEqual([none.answer, none.headers.get("x-total-count")], [[], "0"]);
    const labelled = await client.listServers({ query: { state: "Active", label: "x=1" } });
    assert.deepEqual(labelled, []);
  });
});

onSqlite("rows that are read", (harness) => {
  test("of a list of the servers in one state are those in this state", async () => {
    const { client } = await harness.neighbour();
    await client.createBatch({ body: { Name: "a{n}", Count: 8, RAM: 128, HDD: 1 } }, { wait: 60 });
    // Only the filters read exactly these columns.
    const count = (act: () => Promise<unknown>) => countRows('"batch_id", "location", "labels" from "server"', act);
    const list = (state: string) => count(() => client.listServers({ query: { state, limit: 1 } }));
    assert.equal(await list("Failed"), 0);
    assert.equal(await list("Active"), 2);
    assert.equal(await count(() => client.listServers({ query: { state: "Failed", name: "a*" } })), 0);
  });

  test("by the creation and deletion of a group are not all its members for each of them", async () => {
    const { client } = await harness.neighbour();
    const count = 12;
    const members = (act: () => Promise<unknown>) => countRows('where "batch_id" = ? order by', act);
    let id = 0;
    const made = await members(async () => {
      const body = { Name: "m{n}", Count: count, RAM: 128, HDD: 1 };
      id = (await client.createBatch({ body }, { wait: 60 })).ID;
    });
    assert.ok(made <= 3 * count, `${made} rows`);
    const deleted = await members(async () => {
      await client.deleteBatch({ body: { ID: id } });
      while ((await client.listServers({ query: { batch: id } })).length > 0);
    });
    assert.ok(deleted <= 3 * count, `${deleted} rows`);
  });

  test("by a new public network are not the other networks", async () => {
    const { client } = await harness.neighbour();
    const create = (index: number) => client.createPublicNetwork({ body: { Name: `n${index}` } }, { wait: 0 });
    for (let index = 0; index < 30; index++) await create(index);
    assert.equal(await countRows('"edge", "first6" from "network"', () => create(30)), 0);
    const free = await countRows('from "free_block"', () => create(31));
    assert.ok(free <= 4, `${free} rows of free blocks`);
  });
});
