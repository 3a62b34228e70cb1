/** A restore while other changes are made at the same time and may share its commit. */
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
});
