/**
 * Repeats of long changes with the same idempotency key (docs/spec.md#headers-and-queries-for-changes): a repeat that waits waits for the
 * same task.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch } from "@brume/api/batch.ts";
import { onEveryDatabase } from "../support/harness.ts";

onEveryDatabase("a repeat that waits", (harness) => {
  const wait = { wait: 60 };
  const twice = async (line: string, body?: object) => {
    const headers = { "Idempotency-Key": `key-${Math.random()}` };
    assert.equal((await harness.request(line, body, headers)).status, 200);
    const again = await harness.request(line, body, { ...headers, Prefer: "wait=20" });
    assert.deepEqual([again.status, again.headers.get("idempotency-replayed")], [200, "true"]);
    return again;
  };

  test("for a deletion waits until the object is deleted", async () => {
    const { ID } = await harness.client.createServer({ body: { Name: "short" } }, wait);
    harness.brume.machines.delay("remove", 300);
    const again = await twice(`DELETE /server/${ID}`);
    assert.equal(again.text, "");
    harness.brume.machines.delay("remove", 0);
    assert.equal((await harness.request(`GET /server/${ID}`)).code, "server_not_found");
  });

  test("for a rebuild waits until the server runs again", async () => {
    const { ID } = await harness.client.createServer({ body: { Name: "again" } }, wait);
    harness.brume.machines.delay("ensureRunning", 300);
    const again = await twice(`POST /server/${ID}/rebuild`, {});
    harness.brume.machines.delay("ensureRunning", 0);
    const [action] = await harness.client.listActions({ path: { id: ID } });
    assert.deepEqual([action?.Type, action?.State], ["Rebuild", "Completed"]);
    assert.deepEqual(again.json, await harness.client.readServer({ path: { id: ID } }));
  });

  test("for a group waits for all its servers", async () => {
    harness.brume.machines.delay("ensureRunning", 300);
    const made = await twice("POST /server-batch", { Name: "n", Count: 2 });
    harness.brume.machines.delay("ensureRunning", 0);
    const { ID } = made.json as Batch;
    const states = (await harness.client.listServers({ query: { batch: ID } })).map(({ State }) => State);
    assert.deepEqual(states, ["Active", "Active"]);
    harness.brume.machines.delay("remove", 300);
    await twice("DELETE /server-batch", { ID });
    harness.brume.machines.delay("remove", 0);
    assert.deepEqual(await harness.client.listServers({ query: { batch: ID } }), []);
  });

  test("is recognized by its parsed content, not by its text", async () => {
    const send = (body: string | object, more = {}) =>
      harness.request("POST /dns", body, { "Idempotency-Key": "understood", ...more });
    const first = await send({ Name: "understood.example", Labels: { b: "1", a: "2" } });
    assert.equal(first.status, 200);
    for (const [body, more] of [
      ["Name=understood.example&Labels[a]=2&Labels[b]=1", { "Content-Type": "application/x-www-form-urlencoded" }],
      ["{'DomainName': ' understood.example', 'Migrate': None, 'labels': {'a': 2, 'b': 1}, 'extra': True}", {}],
    ] as const) {
      const again = await send(body, more);
      assert.deepEqual([again.text, again.headers.get("idempotency-replayed")], [first.text, "true"], body);
    }
    for (const body of [
      { Name: "understood.example", Labels: { B: "1", a: "2" } },
      { Name: "understood.example", Labels: { b: "1", a: "2" }, Ip: "192.0.2.1" },
      { Name: 7, Labels: [] },
    ])
      assert.equal((await send(body)).code, "idempotency_key_conflict", JSON.stringify(body));
  });
});
