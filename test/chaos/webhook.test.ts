/**
 * A webhook while the service is killed repeatedly: its endpoint gets every event at least once, in order per resource, and a repeated
 * event is the last one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sqliteFirst } from "../support/databases.ts";
import { createProcess } from "../support/process.ts";
import { runsOf, withSeed } from "../support/random.ts";
import { openEndpoint } from "../support/webhookendpoint.ts";

const kills = runsOf(5, 3);
const writers = 8;

for (const kind of sqliteFirst) {
  test(`${kind}: kill -9 loses no event that a webhook has to deliver`, (context) =>
    withSeed(async (random) => {
      // Some responses are late, so that kills hit running deliveries.
      const endpoint = await openEndpoint(async () => {
        if (random.chance(20)) await sleep(random.below(100));
        return 200;
      });
      const brume = await createProcess(kind, { environment: { BRUME_WEBHOOK_ALLOW: "127.0.0.1" } });
      try {
        const { ID } = await brume.client.createWebhook({ body: { Url: endpoint.url, Types: ["domain.*"] } });
        const names = Array.from({ length: writers }, (_, i) => `hook${i}.test`);
        const ids: number[] = [];
        for (const Name of names) ids.push((await brume.client.createDomain({ body: { Name } })).ID);
        let count = 0;
        for (let round = 0; round < kills; round++) {
          let isOver = false;
          const writing = ids.map(async (id) => {
            while (!isOver)
              await brume.client
                .updateDomain({ path: { id }, body: { Labels: { count: String(++count) } } })
                .catch((error: unknown) => {
                  if (!isOver) throw error;
                });
          });
          const before = endpoint.received.length;
          await endpoint.until(before + 5);
          await sleep(random.below(400));
          isOver = true;
          await brume.end("SIGKILL");
          await Promise.all(writing);
          await brume.start();
        }
        const wanted = new Map<number, number[]>();
        for await (const event of brume.client.items("listEvents", { query: { type: "domain.*", limit: 1000 } }))
          wanted.set(event.ResourceID, [...(wanted.get(event.ResourceID) ?? []), event.ID]);
        const last = new Set([...wanted.values()].map((list) => list.at(-1)));
        for (let seen = 0; last.size > 0; ) {
          await endpoint.until(seen + 1);
          for (; seen < endpoint.received.length; seen++) last.delete(endpoint.received[seen]?.event.ID);
        }
        const got = new Map<number, number[]>();
        let repeated = 0;
        for (const { event } of endpoint.received) {
          const ofResource = got.get(event.ResourceID) ?? [];
          got.set(event.ResourceID, ofResource);
          if (ofResource.at(-1) === event.ID) repeated += 1;
          else ofResource.push(event.ID);
        }
        assert.deepEqual(
          [...got].sort(([a], [b]) => a - b),
          [...wanted].sort(([a], [b]) => a - b),
        );
        const until = (all: readonly { readonly State: string }[]) => all.every(({ State }) => State === "Delivered");
        await brume.client.waitFor("listDeliveries", { path: { id: ID } }, { until, timeout: 120_000 });
        const { read, close } = await brume.snapshot();
        const rows = await read.selectFrom("webhook_delivery").select(["id", "state", "due"]).execute();
        const [webhook] = await read.selectFrom("webhook").select(["state", "failing_since"]).execute();
        await close();
        assert.deepEqual(
          rows.filter(({ due }) => due !== null),
          [],
          "a row is stuck",
        );
        assert.deepEqual(webhook, { state: "Active", failing_since: null });
        context.diagnostic(`${count} changes, ${endpoint.received.length} deliveries, ${repeated} repeated`);
      } finally {
        await brume.close();
        await endpoint.close();
      }
    }));
}
