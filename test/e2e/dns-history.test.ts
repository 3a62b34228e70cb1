/** History: a restore while other changes are made at the same time and may share its commit, and versions with many changes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { onEveryDatabase } from "../support/harness.ts";

onEveryDatabase("history", (harness) => {
  test("a restore reverts all earlier changes, even those of the same moment", async () => {
    const domain = await harness.domain();
    const path = { id: domain.ID };
    const create = (Name: string) =>
      harness.client.createRecordA({ body: { DomainId: domain.ID, Name, IP: "192.0.2.1" } });
    const kept = await create("kept");
    const { Serial } = await harness.client.readDomain({ path });
    let before = 0;
    for (let round = 0; round < 5; round++) {
      const creates = Array.from({ length: 16 }, (_, i) => create(`new-${round}-${i}`));
      const [restored] = await Promise.all([harness.client.restoreVersion({ path, body: { Serial } }), ...creates]);
      const versions = await harness.client.listVersions({ path });
      const since = versions.filter((version) => version.Serial > restored.Serial).flatMap(({ Changes }) => Changes);
      const { LinkedRecords } = await harness.client.readDomain({ path });
      const ids = LinkedRecords.map(({ ID }) => ID).sort((a, b) => a - b);
      assert.deepEqual(ids, [kept.ID, ...since.map(({ After }) => After?.ID ?? 0).sort((a, b) => a - b)]);
      before += creates.length - since.length;
    }
    assert.ok(before > 0, "some were created before");
  });

  test("a version with many changes is stored compressed, shown, and restored", async () => {
    const domain = await harness.domain();
    const path = { id: domain.ID };
    const zoneOf = (count: number, address: string) =>
      Array.from({ length: count }, (_, index) => `h${index} 300 IN A ${address}`).join("\n");
    const replace = (ZoneFile: string) => harness.client.importZone({ path, body: { Mode: "Replace", ZoneFile } });
    const first = await replace(zoneOf(1500, "192.0.2.1"));
    assert.equal(first.Created, 1500);
    const second = await replace(zoneOf(1000, "192.0.2.2"));
    assert.deepEqual([second.Created, second.Deleted], [1000, 1500]);
    const rows = await harness.brume.store.read
      .selectFrom("domain_version")
      .select("changes")
      .where("domain_id", "=", domain.ID)
      .where("serial", "in", [first.Serial, second.Serial])
      .execute();
    for (const { changes } of rows) assert.ok(changes.length < 1500 * 40, `${changes.length} characters`);
    const [newest, older] = await harness.client.listVersions({ path });
    assert.deepEqual(
      [newest, older].map((version) => [version?.Serial, version?.Changes.length]),
      [
        [second.Serial, 2500],
        [first.Serial, 1500],
      ],
    );
    assert.deepEqual(newest?.Changes.map(({ Op }) => Op).sort(), second.Records.map(({ Op }) => Op).sort());
    assert.deepEqual(
      older?.Changes.map(({ After }) => After?.ID),
      first.Records.map(({ After }) => After?.ID),
    );
    const restored = await harness.client.restoreVersion({ path, body: { Serial: first.Serial } });
    assert.deepEqual([restored.Created, restored.Deleted], [1500, 1000]);
    const { LinkedRecords } = await harness.client.readDomain({ path });
    assert.equal(LinkedRecords.length, 1500);
  });
});
