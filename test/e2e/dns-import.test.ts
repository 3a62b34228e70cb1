/** What an import of a zone file reads: the records that it concerns, however many there are. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangesetResult, Domain } from "@brume/api/dns.ts";
import { onSqliteFirst, refused } from "../support/harness.ts";
import { countRows } from "../support/rowcount.ts";

const manyLines = (count: number) =>
  Array.from({ length: count }, (_, index) => `h${index} A 192.0.2.${index % 250}\n`).join("");

onSqliteFirst("an import", (harness) => {
  const put = (domain: Domain, ZoneFile: string, Mode?: "Merge" | "Replace") =>
    harness.client.importZone({ path: { id: domain.ID }, body: { ZoneFile, ...(Mode && { Mode }) } });
  const counts = ({ Created, Updated, Deleted }: ChangesetResult) => [Created, Updated, Deleted];

  test("conflicts with records at, above and below its names", async () => {
    const domain = await harness.domain();
    await put(domain, `cut NS ns.example.\ndeep.low TXT a\n${manyLines(40)}`);
    const reason = async (ZoneFile: string) =>
      (await refused(put(domain, ZoneFile, "Merge"), "zone_file_invalid")).errors[0]?.detail ?? "";
    assert.match(await reason("x.y.cut TXT b\n"), /NS at cut/);
    assert.match(await reason("low NS ns.example.\n"), /TXT at deep\.low/);
    assert.match(await reason("h7 CNAME a\n"), /A at h7/);
    assert.deepEqual(counts(await put(domain, "glue.cut A 192.0.2.1\nh7 AAAA ::1\n", "Merge")), [2, 0, 0]);
  });

  test("replaces a zone of several pages", async () => {
    const domain = await harness.domain();
    await put(domain, manyLines(2100));
    assert.deepEqual(counts(await put(domain, `${manyLines(1)}new A 192.0.2.1\n`, "Replace")), [1, 0, 2099]);
    const { LinkedRecords } = await harness.client.readDomain({ path: { id: domain.ID } });
    assert.deepEqual(
      LinkedRecords.map(({ HostName }) => HostName),
      [`h0.${domain.Name}.`, `new.${domain.Name}.`],
    );
  });

  if (harness.kind === "sqlite")
    test("that is merged reads only the records at its names", async () => {
      const domain = await harness.domain();
      await put(domain, manyLines(400));
      const merge = () => put(domain, "h7 60 A 192.0.2.7\nnew 60 A 192.0.2.1\n", "Merge");
      const read = await countRows('from "record"', async () => assert.deepEqual(counts(await merge()), [1, 1, 0]));
      assert.ok(read <= 4, `${read} records were read`);
    });
});
