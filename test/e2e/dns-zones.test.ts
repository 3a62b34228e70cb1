/** Many records at once (docs/spec.md#changesets-zone-files-and-history): atomic changesets, zone files, history, restore. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ChangeInput, ChangesetResult, Domain } from "@brume/api/dns.ts";
import type { Event } from "@brume/api/event.ts";
import { onSqliteFirst, refused } from "../support/harness.ts";

onSqliteFirst("zones", (harness) => {
  const change = (domain: Domain, Changes: readonly ChangeInput[], options = {}) =>
    harness.client.changeRecords({ path: { id: domain.ID }, body: { Changes: [...Changes] } }, options);
  const lines = async (domain: Domain) =>
    (await harness.client.readDomain({ path: { id: domain.ID } })).LinkedRecords.map(
      (one) => one.CanonicalDescription,
    ).sort();
  const serialOf = async (domain: Domain) => (await harness.client.readDomain({ path: { id: domain.ID } })).Serial;
  const address = (Name: string, IP: string, more = {}): ChangeInput => ({
    Op: "Create",
    TypeRecord: "A",
    Name,
    IP,
    ...more,
  });
  const idOf = (result: ChangesetResult, index: number) => result.Records[index]?.After?.ID ?? 0;
  const counts = ({ Created, Updated, Deleted }: ChangesetResult) => [Created, Updated, Deleted];

  describe("a changeset", () => {
    test("increments the serial once and emits an event per record", async () => {
      const domain = await harness.domain();
      const first = await change(domain, [
        address("a", "192.0.2.1", { Labels: { x: "y" } }),
        address("b", "192.0.2.2"),
      ]);
      assert.deepEqual(counts(first), [2, 0, 0]);
      const [a, b] = [idOf(first, 0), idOf(first, 1)];
      const second = await harness.client.raw.changeRecords({
        path: { id: domain.ID },
        body: {
          Changes: [
            { Op: "Update", ID: a, IP: "192.0.2.9", TTL: 60 },
            { Op: "Delete", ID: b },
            { Op: "Create", TypeRecord: "TXT", Text: "new", Name: "b" },
          ],
        },
      });
      const { Serial, Records } = second.answer;
      assert.deepEqual(counts(second.answer), [1, 1, 1]);
      assert.ok(Serial > first.Serial);
      assert.equal(await serialOf(domain), Serial);
      assert.deepEqual(
        Records.map(({ Op, Before, After }) => [Op, Before?.CanonicalDescription, After?.CanonicalDescription]),
        [
          ["Update", `a.${domain.Name}. 3600 IN A 192.0.2.1`, `a.${domain.Name}. 60 IN A 192.0.2.9`],
          ["Delete", `b.${domain.Name}. 3600 IN A 192.0.2.2`, undefined],
          ["Create", undefined, `b.${domain.Name}. 3600 IN TXT "new"`],
        ],
      );
      assert.deepEqual(Records[0]?.After?.Labels, { x: "y" });
      assert.deepEqual(await harness.lookUp(`a.${domain.Name}`, "A"), ["192.0.2.9"]);
      assert.equal(await harness.lookUp(`b.${domain.Name}`, "A"), "ENODATA");
      const events = (await harness.client.listEvents({ query: { limit: 1000 } })).filter(
        (event) => event.RequestID === second.requestId,
      );
      assert.deepEqual(
        events.map((event: Event) => [event.Type, event.ResourceID, event.ParentID, event.Data]),
        [
          ["record.changed", a, domain.ID, Records[0]?.After],
          ["record.deleted", b, domain.ID, null],
          ["record.created", Records[2]?.After?.ID, domain.ID, Records[2]?.After],
        ],
      );
    });
    test("is validated against the resulting zone, not step by step", async () => {
      const domain = await harness.domain();
      const made = await change(domain, [
        address("www", "192.0.2.1"),
        address("x", "192.0.2.1"),
        address("x", "192.0.2.2"),
      ]);
      const place = [
        { Op: "Create", TypeRecord: "CNAME", MnemonicName: "www", Name: "@" },
        { Op: "Delete", ID: idOf(made, 0) },
      ] as const;
      assert.deepEqual(counts(await change(domain, place)), [1, 0, 1]);
      const swap = [
        { Op: "Update", ID: idOf(made, 1), IP: "192.0.2.2" },
        { Op: "Update", ID: idOf(made, 2), IP: "192.0.2.1" },
      ] as const;
      assert.deepEqual(counts(await change(domain, swap)), [0, 2, 0]);
      const cut = [
        { Op: "Delete", ID: idOf(made, 1) },
        { Op: "Delete", ID: idOf(made, 2) },
        { Op: "Create", TypeRecord: "NS", HostName: "x", Name: "ns.x" },
        address("ns.x", "192.0.2.3"),
      ] as const;
      await change(domain, cut);
      assert.deepEqual(await lines(domain), [
        `ns.x.${domain.Name}. 3600 IN A 192.0.2.3`,
        `www.${domain.Name}. 3600 IN CNAME @`,
        `x.${domain.Name}. 3600 IN NS ns.x.`,
      ]);
    });
    test("reports all errors at once, each by its element, and changes nothing", async () => {
      const domain = await harness.domain();
      const other = await harness.domain({ Ip: "192.0.2.1" });
      const before = await harness.client.readDomain({ path: { id: domain.ID } });
      const made = await change(domain, [address("a", "192.0.2.1"), address("b", "192.0.2.1")]);
      const [a, b] = [idOf(made, 0), idOf(made, 1)];
      const response = await harness.request(`POST /dns/${domain.ID}/changeset`, {
        Changes: [
          address("good", "192.0.2.1"),
          address("bad", "192.0.2"),
          { op: "create", typeRecord: "txt" },
          { Op: "Update" },
          { Op: "Update", ID: other.LinkedRecords[0]?.ID, TTL: 5 },
          { Op: "Update", ID: a, TypeRecord: "TXT" },
          { Op: "Delete", ID: b },
          { Op: "Delete", ID: b },
          { Op: "Create", IP: "192.0.2.1" },
          address("x", "192.0.2.1", { DomainId: other.ID }),
          address("far.away.", "192.0.2.1"),
        ],
      });
      assert.equal(response.code, "validation_failed");
      const problem = response.json as { errors: { pointer: string; code: string }[]; ModelState: object };
      assert.deepEqual(
        problem.errors.map(({ pointer, code }) => [pointer.replace("/Changes/", ""), code]),
        [
          ["1/IP", "format_invalid"],
          ["2/Text", "field_required"],
          ["3/ID", "field_required"],
          ["4/ID", "unknown_reference"],
          ["5/TypeRecord", "record_type_mismatch"],
          ["7/ID", "fields_conflict"],
          ["8/TypeRecord", "field_required"],
          ["9/DomainId", "record_in_other_domain"],
          ["10/Name", "name_outside_domain"],
        ],
      );
      assert.deepEqual(Object.keys(problem.ModelState)[0], "Changes[1].IP");
      const shape = await harness.request(`POST /dns/${domain.ID}/changeset`, {
        Changes: [{}, { Op: "Move" }, address("a", "192.0.2.2", { TTL: -1 })],
      });
      assert.deepEqual(
        (shape.json as typeof problem).errors.map(({ pointer, code }) => [pointer, code]),
        [
          ["/Changes/0/Op", "field_required"],
          ["/Changes/1/Op", "value_not_allowed"],
          ["/Changes/2/TTL", "out_of_range"],
        ],
      );
      assert.equal(await serialOf(domain), made.Serial);
      assert.ok(made.Serial > before.Serial);
    });
    test("that breaks a rule is rejected with the element", async () => {
      const domain = await harness.domain();
      const alias: ChangeInput = { Op: "Create", TypeRecord: "CNAME", MnemonicName: "w", Name: "a.b" };
      const one = change(domain, [address("w", "192.0.2.1"), alias]);
      await refused(one, "cname_conflict", { "/Changes/1/MnemonicName": "cname_conflict" });
      const twins = change(domain, [address("w", "192.0.2.1"), address("w", "192.0.2.1", { TTL: 5 })]);
      const twin = await refused(twins, "record_exists", { "/Changes/1": "record_exists" });
      assert.deepEqual(twin.problem?.ModelState, {
        "Changes[1]": ["Подобная запись для данного домена уже существует"],
      });
      const both = change(domain, [address("w", "192.0.2.1"), alias, { ...alias, MnemonicName: "@" }]);
      await refused(both, "cname_conflict", {
        "/Changes/1/MnemonicName": "cname_conflict",
        "/Changes/2/MnemonicName": "cname_at_apex",
      });
      assert.deepEqual(await lines(domain), []);
      assert.equal(await serialOf(domain), domain.Serial);
    });
    test("has 1 to 10,000 changes", async () => {
      const domain = await harness.domain();
      await refused(change(domain, []), "validation_failed", { "/Changes": "too_short" });
      await refused(harness.client.changeRecords({ path: { id: domain.ID }, body: {} as never }), "validation_failed", {
        "/Changes": "field_required",
      });
      const many = (count: number) => Array.from({ length: count }, (_, i) => address(`h${i}`, "192.0.2.1"));
      await refused(change(domain, many(10_001)), "validation_failed", { "/Changes": "too_long" });
      const result = await change(domain, many(10_000), { wait: 60 });
      assert.deepEqual([result.Created, result.Records.length], [10_000, 10_000]);
      assert.deepEqual(await harness.lookUp(`h9999.${domain.Name}`, "A"), ["192.0.2.1"]);
      await refused(change(domain, [address("one-more", "192.0.2.1")]), "quota_exceeded");
      const swap = await change(domain, [address("one-more", "192.0.2.1"), { Op: "Delete", ID: idOf(result, 17) }]);
      assert.deepEqual(counts(swap), [1, 0, 1]);
      await harness.client.deleteDomain({ path: { id: domain.ID } });
    });
    test("that changes nothing creates no version", async () => {
      const domain = await harness.domain({ Ip: "192.0.2.1" });
      const record = domain.LinkedRecords[0];
      assert.ok(record);
      const result = await change(domain, [{ Op: "Update", ID: record.ID, IP: record.IP, TTL: record.TTL }]);
      assert.deepEqual(result, { Serial: domain.Serial, Created: 0, Updated: 0, Deleted: 0, Records: [] });
      assert.equal((await harness.client.listVersions({ path: { id: domain.ID } })).length, 1);
    });

    test("can be previewed with a dry run", async () => {
      const domain = await harness.domain({ Ip: "192.0.2.1" });
      const ID = domain.LinkedRecords[0]?.ID ?? 0;
      const Changes: ChangeInput[] = [address("new", "192.0.2.2"), { Op: "Update", ID, TTL: 60 }];
      const preview = await change(domain, Changes, { dryRun: true });
      assert.deepEqual(
        preview.Records.map(({ After }) => After?.ID),
        [0, ID],
      );
      assert.deepEqual(await harness.client.readDomain({ path: { id: domain.ID } }), domain);
      const real = await change(domain, Changes);
      const like = ({ Records }: ChangesetResult) =>
        Records.map((one) => ({ ...one, After: { ...one.After, ID: 0, DateCreate: "" } }));
      assert.deepEqual(like(real), like(preview));
    });

    test("is stored compactly, and a repeat returns the same bytes", async () => {
      const domain = await harness.domain();
      const body = { Changes: Array.from({ length: 200 }, (_, i) => address(`h${i}`, `192.0.2.${i}`)) };
      const send = () => harness.request(`POST /dns/${domain.ID}/changeset`, body, { "Idempotency-Key": domain.Name });
      const [first, again] = [await send(), await send()];
      assert.equal(again.headers.get("idempotency-replayed"), "true");
      assert.equal(again.text, first.text);
      const { read } = harness.brume.store;
      const key = await read.selectFrom("idempotency").select("sealed").where("key", "=", domain.Name).execute();
      const version = await read
        .selectFrom("domain_version")
        .select("changes")
        .where("domain_id", "=", domain.ID)
        .where("serial", "=", (first.json as ChangesetResult).Serial)
        .execute();
      const fullLength = first.text.length;
      assert.ok((key[0]?.sealed.length ?? fullLength) < fullLength / 8);
      assert.doesNotMatch(version[0]?.changes ?? "", /"(?:node|domain_id|serial|version)":/);
    });

    test("can require a version of the domain with If-Match", async () => {
      const domain = await harness.domain();
      const { etag } = await harness.client.raw.readDomain({ path: { id: domain.ID } });
      await change(domain, [address("a", "192.0.2.1")], { ifMatch: etag });
      await refused(change(domain, [address("b", "192.0.2.1")], { ifMatch: etag }), "etag_mismatch");
      assert.equal((await lines(domain)).length, 1);
    });
  });

  describe("a zone file", () => {
    const put = (domain: Domain, ZoneFile: string, Mode?: "Merge" | "Replace", options = {}) =>
      harness.client.importZone({ path: { id: domain.ID }, body: { ZoneFile, ...(Mode && { Mode }) } }, options);

    test("can be merged: missing records are added, TTLs are updated, nothing is deleted", async () => {
      const domain = await harness.domain();
      await change(domain, [address("keep", "192.0.2.1"), address("ttl", "192.0.2.1", { Labels: { a: "b" } })]);
      const result = await put(
        domain,
        "ttl 60 IN A 192.0.2.1\nnew 60 IN A 192.0.2.2\n@ IN SOA a. b. 1 2 3 4 5\n@ NS x.\n@ CAA 0 issue ca.\n",
      );
      assert.deepEqual(counts(result), [1, 1, 0]);
      assert.deepEqual(result.Records.find(({ Op }) => Op === "Update")?.After?.Labels, { a: "b" });
      assert.deepEqual(await lines(domain), [
        `keep.${domain.Name}. 3600 IN A 192.0.2.1`,
        `new.${domain.Name}. 60 IN A 192.0.2.2`,
        `ttl.${domain.Name}. 60 IN A 192.0.2.1`,
      ]);
      const again = await put(domain, "ttl 60 IN A 192.0.2.1\n", "Merge");
      assert.deepEqual([again.Serial, counts(again)], [result.Serial, [0, 0, 0]]);
    });

    test("can replace all records except the automatic NS set at the apex", async () => {
      const domain = await harness.domain();
      const top: ChangeInput = { Op: "Create", TypeRecord: "NS", Name: "ns.example.net" };
      await change(domain, [address("gone", "192.0.2.1"), address("same", "192.0.2.1", { TTL: 60 }), top]);
      const response = await harness.request(`PUT /dns/${domain.ID}/zonefile`, {
        zonefile: `same 60 A 192.0.2.1\n@ NS other.\ngone CNAME same\n`,
        mode: "REPLACE",
      });
      assert.deepEqual(counts(response.json as ChangesetResult), [1, 0, 1]);
      assert.deepEqual(await lines(domain), [
        "@ 3600 IN NS ns.example.net.",
        `gone.${domain.Name}. 60 IN CNAME same.${domain.Name}.`,
        `same.${domain.Name}. 60 IN A 192.0.2.1`,
      ]);
      const empty = await put(domain, "; nothing\n", "Replace");
      assert.deepEqual(counts(empty), [0, 0, 2]);
    });

    test("that is invalid or breaks a rule is rejected with the line numbers", async () => {
      const domain = await harness.domain();
      await change(domain, [address("www", "192.0.2.1")]);
      const at = async (promise: Promise<unknown>) => {
        const { errors } = await refused(promise, "zone_file_invalid");
        return errors.map(({ pointer, detail }) => `${pointer} ${detail.split(":")[0]}`);
      };
      assert.deepEqual(await at(put(domain, "a A 1\nb A 192.0.2.1\nc QQ x\nd.org. A 192.0.2.1\n")), [
        "/ZoneFile line 1",
        "/ZoneFile line 3",
        "/ZoneFile line 4",
      ]);
      assert.deepEqual(await at(put(domain, "a A 192.0.2.1\n\nwww CNAME a\n", "Merge")), ["/ZoneFile line 3"]);
      assert.deepEqual(await at(put(domain, "$INCLUDE /etc/passwd\n")), ["/ZoneFile line 1"]);
      assert.deepEqual(counts(await put(domain, "a A 192.0.2.1\n\nwww CNAME a\n", "Replace")), [2, 0, 1]);
      await refused(put(domain, "a A 192.0.2.1", "Both" as never), "validation_failed", {
        "/Mode": "value_not_allowed",
      });
    });

    test("counts against the quota, and can be previewed with a dry run", async () => {
      const other = await harness.neighbour({ RecordsPerDomain: 2 });
      const { ID } = await other.client.createDomain({ body: { Name: "quota.zone" } });
      const body = { ZoneFile: "$GENERATE 1-3 h$ A 192.0.2.$\n" };
      await refused(other.client.importZone({ path: { id: ID }, body }), "quota_exceeded");
      await refused(other.client.createDomain({ body: { Name: "more.zone", ...body } }), "quota_exceeded");
      const dry = await other.client.importZone(
        { path: { id: ID }, body: { ZoneFile: "h A 192.0.2.1\n" } },
        { dryRun: true },
      );
      assert.equal(dry.Created, 1);
      assert.deepEqual((await other.client.readDomain({ path: { id: ID } })).LinkedRecords, []);
    });
  });

  describe("history", () => {
    test("lists every serial, newest first, with token and change", async () => {
      const domain = await harness.domain({ Ip: "192.0.2.1" });
      const path = { id: domain.ID };
      const first = await change(domain, [address("a", "192.0.2.1")]);
      await harness.client.updateRecordA({ path: { id: idOf(first, 0) }, body: { Labels: { only: "labels" } } });
      const edit = await harness.client.raw.updateRecordA({ path: { id: idOf(first, 0) }, body: { TTL: 60 } });
      const versions = await harness.client.raw.listVersions({ path });
      assert.deepEqual(
        versions.answer.map(({ Serial, TokenID, Changes }) => [Serial, TokenID, Changes.map(({ Op }) => Op)]),
        [
          [await serialOf(domain), 1, ["Update"]],
          [first.Serial, 1, ["Create"]],
          [domain.Serial, 1, ["Create"]],
        ],
      );
      const [newest, , oldest] = versions.answer;
      assert.equal(newest?.RequestID, edit.requestId);
      assert.deepEqual(newest?.Changes[0]?.After, edit.answer);
      assert.equal(newest?.Changes[0]?.Before?.TTL, 3600);
      assert.deepEqual(oldest?.Changes, [{ Op: "Create", Before: null, After: domain.LinkedRecords[0] }]);
      assert.equal(oldest?.Date, domain.DateCreate);
      assert.equal(versions.headers.get("x-total-count"), "3");
      const paged: number[] = [];
      for await (const page of harness.client.pages("listVersions", { path, query: { limit: 2 } }))
        paged.push(page.length);
      assert.deepEqual(paged, [2, 1]);
    });

    test("can restore any serial, as a new change", async () => {
      const domain = await harness.domain();
      const path = { id: domain.ID };
      const before = await change(domain, [
        address("a", "192.0.2.1", { Labels: { x: "y" } }),
        address("b", "192.0.2.1"),
        address("c", "192.0.2.1"),
      ]);
      const wanted = await lines(domain);
      const [a, b] = [idOf(before, 0), idOf(before, 1)];
      await change(domain, [
        { Op: "Delete", ID: a },
        { Op: "Update", ID: b, IP: "192.0.2.2" },
        address("d", "192.0.2.1"),
      ]);
      await change(domain, [
        { Op: "Create", TypeRecord: "CNAME", MnemonicName: "a", Name: "b" },
        { Op: "Delete", ID: b },
      ]);
      const now = await serialOf(domain);
      const body = { Serial: before.Serial };
      const preview = await harness.client.restoreVersion({ path, body }, { dryRun: true });
      assert.equal(await serialOf(domain), now);
      const result = await harness.client.restoreVersion({ path, body });
      assert.deepEqual(counts(result), counts(preview));
      assert.ok(result.Serial > now);
      assert.deepEqual(await lines(domain), wanted);
      assert.deepEqual(await harness.lookUp(`b.${domain.Name}`, "A"), ["192.0.2.1"]);
      const { LinkedRecords } = await harness.client.readDomain({ path });
      const restored = LinkedRecords.find((one) => one.HostName === `a.${domain.Name}.`);
      assert.deepEqual(restored?.Labels, { x: "y" });
      assert.ok(restored && restored.ID > a, "an id is never used again");
      const again = await harness.client.restoreVersion({ path, body: { Serial: result.Serial } });
      assert.deepEqual([again.Serial, counts(again)], [result.Serial, [0, 0, 0]]);
      const empty = await harness.client.restoreVersion({ path, body: { Serial: domain.Serial } });
      assert.deepEqual([counts(empty), await lines(domain)], [[0, 0, 3], []]);
    });

    test("contains only the serials of this domain", async () => {
      const [domain, other] = [await harness.domain(), await harness.domain()];
      await change(other, [address("a", "192.0.2.1")]);
      await change(other, [address("b", "192.0.2.1")]);
      for (const Serial of [0, 1, domain.Serial + 1, (await serialOf(other)) + 5])
        await refused(
          harness.client.restoreVersion({ path: { id: domain.ID }, body: { Serial } }),
          "validation_failed",
          {
            "/Serial": "unknown_reference",
          },
        );
      await refused(harness.client.restoreVersion({ path: { id: 99_999 }, body: { Serial: 1 } }), "domain_not_found");
    });
  });
});
