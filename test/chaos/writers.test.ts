/**
 * Concurrent requests of which only some can succeed: docs/spec.md#stored-records-are-valid-dns, #quotas-hold-under-concurrency and
 * `If-Match`, on both databases.
 */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { ApiError, type Client } from "@brume/api/client.ts";
import { databases } from "../support/databases.ts";
import { runsOf } from "../support/random.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

const writerCount = runsOf(200, 60);

/** Counts the results of the calls: `ok`, or the code of the error. */
async function countResults(calls: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const ends = await Promise.allSettled(calls);
  const counts: Record<string, number> = {};
  for (const end of ends) {
    if (end.status === "rejected" && !(end.reason instanceof ApiError)) throw end.reason;
    const name = end.status === "fulfilled" ? "ok" : (end.reason as ApiError).code;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

const times = (count: number, call: (index: number) => Promise<unknown>): Promise<unknown>[] =>
  Array.from({ length: count }, (_, index) => call(index));

for (const kind of databases)
  suite(`${kind}: many writers`, () => {
    let brume: TestService;
    let client: Client;
    let neighbour: Client;
    let domain: number;

    before(async () => {
      brume = await createTestService(kind);
      client = brume.client;
      neighbour = await brume.neighbour();
      domain = (await client.createDomain({ body: { Name: "crowd.test" } })).ID;
    });
    after(() => brume.close());

    test("one of equal records is created", async () => {
      const body = { DomainId: domain, Name: "same", IP: "192.0.2.1" };
      const counts = await countResults(times(writerCount, () => client.createRecordA({ body })));
      assert.deepEqual(counts, { ok: 1, record_exists: writerCount - 1 });
      const { LinkedRecords } = await client.readDomain({ path: { id: domain } });
      assert.equal(LinkedRecords.filter(({ HostName }) => HostName === "same.crowd.test.").length, 1);
      assert.deepEqual(await brume.resolver.resolve4("same.crowd.test"), ["192.0.2.1"]);
    });

    test("a name gets aliases or addresses, never both", async () => {
      const counts = await countResults(
        times(writerCount, (index) =>
          index % 2 === 0
            ? client.createRecordA({ body: { DomainId: domain, Name: "mixed", IP: `10.0.0.${index}` } })
            : client.createRecordCNAME({
                body: { DomainId: domain, MnemonicName: "mixed", Name: `target${index}.example.` },
              }),
        ),
      );
      const { LinkedRecords } = await client.readDomain({ path: { id: domain } });
      const mixedRecords = LinkedRecords.filter(({ PunyName }) => PunyName === "mixed.crowd.test.");
      const types = new Set(mixedRecords.map(({ TypeRecord }) => TypeRecord));
      assert.equal(types.size, 1);
      assert.equal(mixedRecords.length, types.has("CNAME") ? 1 : writerCount / 2);
      assert.deepEqual(counts, { ok: mixedRecords.length, cname_conflict: writerCount - mixedRecords.length });
    });

    test("with one idempotency key one change is done, and the others repeat it or are busy", async () => {
      const { LinkedRecords: former } = await client.readDomain({ path: { id: domain } });
      const body = { DomainId: domain, Name: "keyed", IP: "192.0.2.7" };
      const counts = await countResults(
        times(writerCount, () => client.createRecordA({ body }, { idempotencyKey: "once" })),
      );
      assert.equal((counts["ok"] ?? 0) + (counts["idempotency_key_busy"] ?? 0), writerCount);
      assert.ok((counts["ok"] ?? 0) >= 1);
      const { LinkedRecords } = await client.readDomain({ path: { id: domain } });
      assert.equal(LinkedRecords.length, former.length + 1);
    });

    test("a quota of ten domains allows ten domains", async () => {
      const project = await client.createProject({ body: { Name: "ten", Quotas: { Domains: 10 } } });
      const ten = await brume.as(["dns:write"], { ProjectID: project.ID });
      const counts = await countResults(
        times(writerCount, (index) => ten.createDomain({ body: { Name: `ten${index}.test` } })),
      );
      assert.deepEqual(counts, { ok: 10, quota_exceeded: writerCount - 10 });
      assert.equal((await ten.listDomains()).length, 10);
    });

    test("a quota of ten records allows ten records, single or in changesets", async () => {
      const project = await client.createProject({ body: { Name: "few", Quotas: { RecordsPerDomain: 10 } } });
      const few = await brume.as(["dns:write"], { ProjectID: project.ID });
      const { ID } = await few.createDomain({ body: { Name: "few.test" } });
      const counts = await countResults(
        times(writerCount, (index) => {
          const body = { DomainId: ID, Name: `r${index}`, IP: "192.0.2.1" };
          if (index % 2 === 0) return few.createRecordA({ body });
          const change = { Op: "Create", TypeRecord: "A", ...body } as const;
          return few.changeRecords({ path: { id: ID }, body: { Changes: [change] } });
        }),
      );
      assert.deepEqual(counts, { ok: 10, quota_exceeded: writerCount - 10 });
      assert.equal((await few.readDomain({ path: { id: ID } })).LinkedRecords.length, 10);
    });

    test("a quota of ten tokens allows ten tokens", async () => {
      const project = await client.createProject({ body: { Name: "tokens", Quotas: { Tokens: 10 } } });
      const body = { Name: "one of ten", Scopes: ["dns:read"] as const, ProjectID: project.ID };
      const counts = await countResults(
        times(writerCount, () => client.createToken({ body: { ...body, Scopes: [...body.Scopes] } })),
      );
      assert.deepEqual(counts, { ok: 10, quota_exceeded: writerCount - 10 });
    });

    test("a domain name belongs to one project", async () => {
      const both = [client, neighbour];
      const ends = await Promise.allSettled(
        times(writerCount, (index) => (both[index % 2] as Client).createDomain({ body: { Name: "wanted.test" } })),
      );
      const codes = ends.map((end) => (end.status === "fulfilled" ? "ok" : (end.reason as ApiError).code));
      const winner = codes.indexOf("ok") % 2;
      assert.equal(codes.filter((code) => code === "ok").length, 1);
      codes.forEach((code, index) => {
        if (code !== "ok") assert.equal(code, index % 2 === winner ? "domain_exists" : "domain_not_available");
      });
    });

    test("parents and subdomains never belong to two projects", async () => {
      const names = ["x.deep.test", "deep.test", "a.x.deep.test", "b.a.x.deep.test"];
      const both = [client, neighbour];
      await Promise.allSettled(
        times(writerCount, (index) =>
          (both[index % 2] as Client).createDomain({ body: { Name: names[(index >> 1) % names.length] as string } }),
        ),
      );
      const owners = await Promise.all(both.map((each) => each.listDomains({ query: { name: "*deep.test" } })));
      assert.deepEqual(
        owners.map((list) => list.length).sort((a, b) => a - b),
        [0, names.length],
      );
    });

    test("one of the edits that expect the same version succeeds", async () => {
      const made = await client.raw.createRecordA({ body: { DomainId: domain, Name: "edited", IP: "10.1.0.0" } });
      assert.ok(made.etag !== null);
      const ifMatch = made.etag;
      const edit = (index: number) =>
        client.updateRecordA({ path: { id: made.answer.ID }, body: { IP: `10.1.1.${index}` } }, { ifMatch });
      assert.deepEqual(await countResults(times(writerCount, edit)), { ok: 1, etag_mismatch: writerCount - 1 });
    });

    test("one of concurrent deletions succeeds", async () => {
      const { ID } = await client.createRecordA({ body: { DomainId: domain, Name: "gone", IP: "10.2.0.0" } });
      const path = { domainid: domain, recordId: ID };
      assert.deepEqual(await countResults(times(writerCount, () => client.deleteRecord({ path }))), {
        ok: 1,
        record_not_found: writerCount - 1,
      });
    });

    test("a domain that is deleted while records are created leaves none", async () => {
      const { ID } = await client.createDomain({ body: { Name: "short.test" } });
      const calls = times(writerCount, (index) =>
        index === writerCount / 2
          ? client.deleteDomain({ path: { id: ID } })
          : client.createRecordA({ body: { DomainId: ID, Name: `r${index}`, IP: "10.3.0.0" } }),
      );
      const { ok = 0, validation_failed = 0, ...others } = await countResults(calls);
      assert.deepEqual(others, {});
      assert.equal(ok + validation_failed, writerCount);
      const left = await brume.store.read.selectFrom("record").select("id").where("domain_id", "=", ID).execute();
      assert.deepEqual(left, []);
      await assert.rejects(brume.resolver.resolve4("r0.short.test"), { code: "EREFUSED" });
    });

    test("the serial counts every change", async () => {
      const { Serial } = await client.readDomain({ path: { id: domain } });
      const versions = [];
      for await (const page of client.pages("listVersions", { path: { id: domain } })) versions.push(...page);
      assert.equal(versions[0]?.Serial, Serial);
      assert.equal(new Set(versions.map((version) => version.Serial)).size, versions.length);
      assert.equal((await brume.resolver.resolveSoa("crowd.test")).serial, Serial);
    });
  });
