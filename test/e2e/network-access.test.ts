/**
 * Visibility of public networks (docs/spec.md#authentication, #lists, #projects-are-isolated, #every-operation-checks-the-token,
 * #secrets-are-never-shown, #quotas-hold-under-concurrency): lists, projects and their quotas, and restricted tokens.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PublicNetwork } from "@brume/api/network.ts";
import { onSqlite, refused } from "../support/harness.ts";
import { assertNotVisible, createMovableClock, useNetworkFixture } from "../support/networkfixture.ts";

const clock = createMovableClock();

onSqlite(
  "public networks",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const path = ({ Id }: PublicNetwork) => ({ id: Id });
    describe("in a list", () => {
      test("contain only those of the project, with filters and pages", async () => {
        const other = await harness.neighbour();
        const { client } = other;
        const made: PublicNetwork[] = [];
        for (const [Name, Labels] of [
          ["web", { env: "prod" }],
          ["db", { env: "test" }],
          ["web 2", {}],
        ] as const)
          made.push(await client.createPublicNetwork({ body: { Name, Labels } }));
        const names = async (query: object) => (await client.listPublicNetworks({ query })).map(({ Name }) => Name);
        assert.deepEqual(await names({}), ["web", "db", "web 2"]);
        assert.deepEqual(await names({ name: "WEB*" }), ["web", "web 2"]);
        assert.deepEqual(await names({ label: "env in (prod,test),env!=prod" }), ["db"]);
        assert.deepEqual(await names({ state: "active,deleting", location: "local" }), ["web", "db", "web 2"]);
        assert.deepEqual([await names({ state: "FromPool" }), await names({ location: "Mars" })], [[], []]);
        const pages = [];
        for await (const page of client.pages("listPublicNetworks", { query: { limit: 2 } })) pages.push(page);
        assert.deepEqual(pages, [made.slice(0, 2), made.slice(2)]);
        const { headers } = await client.raw.listPublicNetworks({ query: { limit: 1, name: "web*" } });
        assert.equal(headers.get("x-total-count"), "2");
        assert.match(headers.get("link") ?? "", /name=web/);
        assert.equal((await harness.request("GET /publicnetwork?limit=0")).code, "query_invalid");
        assert.ok(!(await harness.client.listPublicNetworks()).some(({ Id }) => made.some((one) => one.Id === Id)));
        assert.deepEqual(await client.listNetworks(), []);
      });

      test("shared networks belong to no project", async () => {
        const row = await harness.brume.store.read
          .selectFrom("network")
          .selectAll()
          .where("kind", "=", "shared")
          .executeTakeFirstOrThrow();
        assert.ok(harness.brume.router.images().some(({ id, kind }) => id === row.id && kind === "shared"));
        await refused(harness.client.readPublicNetwork({ path: { id: row.id } }), "public_network_not_found");
        await refused(harness.client.readNetwork({ path: { id: row.id } }), "network_not_found");
        await refused(harness.client.deletePublicNetwork({ path: { id: row.id } }), "public_network_not_found");
      });
    });

    describe("of a project", () => {
      test("are not visible to other projects", async () => {
        const made = await fixture.network();
        const other = await harness.neighbour();
        await assertNotVisible(other, made.Id);
        assert.deepEqual(await other.client.listPublicNetworks(), []);
      });

      test("are limited by the quota, also for concurrent requests", async () => {
        const other = await harness.neighbour({ PublicNetworks: 2, PrivateNetworks: 1 });
        const orders = Array.from({ length: 5 }, () => other.request("POST /publicnetwork", { Name: "many" }));
        const response = await Promise.all(orders);
        const count = (wanted: string | null) => response.filter(({ code }) => code === wanted).length;
        assert.deepEqual([count(null), count("quota_exceeded")], [2, 3]);
        const privateNetworks = await Promise.all(
          [1, 2, 3].map((n) => other.request("POST /network", { Name: `n${n}` })),
        );
        assert.equal(privateNetworks.filter(({ status }) => status === 200).length, 1);
        const { Usage } = await other.client.readOwnProject();
        assert.deepEqual([Usage.PublicNetworks, Usage.PrivateNetworks], [2, 1]);
        await refused(other.client.createPublicNetwork({ body: { Name: "x" } }), "quota_exceeded");
      });

      test("prevent its deletion", async () => {
        const other = await harness.neighbour();
        const remove = () => harness.client.deleteProject({ path: { id: other.project } });
        const network = await other.client.createPublicNetwork({ body: { Name: "last" } });
        const inner = await other.client.createNetwork({ body: { Name: "inner" } });
        const error = await refused(remove(), "project_in_use");
        assert.match(error.detail, /owns 2 Networks/);
        await other.client.deletePublicNetwork({ path: path(network) }, { wait: 60 });
        await refused(remove(), "project_in_use");
        await other.client.deleteNetwork({ path: { id: inner.ID } }, { wait: 60 });
        await remove();
        await refused(other.client.readAccount(), "token_invalid");
      });

      test("keep working while it is blocked, and can be deleted", async () => {
        const other = await harness.neighbour();
        const made = await other.client.createPublicNetwork({ body: { Name: "open" } });
        await harness.client.updateProject({ path: { id: other.project }, body: { IsBlocked: true } });
        await refused(other.client.updatePublicNetwork({ path: path(made), body: { Name: "x" } }), "project_blocked");
        assert.equal((await other.client.readPublicNetwork({ path: path(made) })).State, "Active");
        await other.client.deletePublicNetwork({ path: path(made) }, { wait: 60 });
        assert.deepEqual(await other.client.listPublicNetworks(), []);
      });
    });

    test("a token that can only read sees no keys, and a token without the scope sees nothing", async () => {
      const made = await fixture.network();
      const SharedKey = "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu";
      const Tunnels = [{ Name: "office", SharedKey, PeerNetwork: "10.9.0.0/24", PeerEndpoint: "192.0.2.1" }];
      const headers = { "Idempotency-Key": "with a secret".replaceAll(" ", "-") };
      await fixture.newEvents();
      const set = await harness.request(`PUT /publicnetwork/${made.Id}/vpn`, { Tunnels }, headers);
      const keyOf = (network: PublicNetwork) => network.Vpn.Tunnels[0]?.SharedKey;
      assert.equal(keyOf(set.json as PublicNetwork), SharedKey);
      const replayed = await harness.request(`PUT /publicnetwork/${made.Id}/vpn`, { Tunnels }, headers);
      assert.deepEqual([replayed.text, replayed.headers.get("idempotency-replayed")], [set.text, "true"]);
      const reader = await harness.as(["network:read"]);
      const writer = await harness.as(["network:write"]);
      assert.equal(keyOf(await reader.client.readPublicNetwork({ path: path(made) })), "");
      assert.equal(keyOf(await writer.client.readPublicNetwork({ path: path(made) })), SharedKey);
      const inList = (list: readonly PublicNetwork[]) => list.filter(({ Id }) => Id === made.Id).map(keyOf);
      assert.deepEqual(inList(await reader.client.listPublicNetworks()), [""]);
      assert.deepEqual(inList(await writer.client.listPublicNetworks()), [SharedKey]);
      for (const line of [
        "PUT /publicnetwork/1",
        "DELETE /publicnetwork/1",
        "POST /publicnetwork",
        "PUT /publicnetwork/1/vpn",
      ])
        assert.equal((await reader.request(line, {})).code, "scope_missing", line);
      for (const line of ["PUT /publicnetwork/1/firewall", "POST /network", "DELETE /network/1"])
        assert.equal((await reader.request(line, {})).code, "scope_missing", line);
      const otherToken = await harness.as(["dns:write", "server:write", "account:admin"]);
      for (const line of [
        "GET /publicnetwork",
        "GET /publicnetwork/1",
        "GET /publicnetwork/1/vpn/status",
        "GET /network",
      ])
        assert.equal((await otherToken.request(line)).code, "scope_missing", line);
      const logged = JSON.stringify([await fixture.newEvents(), await harness.client.listAudit()]);
      assert.ok(logged.includes('"office"') && !logged.includes(SharedKey), "no event or audit entry contains the key");
      const events = (caller: { client: typeof harness.client }) =>
        caller.client.listEvents({ query: { type: "publicnetwork.*" } });
      assert.ok((await events(reader)).length > 0);
      assert.deepEqual(await events(otherToken), []);
      const rows = await harness.brume.store.read.selectFrom("tunnel").selectAll().execute();
      const stored = rows.map(
        ({ shared_key, ...row }) => JSON.stringify(row) + Buffer.from(shared_key ?? []).toString("latin1"),
      );
      assert.ok(stored.length > 0 && stored.every((text) => !text.includes(SharedKey)), "at rest it is sealed");
    });
  },
  { clock },
);
