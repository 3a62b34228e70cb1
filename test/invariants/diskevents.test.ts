/** Events report when the data disk becomes low and when it has recovered: once each, to administrators. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { createDiskEvents } from "../../service/src/http/diskevents.ts";
import { invariant } from "../support/enginefixture.ts";
import { createTestService } from "../support/testservice.ts";

invariant("each change of the disk is one event, also over a restart and a failed write", async (store) => {
  const state = (isLow: boolean) => ({ folder: "data", low: 100, free: isLow ? 50 : 500, size: 1000, isLow });
  const types = async () =>
    (await store.read.selectFrom("event").select(["type", "data"]).orderBy("id").execute()).map(({ type }) => type);
  const reporter = createDiskEvents(store);
  await reporter.report(null, 1);
  await reporter.report(state(false), 1);
  assert.deepEqual(await types(), [], "all is well");
  const full = createDiskEvents({ ...store, write: () => Promise.reject(new Error("full")) });
  await assert.rejects(full.report(state(true), 2), /full/);
  await reporter.report(state(true), 3);
  await reporter.report(state(true), 4);
  assert.deepEqual(await types(), ["disk.low"]);
  const restarted = createDiskEvents(store);
  await restarted.report(state(true), 5);
  await restarted.report(state(false), 6);
  await restarted.report(state(false), 7);
  assert.deepEqual(await types(), ["disk.low", "disk.recovered"]);
});

test("only an administrator of the first project receives the event of a low disk", async () => {
  const service = await createTestService("sqlite", { disk: { folder: tmpdir(), low: 1e18 } });
  try {
    const found = await service.client.listEvents({ query: { type: "disk.*" } });
    assert.deepEqual(
      found.map(({ Type, Resource, ResourceID }) => [Type, Resource, ResourceID]),
      [["disk.low", "disk", 1]],
    );
    const { Free, Size, ...rest } = { ...(found[0]?.Data as Record<string, unknown> | undefined) };
    assert.deepEqual(rest, { Folder: tmpdir(), Low: 1e18 });
    assert.deepEqual([typeof Free, typeof Size], ["number", "number"]);
    const restricted = await service.as(["server:read", "dns:read", "network:read"]);
    assert.deepEqual(await restricted.listEvents({ query: { type: "disk.*" } }), []);
    const neighbour = await service.neighbour();
    assert.deepEqual(await neighbour.listEvents({ query: { type: "disk.*" } }), []);
  } finally {
    await service.close();
  }
});
