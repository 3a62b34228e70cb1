/**
 * Repeats of long changes with the same idempotency key (docs/spec.md#headers-and-queries-for-changes): a repeat that waits waits for the
 * same task.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch } from "@brume/api/batch.ts";
import { onSqliteFirst } from "../support/harness.ts";

onSqliteFirst("a repeat that waits", (harness) => {
  const wait = { wait: 60 };
  /** Sends a change twice. The work continues from this call when the second request waits. */
  const twice = async (held: "remove" | "ensureRunning", line: string, body?: object) => {
    const headers = { "Idempotency-Key": `key-${Math.random()}` };
    const release = harness.brume.machines.hold(held);
    assert.equal((await harness.request(line, body, headers)).status, 200);
    let isAnswered = false;
    const sent = harness.request(line, body, { ...headers, Prefer: "wait=60" }).finally(() => (isAnswered = true));
    for (let others = 0; others < 5; others++) await harness.client.readBalance();
    assert.equal(isAnswered, false);
    release();
    const again = await sent;
    assert.deepEqual([again.status, again.headers.get("idempotency-replayed")], [200, "true"]);
    return again;
  };

  test("for a deletion waits until the object is deleted", async () => {
    const { ID } = await harness.client.createServer({ body: { Name: "short" } }, wait);
    const again = await twice("remove", `DELETE /server/${ID}`);
    assert.equal(again.text, "");
    assert.equal((await harness.request(`GET /server/${ID}`)).code, "server_not_found");
  });

  test("for a rebuild waits until the server runs again", async () => {
    const { ID } = await harness.client.createServer({ body: { Name: "again" } }, wait);
    const again = await twice("ensureRunning", `POST /server/${ID}/rebuild`, {});
    const [action] = await harness.client.listActions({ path: { id: ID } });
    assert.deepEqual([action?.Type, action?.State], ["Rebuild", "Completed"]);
    assert.deepEqual(again.json, await harness.client.readServer({ path: { id: ID } }));
  });

  test("for a group waits for all its servers", async () => {
    const made = await twice("ensureRunning", "POST /server-batch", { Name: "n", Count: 2 });
    const { ID } = made.json as Batch;
    const states = (await harness.client.listServers({ query: { batch: ID } })).map(({ State }) => State);
    assert.deepEqual(states, ["Active", "Active"]);
    await twice("remove", "DELETE /server-batch", { ID });
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
