/**
 * Restricted tokens, such as one for certificates (docs/spec.md#token, #restricted-tokens-stay-restricted): limited to one domain, owners
 * and record types. Objects outside the restriction do not exist for the token, in any operation.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { ApiError } from "@brume/api/client.ts";
import { contract, operationNames } from "@brume/api/contract.ts";
import type { Domain } from "@brume/api/dns.ts";
import type { Event } from "@brume/api/event.ts";
import type { Operation } from "@brume/api/operation.ts";
import { type Caller, onSqlite, refused } from "../support/harness.ts";

/** Text of every hidden record, and of nothing else. */
const mark = "hidden";

onSqlite("a restricted token", (harness) => {
  let domain: Domain;
  let other: Domain;
  let acme: Caller;
  let mine: number;
  let secret: number;

  const txt = (caller: Caller, Name: string, Text = "mine", DomainId = domain.ID) =>
    caller.client.createRecordTXT({ body: { DomainId, Name, Text } });
  const a = (caller: Caller, Name: string) =>
    caller.client.createRecordA({ body: { DomainId: domain.ID, Name, IP: "192.0.2.1" } });

  before(async () => {
    domain = await harness.domain();
    other = await harness.domain({ ZoneFile: `_acme-challenge TXT ${mark}\n` });
    secret = (await txt(harness, "www", mark)).ID;
    mine = (await txt(harness, "_acme-challenge.www")).ID;
    await harness.client.createRecordCNAME({
      body: { DomainId: domain.ID, MnemonicName: "_acme-challenge.alias", Name: `${mark}.net` },
    });
    await a(harness, "_acme-challenge.host");
    acme = await harness.as(["dns:write"], {
      DomainID: domain.ID,
      RecordPattern: "_acme-challenge*",
      RecordTypes: ["TXT"],
    });
  });

  test("sees one domain with the allowed records", async () => {
    const [only, ...more] = await acme.client.listDomains();
    assert.deepEqual([only?.ID, more.length], [domain.ID, 0]);
    assert.deepEqual(
      only?.LinkedRecords.map(({ ID }) => ID),
      [mine],
    );
    assert.equal((await acme.client.raw.listDomains()).headers.get("x-total-count"), "1");
    assert.deepEqual(
      (await acme.client.readDomain({ path: { id: domain.ID } })).LinkedRecords.map(({ ID }) => ID),
      [mine],
    );
    const text = await acme.client.text("readDomain", { path: { id: domain.ID } });
    assert.ok(text.includes("_acme-challenge.www") && !text.includes(mark));
    assert.deepEqual(await acme.client.listDomains({ query: { name: other.Name } }), []);
    assert.equal((await acme.client.readRecord({ path: { id: mine } })).ID, mine);
    for (const id of [secret, other.LinkedRecords[0]?.ID ?? 0, 99_999]) {
      const path = { id };
      await refused(acme.client.readRecord({ path }), "record_not_found");
      await refused(acme.client.updateRecordTXT({ path, body: { Text: "x" } }), "record_not_found");
      await refused(acme.client.updateRecordA({ path, body: {} }), "record_not_found");
      await refused(acme.client.deleteRecord({ path: { domainid: domain.ID, recordId: id } }), "record_not_found");
    }
  });

  test("can create, change and delete allowed records", async () => {
    const made = await txt(acme, `_ACME-challenge.api.${domain.Name}`);
    assert.deepEqual(await harness.lookUp(`_acme-challenge.api.${domain.Name}`, "TXT"), ["mine"]);
    const path = { id: made.ID };
    assert.equal((await acme.client.updateRecordTXT({ path, body: { Text: "new" } })).Text, '"new" ');
    const away = acme.client.updateRecordTXT({ path, body: { Name: "www" } });
    await refused(away, "token_restricted");
    await acme.client.deleteRecord({ path: { domainid: domain.ID, recordId: made.ID } });
    assert.equal(await harness.lookUp(`_acme-challenge.api.${domain.Name}`, "TXT"), "ENOTFOUND");
  });

  test("cannot create anything else", async () => {
    await refused(txt(acme, "www"), "token_restricted");
    await refused(txt(acme, "@"), "token_restricted");
    await refused(txt(acme, "x_acme-challenge"), "token_restricted");
    await refused(a(acme, "_acme-challenge"), "token_restricted");
    await refused(txt(acme, "_acme-challenge", "x", other.ID), "validation_failed", {
      "/DomainId": "unknown_reference",
    });
    await refused(acme.client.createDomain({ body: { Name: "new.example" } }), "token_restricted");
    const path = { id: domain.ID };
    await refused(acme.client.updateDomain({ path, body: { Labels: {} } }), "token_restricted");
    await refused(acme.client.deleteDomain({ path }), "token_restricted");
    await refused(acme.client.importZone({ path, body: { ZoneFile: "_acme-challenge TXT a\n" } }), "token_restricted");
    const [version] = await harness.client.listVersions({ path });
    await refused(acme.client.restoreVersion({ path, body: { Serial: version?.Serial ?? 0 } }), "token_restricted");
    for (const gone of [other.ID, 99_999]) {
      await refused(acme.client.deleteDomain({ path: { id: gone } }), "domain_not_found");
      await refused(acme.client.listVersions({ path: { id: gone } }), "domain_not_found");
    }
  });

  test("can use changesets of allowed records only", async () => {
    const change = (Changes: object[]) =>
      acme.client.changeRecords({ path: { id: domain.ID }, body: { Changes: Changes as never } });
    const good = { Op: "Create", TypeRecord: "TXT", Name: "_acme-challenge.set", Text: "mine" };
    await refused(change([good, { ...good, Name: "www" }]), "token_restricted");
    await refused(change([good, { ...good, TypeRecord: "MX", HostName: "a.b" }]), "token_restricted");
    await refused(change([{ Op: "Update", ID: mine, Name: "www" }]), "token_restricted");
    await refused(change([good, { Op: "Delete", ID: secret }]), "validation_failed", {
      "/Changes/1/ID": "unknown_reference",
    });
    const { Records } = await change([good, { Op: "Update", ID: mine, TTL: 60 }]);
    assert.equal(Records.length, 2);
    await change([{ Op: "Delete", ID: Records[0]?.After?.ID }]);
  });

  test("gets no hidden data from an error", async () => {
    const conflict = await refused(txt(acme, "_acme-challenge.alias"), "cname_conflict");
    assert.equal(conflict.detail, "A CNAME must be the only record at its name, but there is another record.");
    const alias = await harness.as(["dns:write"], { DomainID: domain.ID, RecordTypes: ["CNAME"] });
    const body = { DomainId: domain.ID, MnemonicName: "_acme-challenge.host", Name: "a.b" };
    assert.match(
      (await refused(alias.client.createRecordCNAME({ body }), "cname_conflict")).detail,
      /there is another record\.$/,
    );
    assert.match(
      (await refused(harness.client.createRecordCNAME({ body }), "cname_conflict")).detail,
      /there is record \d+, A at /,
    );
  });

  test("receives events of allowed records only", async () => {
    const first = (await harness.client.listEvents({ query: { limit: 1000 } })).at(-1)?.ID ?? 0;
    const made = await txt(harness, "_acme-challenge.heard");
    await txt(harness, "www", `${mark} too`);
    await harness.client.updateRecordTXT({ path: { id: made.ID }, body: { Name: "www", Text: `${mark} now` } });
    await harness.client.createDomain({ body: { Name: "unheard.example" } });
    const ownRecord = await txt(acme, "_acme-challenge.own");
    await acme.client.deleteRecord({ path: { domainid: domain.ID, recordId: ownRecord.ID } });
    await harness.client.updateDomain({ path: { id: domain.ID }, body: { Labels: { a: "b" } } });
    const response = await acme.client.raw.listEvents({ query: { after: first } });
    assert.deepEqual(
      response.answer.map((event: Event) => [event.Type, event.ResourceID]),
      [
        ["record.created", made.ID],
        ["record.created", ownRecord.ID],
        ["record.deleted", ownRecord.ID],
        ["domain.changed", domain.ID],
      ],
    );
    assert.equal(response.headers.get("x-total-count"), "4");
    const last = response.answer.at(-1)?.Data as Domain;
    assert.ok(last.LinkedRecords.length > 0);
    for (const record of last.LinkedRecords) assert.match(record.HostName, /^_acme-challenge/i);
    const stop = new AbortController();
    const streamed: number[] = [];
    for await (const event of acme.client.events({ after: first, signal: stop.signal })) {
      assert.ok("ID" in event);
      if (streamed.push(event.ID) === 4) stop.abort();
    }
    assert.deepEqual(
      streamed,
      response.answer.map(({ ID }) => ID),
    );
  });

  test("gets no hidden data from any operation", async () => {
    const ownTokens = [mine, (await acme.client.readAccount()).Token.ID];
    const ids = [domain.ID, other.ID, secret, mine];
    const bodies: Readonly<Record<string, object>> = {
      changeRecords: { Changes: [{ Op: "Update", ID: secret, TTL: 5 }] },
      importZone: { ZoneFile: "a A 192.0.2.1\n" },
      restoreVersion: { Serial: (await harness.client.readDomain({ path: { id: domain.ID } })).Serial },
      createDomain: { Name: "y.example" },
    };
    const before = JSON.stringify([
      await harness.client.readDomain({ path: { id: domain.ID } }),
      await harness.client.readDomain({ path: { id: other.ID } }),
    ]);
    let answers = 0;
    for (const name of operationNames) {
      const operation: Operation = contract[name];
      // A deletion of allowed records is permitted.
      const targetIds = /\{/.test(operation.path)
        ? ids.filter((id) => operation.method !== "DELETE" || !ownTokens.includes(id))
        : [0];
      for (const id of targetIds) {
        const target = operation.path.replace("{domainid}", String(domain.ID)).replaceAll(/\{\w+\}/g, String(id));
        const response = await acme.request(
          `${operation.method} ${target}`,
          operation.body ? (bodies[name] ?? {}) : undefined,
        );
        if (response.text.includes("openapi")) continue;
        answers += 1;
        assert.ok(!response.text.includes(mark), `${name} shows what is hidden: ${response.text}`);
        assert.ok(response.status === 200 || response.code !== "internal", `${name}: ${response.text}`);
      }
    }
    assert.ok(answers > operationNames.length);
    const after = JSON.stringify([
      await harness.client.readDomain({ path: { id: domain.ID } }),
      await harness.client.readDomain({ path: { id: other.ID } }),
    ]);
    assert.equal(after, before);
  });

  describe("patterns", () => {
    const cases: [pattern: string, owner: string, fits: boolean][] = [
      ["@", "@", true],
      ["@", "www", false],
      ["www", "WWW", true],
      ["WWW", "www", true],
      ["www", "a.www", false],
      ["*", "@", true],
      ["*", "a.b.c", true],
      ["w?w", "wow", true],
      ["w?w", "ww", false],
      ["*.lab", "x.lab", true],
      ["*.lab", "lab", false],
      ["бюро*", "бюро-1", true],
      ["xn--*", "бюро", true],
      ["a.c", "abc", false],
    ];
    for (const [RecordPattern, owner, fits] of cases)
      test(`${RecordPattern} ${fits ? "matches" : "does not match"} ${owner}`, async () => {
        const caller = await harness.as(["dns:write"], { DomainID: domain.ID, RecordPattern });
        const made = txt(caller, owner, `pattern ${RecordPattern}`);
        if (!fits) {
          await refused(made, "token_restricted");
          return;
        }
        await caller.client.deleteRecord({ path: { domainid: domain.ID, recordId: (await made).ID } });
      });

    test("of services match the parent name", async () => {
      const caller = await harness.as(["dns:write"], { DomainID: domain.ID, RecordPattern: "chat" });
      const srv = { DomainId: domain.ID, Service: "xmpp", Proto: "tcp", Port: 1, Target: "a.b" };
      const made = await caller.client.createRecordSRV({ body: { ...srv, Name: "chat" } });
      await refused(caller.client.createRecordSRV({ body: srv }), "token_restricted");
      await caller.client.deleteRecord({ path: { domainid: domain.ID, recordId: made.ID } });
    });
  });

  test("can be restricted to types only, or to the domain only", async () => {
    const types = await harness.as(["dns:read"], { DomainID: domain.ID, RecordTypes: ["a", "CNAME"] });
    const seen = (await types.client.readDomain({ path: { id: domain.ID } })).LinkedRecords;
    assert.deepEqual(new Set(seen.map(({ TypeRecord }) => TypeRecord)), new Set(["A", "CNAME"]));
    await refused(types.client.createRecordA({ body: { DomainId: domain.ID, IP: "192.0.2.1" } }), "scope_missing");
    const wholeDomain = await harness.as(["dns:write"], { DomainID: domain.ID });
    assert.equal((await wholeDomain.client.listDomains()).length, 1);
    const all = await harness.client.readDomain({ path: { id: domain.ID } });
    assert.deepEqual(
      (await wholeDomain.client.readDomain({ path: { id: domain.ID } })).LinkedRecords,
      all.LinkedRecords,
    );
    await refused(wholeDomain.client.deleteDomain({ path: { id: domain.ID } }), "token_restricted");
  });

  test("has idempotency keys of its own, and gets no response to another token", async () => {
    const options = { idempotencyKey: "shared-key" };
    const body = { DomainId: domain.ID, Name: "_acme-challenge.key", Text: "key" };
    const first = await harness.client.createRecordTXT({ body }, options);
    await refused(acme.client.createRecordTXT({ body }, options), "record_exists");
    const other = { body: { ...body, Text: "other" } };
    const own = await acme.client.createRecordTXT(other, options);
    assert.equal((await acme.client.createRecordTXT(other, options)).ID, own.ID);
    await acme.client.deleteRecord({ path: { domainid: domain.ID, recordId: own.ID } });
    await harness.client.deleteRecord({ path: { domainid: domain.ID, recordId: first.ID } });
  });

  test("sees nothing after its domain is deleted", async () => {
    const passing = await harness.domain();
    const caller = await harness.as(["dns:write"], { DomainID: passing.ID });
    await harness.client.deleteDomain({ path: { id: passing.ID } });
    assert.deepEqual(await caller.client.listDomains(), []);
    await refused(caller.client.readDomain({ path: { id: passing.ID } }), "domain_not_found");
    const again = await harness.client.createDomain({ body: { Name: passing.Name } });
    await refused(caller.client.readDomain({ path: { id: again.ID } }), "domain_not_found");
    const error = await caller.client
      .createRecordA({ body: { DomainId: again.ID, IP: "192.0.2.1" } })
      .catch((reason: unknown) => reason);
    assert.ok(error instanceof ApiError && error.code === "validation_failed");
  });
});
