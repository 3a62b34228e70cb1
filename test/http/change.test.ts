/**
 * Changes: atomic commits, one event each, idempotency keys and dry runs (docs/spec.md#headers-and-queries-for-changes, #audit), on both
 * databases.
 */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { prune } from "../../service/src/engine/prune.ts";
import { storedKeys } from "../../service/src/http/idempotency.ts";
import { StorageError } from "../../service/src/store/db.ts";
import { databases } from "../support/databases.ts";
import { type Answered, createCaller, type Library, openLibrary, read, tokenOf } from "./fixture.ts";

for (const kind of databases)
  describe(`changes on ${kind}`, () => {
    let library: Library;
    before(async () => {
      library = await openLibrary({}, kind);
    });
    after(() => library.close());
    beforeEach(() => {
      library.settle = null;
      library.prepare = null;
      library.audit.length = 0;
    });

    async function send(
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = {},
      token = "a",
    ) {
      const response = await fetch(library.url + path, {
        method,
        headers: { Authorization: `Bearer ${tokenOf(token)}`, "Content-Type": "application/json", ...headers },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: text === "" ? ({} as Answered) : read(text),
      };
    }

    const countEvents = async (): Promise<number> => Number((await send("GET", "/event")).headers.get("X-Total-Count"));

    /** Rejected requests are written a moment after their response. */
    async function audited(count: number) {
      while (library.audit.length < count) await sleep(5);
      return library.audit;
    }

    describe("events and audit", () => {
      test("a change stores one event and one audit row, with the same data", async () => {
        const made = await send("POST", "/book", { Name: "created" });
        const events = await send("GET", `/event?resource=domain:${made.json.ID}`);
        const [event] = events.json;
        assert.equal(events.json.length, 1);
        assert.deepEqual(event, {
          ID: event?.ID,
          Type: "domain.created",
          Date: "2026-11-20T09:15:00.000Z",
          ProjectID: 1,
          Resource: "domain",
          ResourceID: made.json.ID,
          ParentID: null,
          TokenID: 1,
          RequestID: made.headers.get("X-Request-Id"),
          Data: made.json,
        });
        assert.equal(library.audit.length, 1);
        const row = library.audit[0];
        assert.equal(row?.operation, "createBook");
        assert.equal(row?.address, "127.0.0.1");
        assert.equal(row?.resource, "domain");
        assert.equal(row?.resourceId, made.json.ID);
        assert.equal(row?.status, 200);
        assert.equal(row?.requestId, made.headers.get("X-Request-Id"));
        assert.equal(row?.before, null);
        assert.deepEqual(JSON.parse(row?.after ?? ""), made.json);
      });

      test("rejected changes are audited too, with the object of the path", async () => {
        library.callers.set(tokenOf("b"), createCaller({ tokenId: 2, scopes: ["dns:read"] }));
        await send("PUT", "/book/77", {}, {}, "b");
        await send("PUT", "/book/78", { Pages: 0 });
        await send("POST", "/book", { Name: "explosive" });
        await send("DELETE", "/book/what");
        await send("POST", "/book", {}, {}, "unknown"[0]);
        await send("GET", "/book/999");
        const rows = await audited(5);
        assert.deepEqual(
          rows.map((row) => [row.operation, row.status, row.resource, row.resourceId, row.before, row.after]),
          [
            ["updateBook", 403, "domain", 77, null, null],
            ["updateBook", 400, "domain", 78, null, null],
            ["createBook", 500, null, null, null, null],
            ["deleteBook", 404, "domain", null, null, null],
            ["createBook", 401, null, null, null, null],
          ],
        );
      });

      test("an update without a change appends no event, but is audited", async () => {
        const made = await send("POST", "/book", { Name: "same" });
        const before = await countEvents();
        assert.equal((await send("PUT", `/book/${made.json.ID}`, made.json)).status, 200);
        assert.equal(await countEvents(), before);
        assert.deepEqual(library.audit.at(-1)?.resourceId, made.json.ID);
      });

      test("an error inside the transaction leaves nothing", async () => {
        const [books, events] = [await library.countBooks(), await countEvents()];
        assert.equal((await send("POST", "/book", { Name: "explosive" })).status, 500);
        assert.deepEqual([await library.countBooks(), await countEvents()], [books, events]);
      });
    });

    describe("dry runs", () => {
      test("return the response of the request and leave no trace", async () => {
        const [books, events] = [await library.countBooks(), await countEvents()];
        let settled = 0;
        library.settle = async () => {
          settled += 1;
          return false;
        };
        const dry = await send(
          "POST",
          "/book?DRYRUN=1",
          { Name: "dry" },
          { "Idempotency-Key": "dry", Prefer: "wait=5" },
        );
        assert.equal(dry.status, 200);
        assert.equal(dry.json.ID, 0);
        assert.equal(dry.headers.get("X-Dry-Run"), "true");
        assert.equal(dry.headers.get("Preference-Applied"), null);
        const refused = await send("POST", "/book?dryRun=true", { Name: "forbidden" });
        assert.equal(refused.json.code, "cname_conflict");
        assert.equal(refused.headers.get("X-Dry-Run"), "true");
        await sleep(30);
        assert.deepEqual([await library.countBooks(), await countEvents(), settled], [books, events, 0]);
        const ids = [dry, refused].map(({ headers }) => headers.get("X-Request-Id"));
        assert.ok(!library.audit.some((row) => ids.includes(row.requestId)));
        const real = await send("POST", "/book?dryRun=false", { Name: "wet" }, { "Idempotency-Key": "dry" });
        assert.equal(real.headers.get("X-Dry-Run"), null);
        assert.equal(real.headers.get("Idempotency-Replayed"), null);
        assert.equal(await library.countBooks(), books + 1);
      });

      test("dryRun has no effect on a read", async () => {
        assert.equal((await send("GET", "/book?dryRun=true")).headers.get("X-Dry-Run"), null);
      });
    });

    describe("If-Match", () => {
      test("a change needs the current tag, or *, or no If-Match", async () => {
        const made = await send("POST", "/book", { Name: "tagged" });
        const path = `/book/${made.json.ID}`;
        const tag = made.headers.get("ETag") ?? "";
        const stale = await send("PUT", path, { Pages: 5 }, { "If-Match": '"book-0-0"' });
        assert.equal(stale.status, 412);
        assert.equal(stale.headers.get("ETag"), tag);
        assert.equal((await send("PUT", path, { Pages: 5 }, { "If-Match": `W/${tag}` })).status, 412);
        const edited = await send("PUT", path, { Pages: 5 }, { "If-Match": `"other", ${tag}` });
        assert.equal(edited.status, 200);
        assert.notEqual(edited.headers.get("ETag"), tag);
        assert.equal((await send("DELETE", path, undefined, { "If-Match": tag })).status, 412);
        assert.equal((await send("DELETE", path, undefined, { "If-Match": "*" })).status, 200);
      });
    });

    describe("Prefer: wait", () => {
      const granted: [prefer: string | null, ms: number, applied: string | null][] = [
        [null, 2000, null],
        ["wait=0", 0, "wait=0"],
        ["wait=7", 7000, "wait=7"],
        ['wait="7"', 7000, "wait=7"],
        ["wait=100", 60_000, "wait=60"],
        ["wait=-1", 2000, null],
        ["wait=soon", 2000, null],
        ["wait=3, wait=9, handling=strict", 3000, "handling=strict, wait=3"],
      ];
      for (const [prefer, ms, applied] of granted)
        test(`${prefer ?? "nothing"} delays an edit for ${ms} ms at most`, async () => {
          const made = await send("POST", "/book", { Name: "waiting" });
          const waits: number[] = [];
          library.settle = async (most) => {
            waits.push(most);
            return true;
          };
          const path = `/book/${made.json.ID}`;
          const edited = await send("PUT", path, { Pages: 9 }, prefer === null ? {} : { Prefer: prefer });
          assert.deepEqual(waits, [ms]);
          assert.equal(edited.json.State, "Settled");
          assert.equal(edited.headers.get("Preference-Applied"), applied);
          assert.equal(edited.headers.get("ETag"), `"book-${made.json.ID}-2"`);
        });

      test("a committed change gets 200 even if applying it fails", async () => {
        const made = await send("POST", "/book", { Name: "torn" });
        const before = library.logged.length;
        assert.equal((await send("POST", `/book/${made.json.ID}/refresh`)).status, 200);
        assert.equal(library.logged.length, before + 1);
      });

      test("changes settle in the order of their commits", async () => {
        const order: number[] = [];
        let next = 0;
        library.settle = async () => {
          order.push(next++);
          return false;
        };
        const made = await Promise.all(Array.from({ length: 20 }, (_, i) => send("POST", "/book", { Name: `n${i}` })));
        assert.ok(made.every(({ status }) => status === 200));
        assert.equal(order.length, 20);
      });
    });

    describe("Idempotency-Key", () => {
      test("the same request gets the same response, byte for byte, and is executed once", async () => {
        const books = await library.countBooks();
        const first = await send("POST", "/book", '{"Name":"once","Pages":3}', { "Idempotency-Key": "k1" });
        const again = await send("POST", "/BOOK/", '{ "pages": 3, "NAME":"once" }', { "Idempotency-Key": '"k1"' });
        assert.equal(again.text, first.text);
        assert.equal(again.status, 200);
        for (const name of ["ETag", "Content-Type"]) assert.equal(again.headers.get(name), first.headers.get(name));
        assert.equal(first.headers.get("Idempotency-Replayed"), null);
        assert.equal(again.headers.get("Idempotency-Replayed"), "true");
        assert.equal(await library.countBooks(), books + 1);
      });

      test("a response that changed during the wait is the one that is repeated", async () => {
        library.settle = async () => true;
        const first = await send("POST", "/book", { Name: "settling" }, { "Idempotency-Key": "k2", Prefer: "wait=1" });
        assert.equal(first.json.State, "Settled");
        const again = await send("POST", "/book", { Name: "settling" }, { "Idempotency-Key": "k2" });
        assert.equal(again.text, first.text);
      });

      test("another method, path, query or body is a conflict", async () => {
        const made = await send("POST", "/book", { Name: "base" }, { "Idempotency-Key": "k3" });
        const path = `/book/${made.json.ID}`;
        const others: [string, string, unknown][] = [
          ["POST", "/book", { Name: "other" }],
          ["POST", "/book?x=1", { Name: "base" }],
          ["PUT", path, { Name: "base" }],
          ["DELETE", path, undefined],
        ];
        for (const [method, at, body] of others) {
          const refused = await send(method, at, body, { "Idempotency-Key": "k3" });
          assert.equal(refused.status, 409);
          assert.equal(refused.json.code, "idempotency_key_conflict");
        }
      });

      test("keys are valid per project, and a restricted token has keys of its own", async () => {
        library.callers.set(tokenOf("2"), createCaller({ tokenId: 22, projectId: 2 }));
        const restriction = { domainId: 1, domain: "example.com", pattern: null, types: null };
        library.callers.set(tokenOf("3"), createCaller({ tokenId: 23, restriction }));
        library.callers.set(tokenOf("4"), createCaller({ tokenId: 24 }));
        const body = { Name: "mine" };
        const key = { "Idempotency-Key": "k4" };
        await send("POST", "/book", body, key);
        const other = await send("POST", "/book", body, key, "2");
        assert.equal(other.headers.get("Idempotency-Replayed"), null);
        const own = await send("POST", "/book", body, key, "3");
        assert.deepEqual([own.status, own.headers.get("Idempotency-Replayed")], [200, null]);
        const again = await send("POST", "/book", body, key, "3");
        assert.deepEqual([again.text, again.headers.get("Idempotency-Replayed")], [own.text, "true"]);
        assert.equal((await send("POST", "/book", body, key, "4")).headers.get("Idempotency-Replayed"), "true");
      });

      test("the key of a running request is busy, and a conflict for another request", async () => {
        let go = (): void => {};
        let begun = (): void => {};
        const running = new Promise<void>((resolve) => {
          begun = resolve;
        });
        library.prepare = () =>
          new Promise((resolve) => {
            go = resolve;
            begun();
          });
        const first = send("POST", "/book", { Name: "slow" }, { "Idempotency-Key": "k5" });
        await running;
        const busy = await send("POST", "/book", { Name: "slow" }, { "Idempotency-Key": "k5" });
        assert.equal(busy.json.code, "idempotency_key_busy");
        assert.equal(busy.headers.get("Retry-After"), "1");
        const other = await send("POST", "/book", { Name: "quick" }, { "Idempotency-Key": "k5" });
        assert.equal(other.json.code, "idempotency_key_conflict");
        library.prepare = null;
        go();
        assert.equal((await first).status, 200);
        assert.equal(
          (await send("POST", "/book", { Name: "slow" }, { "Idempotency-Key": "k5" })).text,
          (await first).text,
        );
      });

      test("a rejected request frees its key", async () => {
        const key = { "Idempotency-Key": "k6" };
        assert.equal((await send("POST", "/book", { Name: "forbidden" }, key)).status, 400);
        assert.equal((await send("POST", "/book", { Pages: 0 }, key)).status, 400);
        assert.equal((await send("POST", "/book", { Name: "explosive" }, key)).status, 500);
        const good = await send("POST", "/book", { Name: "corrected" }, key);
        assert.equal(good.status, 200);
        assert.equal(good.headers.get("Idempotency-Replayed"), null);
      });

      test("a repeat that waits gets the object as it is when it has settled", async () => {
        const key = { "Idempotency-Key": "k7" };
        const made = await send("POST", "/book", { Name: "growing", Pages: 1 }, key);
        const path = `/book/${made.json.ID}`;
        const waiting = send("POST", "/book", { Name: "growing", Pages: 1 }, { ...key, Prefer: "wait=20" });
        await sleep(30);
        await send("PUT", path, { Pages: 2 });
        const shown = await waiting;
        assert.equal(shown.json.Pages, 2);
        assert.equal(shown.headers.get("ETag"), `"book-${made.json.ID}-2"`);
        assert.equal(shown.headers.get("Idempotency-Replayed"), "true");
        assert.equal(shown.headers.get("Preference-Applied"), "wait=20");
        await send("DELETE", path);
        const gone = await send("POST", "/book", { Name: "growing", Pages: 1 }, { ...key, Prefer: "wait=1" });
        assert.equal(gone.text, made.text);
      });

      test("a repeated deletion gets the response of the deletion", async () => {
        const made = await send("POST", "/book", { Name: "twice deleted" });
        const key = { "Idempotency-Key": "k8" };
        const path = `/book/${made.json.ID}`;
        for (const replayed of [null, "true"]) {
          const gone = await send("DELETE", path, undefined, key);
          assert.equal(gone.status, 200);
          assert.equal(gone.text, "");
          assert.equal(gone.headers.get("Idempotency-Replayed"), replayed);
        }
      });

      for (const [name, key] of [
        ["a blank", "a b"],
        ["nothing", '""'],
        ["256 characters", "x".repeat(256)],
        ["no ASCII", "é"],
      ] as const)
        test(`a key with ${name} is not valid`, async () => {
          const { json } = await send("POST", "/book", { Name: "x" }, { "Idempotency-Key": key });
          assert.equal(json.code, "idempotency_key_invalid");
        });

      test("responses are stored for a day, encrypted", async () => {
        const key = { "Idempotency-Key": "k9" };
        await send("POST", "/book", { Name: "a day" }, key);
        const rows = await library.store.read.selectFrom("idempotency").selectAll().where("key", "=", "k9").execute();
        assert.equal(Buffer.from(rows[0]?.sealed ?? []).includes("a day"), false);
        library.now += 24 * 3600_000 - 1;
        assert.equal((await send("POST", "/book", { Name: "a day" }, key)).headers.get("Idempotency-Replayed"), "true");
        library.now += 1;
        assert.equal((await send("POST", "/book", { Name: "another" }, key)).status, 200);
        const cap = { days: 1, count: 1000 };
        assert.ok((await prune(library.store, storedKeys, cap, library.now + 1)) > 0);
        assert.equal(
          (await send("POST", "/book", { Name: "another" }, key)).headers.get("Idempotency-Replayed"),
          "true",
        );
      });
    });

    test("without a database a change gets 503 and leaves nothing", async () => {
      library.prepare = () => Promise.reject(new StorageError("the disk is full"));
      const refused = await send("POST", "/book", { Name: "unstored" });
      assert.equal(refused.status, 503);
      assert.equal(refused.json.code, "storage_unavailable");
      assert.ok(Number(refused.headers.get("Retry-After")) > 0);
      assert.ok(!refused.text.includes("disk is full"));
    });
  });
