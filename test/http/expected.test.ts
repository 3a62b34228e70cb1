/**
 * Changes whose response has a long part that is known before they are applied (`ChangeResult.expected`): their idempotency key is stored
 * without a response first, on both databases.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { databases } from "../support/databases.ts";
import { type Library, openLibrary, read, tokenOf } from "./fixture.ts";

for (const kind of databases)
  describe(`responses with an expected part on ${kind}`, () => {
    let library: Library;
    before(async () => {
      library = await openLibrary({}, kind);
    });
    after(() => library.close());

    async function send(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
      const response = await fetch(library.url + path, {
        method,
        headers: { Authorization: `Bearer ${tokenOf("a")}`, "Content-Type": "application/json", ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: read(text === "" ? "{}" : text) };
    }

    test("a response with an expected part is repeated byte for byte", async () => {
      const path = `/book/${(await send("POST", "/book", { Name: "long" })).json.ID}`;
      library.expected = Array.from({ length: 1000 }, (_, index) => ({ Name: `chapter ${index}`, Hits: null }));
      for (const isSettled of [true, false]) {
        library.settle = () => sleep(20).then(() => isSettled);
        const headers = { "Idempotency-Key": `long-${isSettled}`, Prefer: "wait=5" };
        const first = await send("PUT", path, { Pages: 7 }, headers);
        assert.equal(first.json.State, isSettled ? "Settled" : "Active");
        const { Chapters } = JSON.parse(first.text) as { Chapters?: unknown };
        assert.deepEqual(Chapters, isSettled ? library.expected : undefined);
        const again = await send("PUT", path, { Pages: 7 }, { "Idempotency-Key": `long-${isSettled}` });
        assert.equal(again.text, first.text);
        assert.equal(again.headers.get("ETag"), first.headers.get("ETag"));
      }
    });

    test("if the service ended before it stored a response, the object is returned as it is", async () => {
      const path = `/book/${(await send("POST", "/book", { Name: "cut off" })).json.ID}`;
      library.expected = [];
      library.settle = () => Promise.reject(new Error("the end"));
      const headers = { "Idempotency-Key": "cut-off", Prefer: "wait=5" };
      assert.equal((await send("PUT", path, { Pages: 8 }, headers)).status, 200);
      await send("PUT", path, { Pages: 9 });
      const present = await send("GET", path);
      for (const more of [{}, { Prefer: "wait=1" }]) {
        const again = await send("PUT", path, { Pages: 8 }, { "Idempotency-Key": "cut-off", ...more });
        assert.deepEqual([again.status, again.text], [200, present.text]);
        assert.equal(again.headers.get("Idempotency-Replayed"), "true");
      }
      await send("DELETE", path);
      const gone = await send("PUT", path, { Pages: 8 }, { "Idempotency-Key": "cut-off" });
      assert.equal(gone.json.code, "domain_not_found");
    });
  });
