/** Records that are created at the same time: they share commits, and give the same result as one after the other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { onEveryDatabase, refused } from "../support/harness.ts";
import { listSent } from "../support/roundtrips.ts";

// A serial is the time, or one more than the last if that is larger: at one time, the serials are consecutive.
const start = Date.now();
const clock = { now: () => start };
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** Matches the statements of commits that only create records: other writes name other tables. */
const ofRecords = /^begin|^commit$|^select pg_advisory|"domain"|"record"|'record'|"domain_version"|"event"|"audit"/;

onEveryDatabase(
  "records created at the same time",
  (harness) => {
    test("have a serial, a version and an event each, and are served", async () => {
      const { client } = harness;
      const domain = await harness.domain();
      const records = await Promise.all(
        range(40).map((index) =>
          client.createRecordA({
            body: { DomainId: domain.ID, Name: `h${index}`, IP: "192.0.2.1", Labels: { n: `${index}` } },
          }),
        ),
      );
      assert.equal(new Set(records.map(({ ID }) => ID)).size, 40);
      const after = await client.readDomain({ path: { id: domain.ID } });
      assert.equal(after.Serial, domain.Serial + 40);
      assert.equal(after.LinkedRecords.length, 40);
      assert.deepEqual(
        after.LinkedRecords.map(({ ID, Labels }) => `${ID} ${Labels["n"]}`).sort(),
        records.map(({ ID }, index) => `${ID} ${index}`).sort(),
      );
      const versions = await client.listVersions({ path: { id: domain.ID } });
      assert.deepEqual(
        versions.slice(0, 40).map(({ Serial, Changes }) => [Serial, Changes.length]),
        range(40).map((index) => [after.Serial - index, 1]),
      );
      const events = await client.listEvents({ query: { type: "record.created", limit: 100 } });
      const own = events.filter(({ ResourceID }) => records.some(({ ID }) => ID === ResourceID));
      assert.equal(own.length, 40);
      for (const index of [0, 17, 39])
        assert.deepEqual(await harness.lookUp(`h${index}.${domain.Name}`, "A"), ["192.0.2.1"]);
    });

    test("conflict as one after the other, and the others are stored", async () => {
      const { client } = harness;
      const domain = await harness.domain();
      const same = await Promise.allSettled(
        range(12).map((index) =>
          index % 3 === 0
            ? client.createRecordCNAME({ body: { DomainId: domain.ID, Name: "same", HostName: "other.example" } })
            : client.createRecordA({
                body: { DomainId: domain.ID, Name: index % 3 === 1 ? "same" : `h${index}`, IP: "192.0.2.1" },
              }),
        ),
      );
      const stored = same.filter(({ status }) => status === "fulfilled");
      assert.equal(stored.length, 5, "one at the name, four at other names");
      for (const each of same)
        if (each.status === "rejected")
          assert.ok(
            ["cname_conflict", "record_exists", "validation_failed"].includes((each.reason as { code: string }).code),
            String(each.reason),
          );
      const after = await client.readDomain({ path: { id: domain.ID } });
      assert.equal(after.LinkedRecords.length, 5);
      assert.equal(after.Serial, domain.Serial + 5);
    });

    test("stay within the quota", async () => {
      const caller = await harness.neighbour({ RecordsPerDomain: 10 });
      const domain = await caller.client.createDomain({ body: { Name: "quota.example" } });
      const all = await Promise.allSettled(
        range(20).map((index) =>
          caller.client.createRecordA({ body: { DomainId: domain.ID, Name: `h${index}`, IP: "192.0.2.1" } }),
        ),
      );
      assert.equal(all.filter(({ status }) => status === "fulfilled").length, 10);
      const { LinkedRecords } = await caller.client.readDomain({ path: { id: domain.ID } });
      assert.equal(LinkedRecords.length, 10);
    });

    test("are refused one by one: an unknown domain, a foreign one, a name of a restricted token", async () => {
      const { client } = harness;
      const domain = await harness.domain();
      const foreign = await harness.neighbour();
      const restricted = await harness.as(["dns:write"], { DomainID: domain.ID, RecordPattern: "own*" });
      const body = { DomainId: domain.ID, IP: "192.0.2.1" };
      await Promise.all([
        refused(client.createRecordA({ body: { ...body, DomainId: 999_999, Name: "a" } }), "validation_failed"),
        refused(foreign.client.createRecordA({ body: { ...body, Name: "b" } }), "validation_failed"),
        refused(restricted.client.createRecordA({ body: { ...body, Name: "c" } }), "token_restricted"),
        restricted.client.createRecordA({ body: { ...body, Name: "own-d" } }),
        client.createRecordA({ body: { ...body, Name: "e" } }),
      ]);
      const { LinkedRecords } = await client.readDomain({ path: { id: domain.ID } });
      assert.deepEqual(
        LinkedRecords.map(({ HostName }) => HostName).sort(),
        ["e", "own-d"].map((name) => `${name}.${domain.Name}.`),
      );
    });

    if (harness.kind === "postgres")
      test("cost no round trip each", async () => {
        const domain = await harness.domain();
        // Without an idempotency key.
        const create = async (Name: string) =>
          assert.equal(
            (await harness.request("POST /dns/recorda", { DomainId: domain.ID, Name, IP: "192.0.2.1" })).status,
            200,
          );
        await create("first");
        /** Creates these records. Resolves to their commits, and to those without writes of the engine, which have round trips of their own. */
        const commitsOf = async (...names: string[]) => {
          const all = await listSent('insert into "record"', () => Promise.all(names.map(create)));
          return { all, own: all.filter(({ texts }) => texts.every((text) => ofRecords.test(text))) };
        };
        let one = await commitsOf("second");
        for (let n = 0; one.own.length === 0; n++) one = await commitsOf(`second-${n}`);
        for (const { trips } of one.own) assert.ok(trips <= 2, `${trips} round trips for one record`);
        let some = await commitsOf(...range(64).map((index) => `h${index}`));
        // How many share a commit depends on when the requests arrive.
        assert.ok(some.all.length < 64, `${some.all.length} commits for 64 records`);
        for (let n = 0; some.own.length === 0; n++)
          some = await commitsOf(...range(64).map((index) => `h${index}-${n}`));
        for (const { trips, texts } of some.own)
          assert.ok(trips <= 2, `${trips} round trips in a commit: ${texts.join("; ")}`);
        const statements = some.own.reduce((sum, { texts }) => sum + texts.length, 0);
        assert.ok(
          statements <= 64 + 16 * some.own.length,
          `${statements} statements for 64 records in ${some.own.length} commits`,
        );
      });
  },
  { clock },
);
