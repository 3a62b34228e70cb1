import assert from "node:assert/strict";
import { test } from "node:test";
import { startDatabase } from "../../../../test/support/databases.ts";
import { networkRow } from "../../../../test/support/rows.ts";
import { addLink } from "../../network/linktable.ts";
import { insertNetwork, updateNetwork } from "../../network/table.ts";
import type { FlowContext } from "./context.ts";
import { deleteFlow } from "./delete.ts";

test("a deleted server waits for the generations without its links, not for later ones", async () => {
  const database = await startDatabase("sqlite");
  const { store } = database;
  try {
    const { id: _, ...row } = networkRow(0, { project_id: null, kind: "shared", generation: 9, applied: 9 });
    const network = await store.write(async (tx) => {
      const { id } = await insertNetwork(tx, row);
      const link = { id: 30, network_id: id, server_id: 17, host_name: "a", ip: "0a40000a", bandwidth: 100 };
      addLink(tx, { ...link, state: "Active", created: 0 });
      return id;
    });
    const change = (fields: Parameters<typeof updateNetwork>[2]) =>
      store.write((tx) => updateNetwork(tx, network, fields));
    const apply = { name: "network", subject: "network", changes: { note: () => undefined } };
    const context = { store, clock: { now: () => 0 }, networks: { apply } };
    const step = deleteFlow(context as unknown as FlowContext).steps.find(({ name }) => name === "Network");
    const run = async (facts: object) => {
      const signal = new AbortController().signal;
      return step?.do?.({ task: 1, subject: 17, project: 1, input: null, attempt: 1, signal, facts });
    };
    const networks = [network];

    const waiting = await run({ networks });
    const left = [{ network, generation: 10 }];
    assert.deepEqual(waiting && "wait" in waiting && waiting.facts, { left });
    await change({ generation: 14, applied: 10 });
    assert.deepEqual(await run({ networks, left }), {});
    // A kill before the generation was stored: only the newest contains this change for certain.
    const again = await run({ networks });
    assert.ok(again && "wait" in again);
    await change({ applied: 14 });
    assert.deepEqual(await run({ networks }), {});
  } finally {
    await database.close();
  }
});
