/**
 * Restart of the service (docs/spec.md#acknowledged-changes-survive, #idempotency-keys-survive, #serials-grow-with-changes-only,
 * #deleted-domains-come-back-empty): the state is unchanged, ids and serials continue, and DNS is served at once.
 */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Domain } from "@brume/api/dns.ts";
import { type Caller, onSqliteFirst, refused } from "../support/harness.ts";

onSqliteFirst("a restart", (harness) => {
  let other: Caller & { readonly project: number };
  let domain: Domain;

  /** Returns all objects of both projects, without the last use of tokens and readiness. */
  async function everything(): Promise<unknown> {
    const shown: unknown[] = [];
    for (const { client, request } of [harness, other]) {
      const domains = await client.listDomains();
      shown.push(
        domains,
        await client.readOwnProject(),
        await client.readAccount(),
        await client.listEvents({ query: { limit: 1000 } }),
      );
      shown.push((await client.listTokens()).map((token) => ({ ...token, LastUsedAt: null })));
      shown.push(await client.listAudit());
      for (const { ID } of domains) {
        shown.push(
          await client.listVersions({ path: { id: ID } }),
          await client.text("readDomain", { path: { id: ID } }),
        );
        shown.push((await request(`GET /dns/${ID}`)).headers.get("etag"));
      }
    }
    return shown;
  }

  before(async () => {
    other = await harness.neighbour({ Domains: 5 });
    domain = await harness.client.createDomain({
      body: { Name: "stays.example", ZoneFile: "a A 192.0.2.1\n@ CAA 0 issue x\n", Labels: { keep: "me" } },
    });
    await harness.client.createRecordTXT({ body: { DomainId: domain.ID, Name: "ж", Text: "ä\tb", Labels: { a: "" } } });
    await other.client.createDomain({ body: { Name: "theirs.example", Ip: "2001:db8::1" } });
    const gone = await harness.client.createDomain({ body: { Name: "gone.example" } });
    await harness.client.deleteDomain({ path: { id: gone.ID } });
  });

  test("changes nothing in the API", async () => {
    await refused(harness.client.createDomain({ body: { Name: "a b" } }), "validation_failed");
    await harness.client.waitFor("listAudit", {}, { until: (all) => all.some(({ Status }) => Status === 400) });
    const was = await everything();
    await harness.brume.restart();
    assert.deepEqual(await everything(), was);
    await harness.brume.restart();
    assert.deepEqual(await everything(), was);
  });

  test("makes the service ready only when its zones are served", async () => {
    await harness.brume.restart();
    const [ready, a, v6, text, gone] = await Promise.all([
      harness.client.readReadiness(),
      harness.lookUp("a.stays.example", "A"),
      harness.lookUp("theirs.example", "AAAA"),
      harness.lookUp("xn--f1a.stays.example", "TXT"),
      harness.lookUp("gone.example", "SOA"),
    ]);
    assert.equal(ready.Status, "ready");
    assert.deepEqual([a, v6, gone], [["192.0.2.1"], ["2001:db8::1"], "EREFUSED"]);
    assert.equal(text.length, 1);
    const { State, LinkedRecords } = await harness.client.readDomain({ path: { id: domain.ID } });
    assert.deepEqual([State, ...LinkedRecords.map((one) => one.State)], ["Active", "Active", "Active"]);
  });

  test("continues ids and serials, also after deletions", async () => {
    const body = { Name: "again.example", Ip: "192.0.2.1" };
    const first = await harness.client.createDomain({ body });
    for (let i = 0; i < 3; i++)
      await harness.client.createRecordA({ body: { DomainId: first.ID, Name: `h${i}`, IP: "192.0.2.1" } });
    const last = await harness.client.readDomain({ path: { id: first.ID } });
    const record = last.LinkedRecords.at(-1)?.ID ?? 0;
    const token = await harness.client.createToken({ body: { Name: "gone", Scopes: ["dns:read"] } });
    const event = (await harness.client.listEvents({ query: { limit: 1000 } })).at(-1)?.ID ?? 0;
    await harness.client.deleteToken({ path: { id: token.ID } });
    await harness.client.deleteDomain({ path: { id: first.ID } });
    await harness.brume.restart();
    const second = await harness.client.createDomain({ body });
    assert.ok(second.ID > first.ID && second.Serial > last.Serial && (second.LinkedRecords[0]?.ID ?? 0) > record);
    assert.deepEqual(second.LinkedRecords.length, 1);
    assert.equal((await harness.brume.resolver.resolveSoa("again.example")).serial, second.Serial);
    assert.ok((await harness.client.createToken({ body: { Name: "new", Scopes: ["dns:read"] } })).ID > token.ID);
    assert.ok(((await harness.client.listEvents({ query: { limit: 1000 } })).at(-1)?.ID ?? 0) > event);
    await harness.client.deleteDomain({ path: { id: second.ID } });
    await harness.brume.restart();
    const third = await harness.client.createDomain({ body });
    assert.ok(third.Serial > second.Serial);
    await refused(
      harness.client.restoreVersion({ path: { id: third.ID }, body: { Serial: second.Serial } }),
      "validation_failed",
    );
  });

  test("keeps the last use of tokens and blocked projects", async () => {
    const reader = await harness.as(["dns:read"]);
    const { Token } = await reader.client.readAccount();
    const path = { id: Token.ID };
    const seen = Date.now();
    await harness.client.updateProject({ path: { id: other.project }, body: { IsBlocked: true } });
    await harness.brume.restart();
    const { LastUsedAt } = await harness.client.readToken({ path });
    assert.ok(LastUsedAt !== null && Math.abs(Date.parse(LastUsedAt) - seen) < 60_000, String(LastUsedAt));
    await refused(other.client.createDomain({ body: { Name: "blocked.example" } }), "project_blocked");
  });

  test("keeps the first token unless it was deleted", async () => {
    const secondAdmin = await harness.as(["account:admin"]);
    await secondAdmin.client.deleteToken({ path: { id: 1 } });
    await harness.brume.restart();
    await refused(harness.client.readAccount(), "token_invalid");
    assert.equal((await secondAdmin.client.readAccount()).Token.Name, "test");
  });
});
