/** The audit (docs/spec.md#audit): every requested change, also rejected ones, with token, source address and result. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEntry } from "@brume/api/account.ts";
import { onEveryDatabase, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";

const clock = createMovableClock();

onEveryDatabase(
  "the audit",
  (harness) => {
    /** Rejected requests are written shortly after their response. */
    async function read(
      query: object,
      until: (entries: readonly AuditEntry[]) => boolean = () => true,
    ): Promise<AuditEntry[]> {
      return harness.client.waitFor("listAudit", { query }, { until, timeout: 120_000 });
    }

    test("records token, source address, and the object before and after each change", async () => {
      const { client } = harness;
      const made = await client.raw.createDomain({ body: { Name: "audited.example", Ip: "192.0.2.1" } });
      const domain = made.answer;
      const path = { id: domain.ID };
      const labelled = await client.updateDomain({ path, body: { Labels: { a: "b" } } });
      const record = await client.createRecordA({ body: { DomainId: domain.ID, Name: "www", IP: "192.0.2.1" } });
      const edited = await client.updateRecordA({ path: { id: record.ID }, body: { TTL: 60 } });
      await client.deleteRecord({ path: { domainid: domain.ID, recordId: record.ID } });
      const set = await client.changeRecords({
        path,
        body: { Changes: [{ Op: "Create", TypeRecord: "TXT", Text: "a" }] },
      });
      const last = await client.readDomain({ path });
      await client.deleteDomain({ path });
      const entries = (await read({})).slice(0, 7).reverse();
      assert.deepEqual(
        entries.map(({ Operation, Resource, ResourceID, Status, Before, After }) => [
          Operation,
          Resource,
          ResourceID,
          Status,
          Before,
          After,
        ]),
        [
          ["createDomain", "domain", domain.ID, 200, null, domain],
          ["updateDomain", "domain", domain.ID, 200, domain, labelled],
          ["createRecordA", "record", record.ID, 200, null, record],
          ["updateRecordA", "record", record.ID, 200, record, edited],
          ["deleteRecord", "record", record.ID, 200, edited, null],
          [
            "changeRecords",
            "domain",
            domain.ID,
            200,
            { Serial: set.Serial - 1 },
            { Serial: set.Serial, Created: 1, Updated: 0, Deleted: 0 },
          ],
          ["deleteDomain", "domain", domain.ID, 200, last, null],
        ],
      );
      for (const entry of entries)
        assert.deepEqual([entry.TokenID, entry.TokenName, entry.Address], [1, "first", "127.0.0.1"]);
      assert.equal(entries[0]?.RequestID, made.requestId);
      assert.ok(entries.every(({ ID }, index) => index === 0 || ID > (entries[index - 1]?.ID ?? 0)));
    });

    test("records rejected changes, but no reads and no dry runs", async () => {
      const start = (await read({ limit: 1 }))[0]?.ID ?? 0;
      const { client } = harness;
      const reader = await harness.as(["dns:read"]);
      await refused(client.createDomain({ body: { Name: "a b" } }), "validation_failed");
      await refused(reader.client.createDomain({ body: { Name: "a.example" } }), "scope_missing");
      await refused(client.deleteDomain({ path: { id: 99_999 } }), "domain_not_found");
      await refused(client.updateRecordTXT({ path: { id: 77_777 }, body: {} }, { ifMatch: "*" }), "record_not_found");
      await harness.request("POST /dns", "{");
      await client.createDomain({ body: { Name: "dry.example" } }, { dryRun: true });
      await refused(client.createDomain({ body: { Name: "a b" } }, { dryRun: true }), "validation_failed");
      await refused(reader.client.listTokens(), "scope_missing");
      await harness.request("POST /nothing", {});
      await harness.callerOf("0".repeat(64)).request("POST /dns", {});
      const isNew = ({ ID }: AuditEntry) => ID > start;
      const entries = (await read({}, (all) => all.filter(isNew).length >= 6)).filter(isNew).reverse();
      assert.deepEqual(
        entries.map(({ Operation, TokenName, Status, Resource, ResourceID, Before, After }) => [
          Operation,
          TokenName,
          Status,
          Resource,
          ResourceID,
          Before,
          After,
        ]),
        [
          ["createToken", "first", 200, "token", entries[0]?.ResourceID, null, entries[0]?.After],
          ["createDomain", "first", 400, null, null, null, null],
          ["createDomain", "test", 403, null, null, null, null],
          ["deleteDomain", "first", 404, "domain", 99_999, null, null],
          ["updateRecordTXT", "first", 404, "record", 77_777, null, null],
          ["createDomain", "", 401, null, null, null, null],
        ],
      );
      assert.deepEqual(
        entries.map(({ Count }) => Count),
        [1, 2, 1, 1, 1, 1],
      );
      assert.equal((entries[0]?.After as { Token: string } | undefined)?.Token, "", "no secret is kept");
    });

    test("records requests with invalid tokens, including reads", async () => {
      const start = (await read({ limit: 1 }))[0]?.ID ?? 0;
      const ExpiresAt = new Date(clock.now() + 3_600_000).toISOString();
      const short = await harness.as(["dns:read"], { ExpiresAt });
      const away = await harness.as(["dns:read"], { AllowedFrom: ["198.51.100.0/24"] });
      clock.pass(3600);
      const isNew = ({ ID, Operation }: AuditEntry) => ID > start && Operation !== "createToken";
      const seen = async () =>
        (await read({}))
          .filter(isNew)
          .reverse()
          .map((entry) => [entry.Operation, entry.TokenName, entry.Status, entry.TokenID === null]);
      await refused(short.client.listDomains(), "token_expired");
      await refused(away.client.listDomains(), "scope_missing");
      await harness.callerOf("1".repeat(64)).request("GET /server");
      // They are stored before the response.
      const expected = [
        ["listDomains", "test", 401, false],
        ["listDomains", "test", 403, false],
        ["listServers", "", 401, true],
      ];
      assert.deepEqual(await seen(), expected);
      await harness.request("GET /dns", undefined, { Authorization: "" });
      assert.deepEqual(await seen(), expected, "a read without a token is nothing");
      const other = await harness.neighbour();
      const theirs = (await other.client.listAudit()).filter(({ ID }) => ID > start);
      assert.ok(theirs.some(({ Operation, TokenID }) => Operation === "listServers" && TokenID === null));
      assert.ok(theirs.every(({ TokenName }) => TokenName !== "test"));
    });

    test("counts repeated rejections in one entry", async () => {
      const start = (await read({ limit: 1 }))[0]?.ID ?? 0;
      const loops = 300;
      const caller = harness.callerOf("2".repeat(64));
      const begun = await caller.request("GET /image");
      const readAudit = async () => {
        for (let i = 1; i < loops / 4; i++) await caller.request("GET /image");
      };
      await Promise.all([readAudit(), readAudit(), readAudit(), readAudit()]);
      const sent = 4 * (loops / 4 - 1) + 1;
      const isListImages = ({ ID, Operation }: AuditEntry) => ID > start && Operation === "listImages";
      const entries = (await read({}, (all) => all.find(isListImages)?.Count === sent)).filter(isListImages);
      assert.equal(entries.length, 1);
      const [entry] = entries;
      assert.deepEqual([entry?.Count, entry?.RequestID], [sent, begun.headers.get("x-request-id")]);
      assert.ok((entry?.LastDate ?? "") >= (entry?.Date ?? ""));
    });

    test("does not grow when a token is rejected for many objects", async () => {
      const caller = await harness.as(["dns:write"]);
      const tokenId = (await caller.client.readAccount()).Token.ID;
      for (let id = 0; id < 100; id++) await caller.request(`DELETE /dns/${500_000 + id}`);
      const sum = (all: readonly AuditEntry[]) => all.reduce((total, { Count }) => total + Count, 0);
      const entries = await read({ token: tokenId }, (all) => sum(all) === 100);
      assert.equal(entries.length, 31);
      assert.deepEqual([entries[0]?.Count, entries[0]?.ResourceID], [70, null]);
    });

    test("can be filtered and read in pages", async () => {
      const caller = await harness.as(["dns:write", "account:admin"]);
      const tokenId = (await caller.client.readAccount()).Token.ID;
      const from = new Date(clock.now()).toISOString();
      const domain = await caller.client.createDomain({ body: { Name: "filtered.example" } });
      const first = await caller.client.createRecordA({ body: { DomainId: domain.ID, IP: "192.0.2.1" } });
      await caller.client.createRecordTXT({ body: { DomainId: domain.ID, Text: "a" } });
      await caller.client.deleteRecord({ path: { domainid: domain.ID, recordId: first.ID } });
      const operations = async (query: object) =>
        (await read({ token: tokenId, ...query })).map(({ Operation }) => Operation);
      assert.deepEqual(await operations({}), ["deleteRecord", "createRecordTXT", "createRecordA", "createDomain"]);
      assert.deepEqual(await operations({ resource: "record" }), ["deleteRecord", "createRecordTXT", "createRecordA"]);
      assert.deepEqual(await operations({ resource: `record:${first.ID}` }), ["deleteRecord", "createRecordA"]);
      assert.deepEqual(await operations({ operation: "createRecord*" }), ["createRecordTXT", "createRecordA"]);
      assert.deepEqual(await operations({ operation: "createDomain" }), ["createDomain"]);
      assert.equal((await operations({ from })).length, 4);
      assert.deepEqual(await operations({ to: from }), []);
      assert.deepEqual(await operations({ from: "2999-01-01" }), []);
      assert.deepEqual(await read({ token: 99_999 }), []);
      assert.equal((await harness.request("GET /audit?resource=record:x")).code, "query_invalid");
      for (const query of [
        "token=x",
        "from=then",
        "resource=bogus",
        "resource=bogus:1",
        "operation=no",
        "operation=no*",
      ])
        assert.equal((await harness.request(`GET /audit?${query}`)).code, "query_invalid", query);
      const pages: string[][] = [];
      for await (const page of harness.client.pages("listAudit", { query: { token: tokenId, limit: 3 } }))
        pages.push(page.map(({ Operation }) => Operation));
      assert.deepEqual(pages, [["deleteRecord", "createRecordTXT", "createRecordA"], ["createDomain"]]);
      const head = await harness.client.raw.listAudit({ query: { token: tokenId, limit: 1 } });
      assert.equal(head.headers.get("x-total-count"), "4");
      await caller.client.deleteToken({ path: { id: tokenId } });
      assert.equal((await operations({})).length, 5, "it survives the token that did it");
    });

    test("is visible to its own project and to administrators", async () => {
      const other = await harness.neighbour();
      await other.client.createDomain({ body: { Name: "theirs.example" } });
      assert.deepEqual(
        (await other.client.listAudit()).filter(({ TokenID }) => TokenID !== null).map(({ Operation }) => Operation),
        ["createDomain"],
      );
      assert.ok((await read({})).every(({ After }) => (After as { Name?: string } | null)?.Name !== "theirs.example"));
      const reader = await harness.as(["dns:write"]);
      await refused(reader.client.listAudit(), "scope_missing");
    });
  },
  { clock },
);
