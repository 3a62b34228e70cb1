/** Requests whose costs do not depend on what exists: they read only the rows that they need. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Server } from "@brume/api/server.ts";
import { onEveryDatabase, onSqlite } from "../support/harness.ts";
import { countRows } from "../support/rowcount.ts";
import { findScans } from "../support/scans.ts";

/** Tables with as many rows as there are objects, or changes. */
const growing = (
  "event audit task idempotency sample term webhook_delivery " +
  "domain domain_version record network link tunnel server server_key retired_block"
).split(" ");
/** Plans and statements that read the rows of a small index, an index alone, or the first or last row. */
const cheap: readonly RegExp[] = [
  /^select count\(\*\) as "count" from "network"$/,
  /^select "state", count\(\*\) as "count" from "server" group by "state"$/,
  /^SCAN server USING INDEX server_notable$/,
  /^select [^()]+ from "\w+" order by "id"(?: desc)? limit \?$/,
];

const publicKey = `ssh-ed25519 ${Buffer.concat([Buffer.from("\0\0\0\x0bssh-ed25519\0\0\0 "), Buffer.alloc(32, 5)]).toString("base64")}`;
const wireguardKey = Buffer.alloc(32, 3).toString("base64");

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
    const members = (act: () => Promise<unknown>) =>
      countRows('select * from "server" where "batch_id" = ? order by', act);
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

  test("are never all rows of a table that grows", async () => {
    const { client } = await harness.neighbour();
    const scans = await findScans(harness.brume.store.read, growing, async () => {
      const key = await client.createSshKey({ body: { Title: "k", PublicKey: publicKey } });
      const server = await client.createServer({ body: { Name: "one", RAM: 128, HDD: 1, SshKeys: [key.ID] } });
      const group = await client.createBatch({ body: { Name: "g{n}", Count: 3, RAM: 128, HDD: 1 } }, { wait: 60 });
      const network = await client.createPublicNetwork({ body: { Name: "net" } }, { wait: 60 });
      const path = { id: network.Id };
      const tunnel = { Name: "t", Type: "WireGuard", PeerNetwork: "10.9.0.0/24", PeerPublicKey: wireguardKey } as const;
      await client.configureVpn({ path, body: { Tunnels: [tunnel] } }, { wait: 60 });
      await client.configureFirewall({ path, body: { Rules: [] } }, { wait: 60 });
      const domain = await client.createDomain({ body: { Name: "growth.example" } });
      const record = await client.createRecordA({ body: { DomainId: domain.ID, Name: "a", IP: "192.0.2.1" } });
      await client.deleteRecord({ path: { domainid: domain.ID, recordId: record.ID } });
      await client.createWebhook({ body: { Url: "http://127.0.0.1:9/" } });
      const filters = [{}, { name: "one" }, { name: "o*" }, { state: "Active" }, { label: "a=b" }, { limit: 1 }];
      for (const query of filters) {
        await client.listServers({ query });
        await client.listPublicNetworks({ query });
        await client.listDomains({ query: { ...query, records: false } });
      }
      for (const query of [{ batch: group.ID }, { ip: "10.63.0.2,fd00::2" }, { network: "net,1" }])
        await client.listServers({ query });
      for (const query of [{}, { type: "server.changed" }, { resource: `server:${server.ID}` }, { newest: true }])
        await client.listEvents({ query });
      for (const query of [{}, { resource: "server" }, { operation: "createServer" }])
        await client.listAudit({ query });
      await harness.request("GET /metrics");
      await client.deleteBatch({ body: { ID: group.ID } }, { wait: 60 });
      await client.deleteServer({ path: { id: server.ID } }, { wait: 60 });
      await client.deletePublicNetwork({ path }, { wait: 60 });
      await client.deleteDomain({ path: { id: domain.ID } });
    });
    const found = scans.filter(({ text, plan }) => !cheap.some((pattern) => pattern.test(text) || pattern.test(plan)));
    assert.deepEqual(found, []);
  });
});
