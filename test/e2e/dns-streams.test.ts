/** Large zones are read page by page from a snapshot: the same content as that of a small zone, also while records change. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Domain } from "@brume/api/dns.ts";
import { largeZone } from "../../service/src/dns/zonestream.ts";
import { onEveryDatabase } from "../support/harness.ts";

onEveryDatabase("large zones", (harness) => {
  const count = largeZone + 700;
  /** Several records of one owner, so that pages end inside of an owner. */
  const zoneFile = [
    ...Array.from({ length: count - 399 }, (_, index) => `h${index % 900} 300 IN TXT "text ${index}"`),
    ...Array.from({ length: 399 }, (_, index) => `many 300 IN A 192.0.${index % 4}.${index >> 2}`),
  ].join("\n");

  async function create(name: string): Promise<Domain> {
    return harness.client.createDomain({ body: { Name: name, ZoneFile: zoneFile } });
  }
  const read = async (id: number, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
    harness.request(`${method} /dns/${id}`, undefined, headers);
  const readDomain = async (id: number) => (await read(id)).json as Domain;

  describe("a zone of many records", () => {
    test("as JSON has all records by id, and as a zone file the same ones", async () => {
      const made = await create("streamed.example");
      const response = await read(made.ID);
      assert.equal(response.headers.get("etag"), `"domain-${made.ID}-1"`);
      const domain = response.json as Domain;
      assert.equal(domain.LinkedRecords.length, count);
      assert.deepEqual(domain.LinkedRecords, made.LinkedRecords);
      assert.deepEqual({ ...domain, LinkedRecords: [] }, { ...made, LinkedRecords: [], State: domain.State });

      const { text } = await read(made.ID, { accept: "text/dns" });
      const owners = text
        .trimEnd()
        .split("\n")
        .slice(1)
        .map((line) => line.split(" ")[0] ?? "");
      // With the automatic NS record.
      assert.equal(owners.length, count + 1);
      assert.deepEqual(
        owners,
        [...owners].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : 0)),
      );
      const { Created, Updated, Deleted } = await harness.client.importZone({
        path: { id: made.ID },
        body: { ZoneFile: text, Mode: "Replace" },
      });
      assert.deepEqual([Created, Updated, Deleted], [0, 0, 0]);
      const head = await read(made.ID, {}, "HEAD");
      assert.deepEqual([head.status, head.text], [200, ""]);
      assert.equal(head.headers.get("content-length"), String(Buffer.byteLength(response.text)));
    });

    test("is read again by a repeated creation that waits", async () => {
      const body = { Name: "repeated.example", ZoneFile: zoneFile };
      const headers = { "idempotency-key": "repeated" };
      const first = await harness.request("POST /dns", body, headers);
      assert.equal(first.status, 200);
      const again = await harness.request("POST /dns", body, { ...headers, prefer: "wait=1" });
      assert.deepEqual([again.status, again.headers.get("idempotency-replayed")], [200, "true"]);
      assert.deepEqual(
        (again.json as Domain).LinkedRecords.map(({ ID }) => ID),
        (first.json as Domain).LinkedRecords.map(({ ID }) => ID),
      );
    });

    test("shows one version while records change", async () => {
      const { ID: DomainId } = await create("changing.example");
      const reads = [read(DomainId)];
      for (let index = 0; index < 5; index++) {
        const change = harness.client.createRecordA({ body: { DomainId, Name: `new-${index}`, IP: "192.0.2.1" } });
        reads.push(read(DomainId));
        await change;
      }
      for (const { json, headers } of await Promise.all(reads)) {
        const version = Number(/-([0-9]+)"$/.exec(headers.get("etag") ?? "")?.[1]);
        assert.equal((json as Domain).LinkedRecords.length, count + version - 1);
      }
      const now = await readDomain(DomainId);
      assert.equal(now.LinkedRecords.length, count + 5);
    });
  });
});

const keyOf = (name: string): string => name.split(".").reverse().join(".");
