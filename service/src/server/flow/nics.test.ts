import assert from "node:assert/strict";
import { test } from "node:test";
import { startDatabase } from "../../../../test/support/databases.ts";
import { networkRow } from "../../../../test/support/rows.ts";
import { addLink } from "../../network/linktable.ts";
import { insertNetwork } from "../../network/table.ts";
import type { FlowContext } from "./context.ts";
import { waitForLink } from "./nics.ts";

test("a new link waits for the generation that added it, not for later ones", async () => {
  const database = await startDatabase("sqlite");
  const { store } = database;
  try {
    const { id: _, ...row } = networkRow(0, { project_id: null, kind: "shared", generation: 9, applied: 6 });
    await store.write(async (tx) => {
      const { id } = await insertNetwork(tx, row);
      const link = { id: 30, network_id: id, server_id: 17, host_name: "a", ip: "0a40000a", bandwidth: 100 };
      addLink(tx, { ...link, state: "New", created: 0 });
    });
    const isReady = async (generation?: number) => {
      const facts = { link: 30, ...(generation !== undefined && { generation }) };
      const run = { task: 1, subject: 17, project: 1, input: null, attempt: 1, signal: new AbortController().signal };
      return !("wait" in (await waitForLink({ store } as FlowContext, { ...run, facts })));
    };
    assert.deepEqual([await isReady(5), await isReady(6), await isReady(7)], [true, true, false]);
    // A task of an earlier release has not stored it.
    assert.equal(await isReady(), false);
  } finally {
    await database.close();
  }
});
