/**
 * The account, its projects and their tokens (docs/spec.md#account-and-project, #token, #account-endpoints). `tokens.test.ts` tests
 * restricted tokens.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { describe, test } from "node:test";
import type { Project } from "@brume/api/account.ts";
import { scopes } from "@brume/api/operation.ts";
import type { Token } from "@brume/api/token.ts";
import { onSqliteFirst, refused } from "../support/harness.ts";
import { createMovableClock } from "../support/networkfixture.ts";

const clock = createMovableClock();

onSqliteFirst(
  "the account",
  (harness) => {
    let names = 0;
    const project = (more: object = {}) =>
      harness.client.createProject({ body: { Name: `project ${++names}`, ...more } });
    const token = (more: object = {}) =>
      harness.client.createToken({
        body: { Name: "token", Scopes: ["dns:read"], ...more },
      });

    describe("the account", () => {
      test("lists all projects for administrators, and only the own project for others", async () => {
        const other = await harness.neighbour();
        const all = await harness.client.readAccount();
        assert.deepEqual(
          all.Projects.map(({ ID }) => ID).filter((id) => id === 1 || id === other.project),
          [1, other.project],
        );
        assert.deepEqual(
          all.ProjectsBalance.map(({ ProjectId }) => ProjectId),
          all.Projects.map(({ ID }) => ID),
        );
        const reader = await harness.as(["dns:read"]);
        const account = await reader.client.readAccount();
        assert.deepEqual(account.Projects, [{ ID: 1, Name: "default", IsBlocked: false }]);
        assert.deepEqual(
          [account.Token.Name, account.Token.Scopes, account.Token.ProjectID, account.Token.DomainID],
          ["test", ["dns:read"], 1, null],
        );
        assert.equal((await reader.request("GET /customer/balance")).text, "0");
      });
    });

    describe("projects", () => {
      test("have unique names", async () => {
        const made = await project({ Name: "Only one" });
        await refused(project({ Name: "Only one" }), "title_taken", { "/Name": "title_taken" });
        const other = await project({ Name: "only one" });
        const rename = (id: number, Name: string) => harness.client.updateProject({ path: { id }, body: { Name } });
        await refused(rename(other.ID, "Only one"), "title_taken", { "/Name": "title_taken" });
        assert.equal((await rename(made.ID, "Only one")).Name, "Only one");
        assert.equal((await rename(made.ID, " Renamed ")).Name, "Renamed");
        await project({ Name: "Only one" });
        for (const [Name, code] of [
          ["a<b", "format_invalid"],
          ["a>b", "format_invalid"],
          ["a\u0007b", "format_invalid"],
          ["x".repeat(65), "too_long"],
          [[], "type_mismatch"],
          [null, "field_required"],
        ] as const)
          await refused(project({ Name }), "validation_failed", { "/Name": code });
        assert.equal((await project({ Name: "ж".repeat(64) })).Name.length, 64);
        assert.equal((await project({ Name: "Cafe\u0301" })).Name, "Café");
      });

      test("keep the quotas that an edit does not contain", async () => {
        const { ID, Quotas } = await project({ Quotas: { Domains: 3, servers: "7" } });
        assert.deepEqual([Quotas.Domains, Quotas.Servers, Quotas.Tokens], [3, 7, 100]);
        const edit = (given: object) => harness.client.updateProject({ path: { id: ID }, body: { Quotas: given } });
        const edited = await edit({ Tokens: 0 });
        assert.deepEqual(edited.Quotas, { ...Quotas, Tokens: 0 });
        const highest = { FirewallRules: 10_000, RecordsPerDomain: 1_000_000, CPU: 2_147_483_647 };
        assert.deepEqual((await edit(highest)).Quotas, { ...edited.Quotas, ...highest });
        const beyond = Object.fromEntries(Object.entries(highest).map(([name, most]) => [name, most + 1]));
        await refused(edit({ ...beyond, Domains: -1 }), "validation_failed", {
          "/Quotas/CPU": "out_of_range",
          "/Quotas/Domains": "out_of_range",
          "/Quotas/RecordsPerDomain": "out_of_range",
          "/Quotas/FirewallRules": "out_of_range",
        });
        const form = await harness.request(`PUT /project/${ID}`, "Quotas[Domains]=5&Quotas.Tokens=6&Labels[a]=b");
        assert.deepEqual([(form.json as Project).Quotas.Domains, (form.json as Project).Quotas.Tokens], [5, 6]);
        assert.deepEqual((form.json as Project).Labels, { a: "b" });
      });

      test("with a quota below their use accept no new objects", async () => {
        const other = await harness.neighbour({ Domains: 2, Tokens: 2 });
        const path = { id: other.project };
        const create = (Name: string) => other.client.createDomain({ body: { Name } });
        const made = [await create("q1.example"), await create("q2.example")];
        const error = await refused(create("q3.example"), "quota_exceeded");
        assert.match(error.detail, /Domains: wanted 1, free 0, limit 2/);
        await harness.client.updateProject({ path, body: { Quotas: { Domains: 1 } } });
        const { Usage, Quotas } = await harness.client.readProject({ path });
        assert.deepEqual([Usage.Domains, Usage.Tokens, Quotas.Domains], [2, 1, 1]);
        await refused(create("q3.example"), "quota_exceeded");
        await other.client.createRecordA({ body: { DomainId: made[0]?.ID ?? 0, IP: "192.0.2.1" } });
        for (const { ID } of made) await other.client.deleteDomain({ path: { id: ID } });
        await create("q3.example");
        await token({ ProjectID: other.project });
        await refused(token({ ProjectID: other.project }), "quota_exceeded");
        await refused(other.client.createToken({ body: { Name: "x", Scopes: ["dns:read"] } }), "quota_exceeded");
      });

      test("can be read by their own tokens and by administrators", async () => {
        const other = await harness.neighbour();
        const reader = await harness.as(["dns:read"], { ProjectID: other.project });
        const ownProject = await reader.client.readOwnProject();
        assert.equal(ownProject.ID, other.project);
        assert.deepEqual(await reader.client.readProject({ path: { id: other.project } }), ownProject);
        assert.deepEqual(await harness.client.readProject({ path: { id: other.project } }), ownProject);
        await refused(reader.client.readProject({ path: { id: 1 } }), "scope_missing");
        await refused(reader.client.updateProject({ path: { id: other.project }, body: {} }), "scope_missing");
        await refused(harness.client.readProject({ path: { id: 99_999 } }), "project_not_found");
        await refused(harness.client.updateProject({ path: { id: 99_999 }, body: {} }), "project_not_found");
        await refused(harness.client.deleteProject({ path: { id: 99_999 } }), "project_not_found");
      });

      test("keep their ETag if nothing changes", async () => {
        const { ID } = await project();
        const path = { id: ID };
        const { etag, answer } = await harness.client.raw.readProject({ path });
        const same = await harness.client.raw.updateProject({
          path,
          body: { Name: answer.Name, Quotas: answer.Quotas, IsBlocked: false },
        });
        assert.equal(same.etag, etag);
        const edited = await harness.client.raw.updateProject(
          { path, body: { Labels: { a: "" } } },
          { ifMatch: etag ?? "" },
        );
        assert.notEqual(edited.etag, etag);
        const late = harness.client.updateProject({ path, body: {} }, { ifMatch: etag ?? "" });
        assert.equal((await refused(late, "etag_mismatch")).headers.get("etag"), edited.etag);
        await refused(harness.client.deleteProject({ path }, { ifMatch: etag ?? "" }), "etag_mismatch");
      });

      test("that are blocked can be read and emptied, and their domains are still served", async () => {
        const other = await harness.neighbour();
        const path = { id: other.project };
        const domain = await other.client.createDomain({ body: { Name: "blocked.example", Ip: "192.0.2.1" } });
        const more = await other.client.createDomain({ body: { Name: "blocked2.example" } });
        const blocked = await harness.client.updateProject({ path, body: { IsBlocked: "yes" as never } });
        assert.equal(blocked.IsBlocked, true);
        const record = { DomainId: domain.ID, IP: "192.0.2.2" };
        await refused(other.client.createRecordA({ body: record }), "project_blocked");
        await refused(other.client.createRecordA({ body: record }, { dryRun: true }), "project_blocked");
        await refused(other.client.updateDomain({ path: { id: domain.ID }, body: {} }), "project_blocked");
        assert.equal((await other.request("POST /dns", "{")).code, "project_blocked", "before the body is read");
        assert.equal((await other.client.listDomains()).length, 2);
        assert.deepEqual(await harness.lookUp("blocked.example", "A"), ["192.0.2.1"]);
        await other.client.deleteDomain({ path: { id: more.ID } });
        await other.client.deleteRecord({ path: { domainid: domain.ID, recordId: domain.LinkedRecords[0]?.ID ?? 0 } });
        const unblocked = await other.client.updateProject({ path, body: { IsBlocked: false } });
        assert.equal(unblocked.IsBlocked, false);
        await other.client.createRecordA({ body: record });
      });

      test("are deleted with their tokens if they own nothing else", async () => {
        const other = await harness.neighbour();
        const path = { id: other.project };
        const { ID } = await other.client.createDomain({ body: { Name: "in-the-way.example" } });
        assert.match((await refused(harness.client.deleteProject({ path }), "project_in_use")).detail, /1 Domains/);
        await other.client.deleteDomain({ path: { id: ID } });
        await refused(other.client.deleteProject({ path }), "project_in_use");
        await harness.client.deleteProject({ path });
        await refused(other.client.readAccount(), "token_invalid");
        await refused(harness.client.readProject({ path }), "project_not_found");
        await refused(harness.client.listTokens({ query: { project: other.project } }), "project_not_found");
        assert.ok((await project()).ID > other.project, "an id is never used again");
      });
    });

    describe("tokens", () => {
      test("show their value only on creation", async () => {
        const made = await token({ Labels: { a: "b" } });
        assert.match(made.Token, /^[0-9a-f]{64}$/);
        const { ID } = made;
        assert.deepEqual(await harness.client.readToken({ path: { id: ID } }), { ...made, Token: "" });
        const listed = (await harness.client.listTokens()).find((one) => one.ID === ID);
        assert.deepEqual(listed, { ...made, Token: "" });
        const everywhere = [
          await harness.request("GET /token"),
          await harness.request("GET /event?limit=1000"),
          await harness.request("GET /audit"),
          await harness.request("GET /account"),
        ];
        for (const { text } of everywhere) assert.ok(!text.includes(made.Token));
        const rows = await harness.brume.store.read.selectFrom("token").selectAll().where("id", "=", ID).execute();
        assert.equal(rows[0]?.hash, hash("sha256", made.Token), "only its hash is kept");
        assert.ok(!JSON.stringify(rows).includes(made.Token));
      });

      test("list each scope once, in the order of the contract", async () => {
        const { Scopes } = await token({ Scopes: ["DNS:Write", "server:read", "dns:write"] });
        assert.deepEqual(Scopes, ["server:read", "dns:write"]);
        assert.deepEqual((await token({ Scopes: "dns:read, network:read" })).Scopes, ["dns:read", "network:read"]);
        const form = await harness.request("POST /token", "Name=form&Scopes=dns%3Aread&Scopes=account%3Aadmin");
        assert.deepEqual((form.json as Token).Scopes, ["dns:read", "account:admin"]);
        await refused(token({ Scopes: [] }), "validation_failed", { "/Scopes": "too_short" });
        await refused(token({ Scopes: null }), "validation_failed", { "/Scopes": "field_required" });
        await refused(token({ Scopes: ["dns:read", "dns:all"] }), "validation_failed", {
          "/Scopes/1": "value_not_allowed",
        });
      });

      test("accept only consistent restrictions", async () => {
        const domain = await harness.domain();
        const bad: [object, Record<string, string>][] = [
          [{ DomainID: domain.ID, Scopes: ["dns:read", "server:read"] }, { "/Scopes/1": "value_not_allowed" }],
          [{ RecordPattern: "*" }, { "/RecordPattern": "fields_conflict" }],
          [{ RecordTypes: ["A"] }, { "/RecordTypes": "fields_conflict" }],
          [{ DomainID: domain.ID, RecordTypes: ["PTR"] }, { "/RecordTypes/0": "value_not_allowed" }],
          [{ DomainID: 99_999 }, { "/DomainID": "unknown_reference" }],
          [{ ProjectID: 99_999 }, { "/ProjectID": "unknown_reference" }],
          [{ ExpiresAt: "2020-01-01T00:00:00Z" }, { "/ExpiresAt": "out_of_range" }],
          [{ ExpiresAt: "tomorrow" }, { "/ExpiresAt": "type_mismatch" }],
          [
            { RateLimit: { Requests: 0, Seconds: 86_401 } },
            { "/RateLimit/Requests": "out_of_range", "/RateLimit/Seconds": "out_of_range" },
          ],
          [{ RateLimit: { Requests: 1 } }, { "/RateLimit/Seconds": "field_required" }],
          [{ RateLimit: 5 }, { "/RateLimit": "type_mismatch" }],
          [
            { AllowedFrom: ["10.0.0.0/33", "here"] },
            { "/AllowedFrom/0": "format_invalid", "/AllowedFrom/1": "format_invalid" },
          ],
        ];
        for (const [body, errors] of bad) await refused(token(body), "validation_failed", errors);
        const other = await harness.neighbour();
        await refused(token({ ProjectID: other.project, DomainID: domain.ID }), "validation_failed", {
          "/DomainID": "unknown_reference",
        });
        const shown = await token({
          DomainID: domain.ID,
          recordTypes: "a,txt",
          RecordPattern: "www",
          ExpiresAt: "2999-01-01",
        });
        assert.deepEqual(
          [shown.RecordTypes, shown.RecordPattern, shown.ExpiresAt],
          [["A", "TXT"], "www", "2999-01-01T00:00:00.000Z"],
        );
      });

      test("of any project are listed for administrators", async () => {
        const other = await harness.neighbour();
        const made = await token({ ProjectID: other.project, Name: "Second", Labels: { env: "x" } });
        const list = (query: object) => harness.client.listTokens({ query: { project: other.project, ...query } });
        assert.deepEqual(
          (await list({})).map(({ Name }) => Name),
          ["neighbour", "Second"],
        );
        assert.deepEqual(await list({ name: "second" }), [{ ...made, Token: "" }]);
        assert.deepEqual(
          (await list({ label: "!env" })).map(({ Name }) => Name),
          ["neighbour"],
        );
        assert.deepEqual(
          (await other.client.listTokens()).map(({ ID }) => ID),
          (await list({})).map(({ ID }) => ID),
        );
        const pages: number[] = [];
        for await (const page of harness.client.pages("listTokens", { query: { project: other.project, limit: 1 } }))
          pages.push(page.length);
        assert.deepEqual(pages, [1, 1]);
      });

      test("can read and delete themselves without a scope", async () => {
        const made = await token();
        const caller = harness.callerOf(made.Token);
        const path = { id: made.ID };
        assert.equal((await caller.client.readToken({ path })).ID, made.ID);
        await refused(caller.client.readToken({ path: { id: 1 } }), "scope_missing");
        await refused(caller.client.readToken({ path: { id: 99_999 } }), "scope_missing");
        await refused(caller.client.deleteToken({ path: { id: 1 } }), "scope_missing");
        await refused(caller.client.listTokens(), "scope_missing");
        await caller.client.deleteToken({ path });
        await refused(caller.client.readToken({ path }), "token_invalid");
        await refused(harness.client.readToken({ path }), "token_not_found");
        await refused(harness.client.deleteToken({ path }), "token_not_found");
        assert.ok((await token()).ID > made.ID, "an id is never used again");
      });

      test("are rejected immediately after deletion", async () => {
        const made = await token();
        const caller = harness.callerOf(made.Token);
        assert.equal((await caller.request("GET /dns")).status, 200);
        await harness.client.deleteToken({ path: { id: made.ID } });
        assert.equal((await caller.request("GET /dns")).code, "token_invalid");
        const scheme = await harness.request("GET /dns", undefined, { Authorization: `bEaReR ${harness.token}` });
        assert.equal(scheme.status, 200);
        for (const [Authorization, code] of [
          [`Bearer ${harness.token.toUpperCase()}`, "token_invalid"],
          [`Bearer ${harness.token}0`, "token_invalid"],
          ["Basic YTpi", "token_missing"],
          ["Bearer", "token_missing"],
          [harness.token, "token_missing"],
        ] as const)
          assert.equal((await harness.request("GET /dns", undefined, { Authorization })).code, code, Authorization);
      });

      test("of a dry run do not exist", async () => {
        const count = (await harness.client.listTokens()).length;
        const dry = await harness.client.createToken({ body: { Name: "dry", Scopes: ["dns:read"] } }, { dryRun: true });
        assert.deepEqual([dry.ID, dry.Token], [0, ""]);
        assert.equal((await harness.client.listTokens()).length, count);
      });
    });

    test("the last administrator token cannot be deleted", async () => {
      const all = await harness.client.readAccount();
      for (const { ID } of all.Projects)
        for (const { ID: id, Scopes } of await harness.client.listTokens({ query: { project: ID } }))
          if (id !== 1 && Scopes.includes("account:admin")) await harness.client.deleteToken({ path: { id } });
      await refused(harness.client.deleteToken({ path: { id: 1 } }), "last_admin_token");
      await refused(harness.client.deleteToken({ path: { id: 1 } }, { dryRun: true }), "last_admin_token");
      const soon = new Date(clock.now() + 3_600_000).toISOString();
      const passing = await token({ Scopes: ["account:admin"], ExpiresAt: soon });
      clock.pass(3600);
      await refused(harness.client.deleteToken({ path: { id: 1 } }), "last_admin_token");
      await harness.client.deleteToken({ path: { id: passing.ID } });
      const second = harness.callerOf((await token({ Scopes: scopes })).Token);
      await harness.client.deleteToken({ path: { id: 1 } });
      await refused(harness.client.readAccount(), "token_invalid");
      assert.deepEqual(await second.client.listTokens({ query: { name: "first" } }), []);
    });
  },
  { clock },
);
