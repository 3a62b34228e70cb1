/** Events report when the disk of the data is low and when it no longer is: once each, to those who administer. */
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
  const news = createDiskEvents(store);
  await news.report(null, 1);
  await news.report(state(false), 1);
  assert.deepEqual(await types(), [], "all is well");
  const full = createDiskEvents({ ...store, write: () => Promise.reject(new Error("full")) });
  await assert.rejects(full.report(state(true), 2), /full/);
  await news.report(state(true), 3);
  await news.report(state(true), 4);
  assert.deepEqual(await types(), ["disk.low"]);
  const next = createDiskEvents(store);
  await next.report(state(true), 5);
  await next.report(state(false), 6);
  await next.report(state(false), 7);
  assert.deepEqual(await types(), ["disk.low", "disk.recovered"]);
});

test("who administers hears of a low disk, and nobody else", async () => {
  const world = await createTestService("sqlite", { disk: { folder: tmpdir(), low: 1e18 } });
  try {
    const found = await world.client.listEvents({ query: { type: "disk.*" } });
    assert.deepEqual(
      found.map(({ Type, Resource, ResourceID }) => [Type, Resource, ResourceID]),
      [["disk.low", "disk", 1]],
    );
    const { Free, Size, ...rest } = { ...(found[0]?.Data as Record<string, unknown> | undefined) };
    assert.deepEqual(rest, { Folder: tmpdir(), Low: 1e18 });
    assert.deepEqual([typeof Free, typeof Size], ["number", "number"]);
    const weak = await world.as(["server:read", "dns:read", "network:read"]);
    assert.deepEqual(await weak.listEvents({ query: { type: "disk.*" } }), []);
    const neighbour = await world.neighbour();
    assert.deepEqual(await neighbour.listEvents({ query: { type: "disk.*" } }), []);
  } finally {
    await world.close();
  }
});
