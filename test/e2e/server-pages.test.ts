/** Pages of servers (docs/spec.md#lists) show the same as single reads, after each kind of change: their texts are kept between requests. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createClient } from "@brume/api/client.ts";
import type { Query } from "@brume/api/operation.ts";
import type { Server, serverOperations } from "@brume/api/server.ts";
import { onEveryDatabase } from "../support/harness.ts";
import { createServerApiFixture, type ServerApiFixture } from "../support/serverapifixture.ts";

type ListQuery = Query<typeof serverOperations.listServers>;

const isIn = ({ LinkedNetworks }: Server, network: number) => LinkedNetworks.some((one) => one.NetworkID === network);

onEveryDatabase(
  "pages of servers",
  (harness) => {
    let fixture: ServerApiFixture;
    before(() => {
      fixture = createServerApiFixture(harness);
    });

    test("a page shows each change of a server, its links and its networks", async () => {
      const { client } = harness;
      const network = await client.createNetwork({ body: { Name: "first name" } });
      const servers = [await fixture.server(), await fixture.server({ NetworkID: network.ID })];
      const [first, second] = servers.map(({ ID }) => ID) as [number, number];
      const { Token } = await client.createToken({ body: { Name: "reader", Scopes: ["server:read"] } });
      const reader = createClient({ url: harness.brume.url, token: Token });
      const compare = async (what: string): Promise<void> => {
        for (const one of [client, reader]) {
          const page = await one.listServers({ query: { limit: 10 } });
          const single = await Promise.all(page.map(({ ID }) => one.readServer({ path: { id: ID } })));
          assert.deepEqual(page, single, what);
          assert.deepEqual(
            page.map(({ ID }) => ID),
            [first, second],
          );
        }
      };
      await compare("created");
      const [open] = await client.listServers({ query: { limit: 1 } });
      const [hidden] = await reader.listServers({ query: { limit: 1 } });
      assert.notEqual(open?.AdminPassword, "");
      assert.equal(hidden?.AdminPassword, "");
      await client.updateServer({ path: { id: first }, body: { Name: "renamed", Labels: { a: "b" } } });
      await compare("renamed");
      await client.updateNetwork({ path: { id: network.ID }, body: { Name: "second name" } });
      await compare("renamed network");
      await fixture.act(second, { Type: "PowerOff" });
      await fixture.read(second, ({ IsPowerOn }) => !IsPowerOn);
      await compare("powered off");
      await client.rebuildServer({ path: { id: first }, body: {} }, { wait: 60 });
      await compare("rebuilt");
      const [rebuilt] = await client.listServers({ query: { limit: 1 } });
      assert.notEqual(rebuilt?.AdminPassword, open?.AdminPassword);
      const shared = open?.LinkedNetworks[0]?.NetworkID ?? 0;
      assert.equal((await fixture.act(second, { Type: "AddNetwork", NetworkID: shared })).State, "Completed");
      await compare("connected to another network");
    });

    test("each filter finds what the complete list shows, and nothing of another project", async () => {
      const { client } = harness;
      const other = await harness.neighbour();
      const network = await client.createNetwork({ body: { Name: "Straße" } });
      await other.client.createNetwork({ body: { Name: "Straße" } });
      const outer = await client.createPublicNetwork({ body: { Name: "outer", NetworkCapacity: "29" } }, { wait: 60 });
      await fixture.server({ Name: "outside", NetworkID: outer.Id });
      for (const [Name, Labels] of [
        ["Grüße", { env: "prod" }],
        ["GRÜSSE", { env: "test", odd: "" }],
        ["grüne", {}],
      ] as const)
        await fixture.server({ Name, Labels, ...(Name === "grüne" && { NetworkID: network.ID }) });
      const all = await client.listServers();
      const addresses = all.flatMap(({ LinkedNetworks }) => LinkedNetworks.flatMap(({ IP, IP6 }) => [IP, IP6]));
      assert.ok(addresses.some((ip) => ip.startsWith("fd24:")));
      const [shared] = all[0]?.LinkedNetworks ?? [];
      const rows: [ListQuery, (server: Server) => boolean][] = [
        [{ name: "grüsse" }, ({ Name }) => ["Grüße", "GRÜSSE"].includes(Name)],
        [{ name: "GRÜ*E" }, ({ Name }) => /^grü/i.test(Name)],
        [{ name: "*ss*" }, ({ Name }) => ["Grüße", "GRÜSSE"].includes(Name)],
        [{ name: "renamed" }, ({ Name }) => Name === "renamed"],
        [{ label: "env" }, ({ Labels }) => "env" in Labels],
        [{ label: "env in (test,prod),!odd" }, ({ Labels }) => Labels["env"] === "prod"],
        [{ label: "odd=" }, ({ Labels }) => Labels["odd"] === ""],
        [{ label: "a=b", name: "r*" }, ({ Name }) => Name === "renamed"],
        [{ network: "STRASSE" }, (server) => isIn(server, network.ID)],
        [{ network: String(network.ID) }, (server) => isIn(server, network.ID)],
        [{ network: shared?.NetworkName ?? "" }, (server) => isIn(server, shared?.NetworkID ?? 0)],
        ...addresses
          .filter((ip) => ip !== "")
          .map((ip): [ListQuery, (server: Server) => boolean] => [
            { ip: ip.toUpperCase() },
            ({ LinkedNetworks }) => LinkedNetworks.some(({ IP, IP6 }) => IP === ip || IP6 === ip),
          ]),
        [{ ip: "192.0.2.1,nonsense,2001:db8::1" }, () => false],
        [{ state: "Active", network: "strasse", name: "grüne" }, ({ Name }) => Name === "grüne"],
      ];
      for (const [query, fits] of rows) {
        const expected = all.filter(fits).map(({ Name }) => Name);
        const found = await client.raw.listServers({ query: { ...query, limit: 1000 } });
        assert.deepEqual(
          found.answer.map(({ Name }) => Name),
          expected,
          JSON.stringify(query),
        );
        assert.equal(found.headers.get("x-total-count"), String(expected.length));
        assert.deepEqual(await other.client.listServers({ query }), []);
      }
      const named = all.find(({ Name }) => Name === "GRÜSSE")?.ID ?? 0;
      await client.updateServer({ path: { id: named }, body: { Name: "late", Labels: { env: "late" } } });
      const ids = async (query: ListQuery) => (await client.listServers({ query })).map(({ ID }) => ID);
      assert.deepEqual([await ids({ name: "late" }), await ids({ label: "env=late" })], [[named], [named]]);
      assert.deepEqual([(await ids({ name: "grüsse" })).length, await ids({ label: "env=test" })], [1, []]);
      await client.deleteServer({ path: { id: named } }, { wait: 60 });
      assert.deepEqual(await ids({ name: "late" }), []);
    });
  },
  { ipv6: true },
);
