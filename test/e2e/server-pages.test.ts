/** Pages of servers (docs/spec.md#lists) show the same as single reads, after each kind of change: their texts are kept between requests. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createClient } from "@brume/api/client.ts";
import { onEveryDatabase } from "../support/harness.ts";
import { createServerApiFixture, type ServerApiFixture } from "../support/serverapifixture.ts";

onEveryDatabase("pages of servers", (harness) => {
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
});
