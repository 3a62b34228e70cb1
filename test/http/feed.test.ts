/** Streams and lists of events (docs/spec.md#event-endpoints): no gaps or duplicates, access rights, and slow clients. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { mostCounted } from "@brume/api/event.ts";
import { append } from "../../service/src/engine/event.ts";
import { databases } from "../support/databases.ts";
import { dial, type Line } from "../support/httpsocket.ts";
import { createCaller, type Library, openLibrary, read, tokenOf } from "./fixture.ts";

for (const kind of databases)
  describe(`events on ${kind}`, () => {
    let library: Library;
    const lines: Line[] = [];
    before(async () => {
      library = await openLibrary(
        {
          limits: { ping: 60 },
          filterEvent: (_caller, row) =>
            row.resource === "record" && row.data?.includes("secret") === false ? row : null,
        },
        kind,
      );
    });
    after(() => library.close());
    afterEach(() => {
      for (const line of lines.splice(0)) line.close();
    });

    async function open(query = "", headers: Record<string, string> = {}, token = "a"): Promise<Line> {
      const line = await dial(library.port);
      lines.push(line);
      const all = { Authorization: `Bearer ${tokenOf(token)}`, Accept: "text/event-stream", ...headers };
      const text = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
      line.send(`GET /event${query} HTTP/1.1\r\n${text.join("")}\r\n`);
      return line;
    }

    /** Opens a stream and waits until it is established. */
    async function listen(...given: Parameters<typeof open>): Promise<Line> {
      const line = await open(...given);
      await line.until("retry: 2000\n\n");
      return line;
    }

    async function receive(line: Line): Promise<{ id: number; event: string; data: Record<string, unknown> }> {
      await line.until("id: ");
      const id = Number((await line.until("\n")).trim());
      await line.until("event: ");
      const event = (await line.until("\n")).trim();
      await line.until("data: ");
      return { id, event, data: JSON.parse(await line.until("\n")) as Record<string, unknown> };
    }

    const appendEvent = (id: number, data: unknown = { n: id }, type = "domain.changed"): Promise<void> =>
      library.append(type, type.split(".")[0] ?? "", id, data, type.startsWith("record") ? 3 : undefined);

    async function list(query: string, token = "a") {
      const response = await fetch(`${library.url}/event${query}`, {
        headers: { Authorization: `Bearer ${tokenOf(token)}` },
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, json: read(text) };
    }

    const newest = (): Promise<number> => library.feed.newest();

    test("a stream sends its headers, then new events and pings", async () => {
      await appendEvent(1);
      const line = await open();
      const head = await line.until("\r\n\r\n");
      assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
      assert.match(head, /\r\nContent-Type: text\/event-stream\r\n/);
      assert.match(head, /\r\nCache-Control: no-store\r\n/);
      assert.match(head, /\r\nX-Request-Id: /);
      assert.doesNotMatch(head, /content-length/i);
      await line.until("retry: 2000\n\n");
      await appendEvent(2, { text: "two\nlines" });
      const response = await receive(line);
      assert.equal(response.event, "domain.changed");
      assert.equal(response.id, await newest());
      assert.deepEqual(Object.keys(response.data), [
        "ID",
        "Type",
        "Date",
        "ProjectID",
        "Resource",
        "ResourceID",
        "ParentID",
        "TokenID",
        "RequestID",
        "Data",
      ]);
      assert.equal(response.data["ResourceID"], 2);
      assert.deepEqual(response.data["Data"], { text: "two\nlines" });
      await line.until("\n: ping\n\n");
    });

    test("Last-Event-ID and after continue without gaps or duplicates; the header takes precedence", async () => {
      for (let i = 10; i < 140; i++) await appendEvent(i);
      const start = (await newest()) - 130;
      for (const [query, headers] of [
        [`?after=${start}`, {}],
        ["", { "Last-Event-ID": String(start) }],
        ["?after=0", { "Last-Event-ID": String(start) }],
      ] as const) {
        const line = await listen(query, headers);
        const seen: unknown[] = [];
        for (let i = 0; i < 130; i++) seen.push((await receive(line)).data["ResourceID"]);
        assert.deepEqual(
          seen,
          Array.from({ length: 130 }, (_, i) => i + 10),
        );
        line.close();
      }
    });

    test("events during the catch-up of a stream arrive once and in order", async () => {
      const start = await newest();
      for (let i = 0; i < 60; i++) await appendEvent(i + 1);
      const line = await listen(`?after=${start}`);
      const later = (async () => {
        for (let i = 60; i < 120; i++) await appendEvent(i + 1);
      })();
      for (let i = 0; i < 120; i++) assert.equal((await receive(line)).data["ResourceID"], i + 1);
      await later;
    });

    test("a start that is deleted or unknown gets a reset", async () => {
      await library.store.write(async (tx) => void (await tx.deleteFrom("event").where("id", "<=", 20).execute()));
      const oldest = await library.feed.oldest();
      for (const start of ["1", "999999999"]) {
        const line = await open("", { "Last-Event-ID": start });
        await line.until(`retry: 2000\n\n`);
        await line.until(`event: reset\ndata: {"Oldest":${oldest}}\n\n`);
        assert.equal((await receive(line)).id, oldest);
      }
      const fine = await listen("", { "Last-Event-ID": String(oldest - 1) });
      assert.equal((await receive(fine)).id, oldest);
      const bad = await open("", { "Last-Event-ID": "yesterday" });
      assert.equal((await bad.receive()).status, 400);
    });

    test("events are filtered by type, resource, scope and project", async () => {
      const start = await newest();
      library.callers.set(tokenOf("b"), createCaller({ tokenId: 2, scopes: ["dns:read"] }));
      library.callers.set(tokenOf("c"), createCaller({ tokenId: 3, projectId: 2 }));
      await appendEvent(1, {}, "domain.created");
      await appendEvent(2, {}, "record.created");
      await appendEvent(3, {}, "token.created");
      await appendEvent(1, {}, "domain.deleted");
      const seen = async (query: string, token?: string) =>
        (await list(`?after=${start}${query}`, token)).json.map((event) => event.Type);
      assert.deepEqual(await seen(""), ["domain.created", "record.created", "token.created", "domain.deleted"]);
      assert.deepEqual(await seen("&type=domain.*"), ["domain.created", "domain.deleted"]);
      assert.deepEqual(await seen("&type=record.created,token.*"), ["record.created", "token.created"]);
      assert.deepEqual(await seen("&resource=domain:1"), ["domain.created", "domain.deleted"]);
      assert.equal((await list(`?after=${start}&type=*.created`)).json.code, "query_invalid");
      assert.deepEqual(await seen("&resource=domain:9"), []);
      assert.deepEqual(await seen("", "b"), ["domain.created", "record.created", "domain.deleted"]);
      assert.deepEqual(await seen("", "c"), []);
      assert.equal((await list("?resource=domain")).json.code, "query_invalid");
      const objects = (count: number): string => Array.from({ length: count }, (_, id) => `tunnel:${id}`).join();
      assert.equal((await list(`?resource=${objects(101)}`)).json.code, "query_invalid");
      assert.deepEqual((await list(`?resource=${objects(100)},tunnel:0,TUNNEL:00`)).json, []);
      const line = await listen(`?after=${start}&type=token.*`);
      assert.equal((await receive(line)).event, "token.created");
    });

    test("the events of a restricted token are filtered, in stream, list and total", async () => {
      const restriction = { domainId: 3, domain: "example.com", pattern: "www", types: null };
      library.callers.set(tokenOf("d"), createCaller({ tokenId: 4, restriction }));
      const start = await newest();
      await appendEvent(3, { all: "records" });
      await appendEvent(14, { name: "secret" }, "record.created");
      await appendEvent(15, { name: "open" }, "record.created");
      const listed = await list(`?after=${start}`, "d");
      assert.deepEqual(
        listed.json.map((event) => event.ResourceID),
        [15],
      );
      assert.equal(listed.headers.get("X-Total-Count"), "1");
      const line = await listen(`?after=${start}`, {}, "d");
      assert.equal((await receive(line)).data["ResourceID"], 15);
    });

    test("a list has at most 100 entries, and its pages lose nothing", async () => {
      const total = Number((await list("")).headers.get("X-Total-Count"));
      assert.ok(total > 200);
      assert.equal((await list("")).json.length, 100);
      const ids: number[] = [];
      let path: string | undefined = "?limit=90";
      while (path !== undefined) {
        const page = await list(path);
        assert.equal(page.headers.get("X-Total-Count"), String(total));
        ids.push(...page.json.map((event) => event.ID));
        path = /^<\/event(.+)>; rel="next"$/.exec(page.headers.get("Link") ?? "")?.[1];
      }
      assert.equal(new Set(ids).size, total);
      assert.deepEqual(
        ids,
        ids.toSorted((a, b) => a - b),
      );
    });

    test("a token that is deleted or expires ends its streams", async () => {
      library.callers.set(tokenOf("e"), createCaller({ tokenId: 5 }));
      const deleted = await listen("", {}, "e");
      library.callers.delete(tokenOf("e"));
      await appendEvent(5, null, "token.deleted");
      assert.doesNotMatch(await deleted.rest(), /token\.deleted/);
      library.callers.set(tokenOf("f"), createCaller({ tokenId: 6, expiresAt: library.now + 100 }));
      const expired = await listen("", {}, "f");
      await expired.rest();
    });

    test("a token has at most 20 streams, and closing one permits another", async () => {
      const many = await Promise.all(Array.from({ length: 20 }, () => listen()));
      const refused = await (await open()).receive();
      assert.equal(refused.status, 429);
      assert.equal(read(refused.body).code, "rate_limited");
      assert.ok(Number(refused.headers.get("retry-after")) > 0);
      library.callers.set(tokenOf("0"), createCaller({ tokenId: 10 }));
      await listen("", {}, "0");
      many[0]?.close();
      for (;;) {
        const line = await open();
        if ((await line.until(" ")) && (await line.until(" ")).startsWith("200")) break;
        await sleep(10);
      }
    });

    test("a client that does not read costs no memory, and later gets all events", async () => {
      const start = await newest();
      const large = { text: "x".repeat(200_000) };
      for (let i = 0; i < 100; i++) await appendEvent(i + 1, large);
      const accepted = once(library.http.server, "connection");
      const line = await open(`?after=${start}`);
      const [socket] = (await accepted) as [Socket];
      line.socket.pause();
      // The kernel takes some megabytes; what it does not take waits in the service.
      do await sleep(100);
      while (socket.writableLength === 0);
      assert.ok(socket.writableLength < 2_000_000, `${socket.writableLength} bytes wait`);
      line.socket.resume();
      for (let i = 0; i < 100; i++) assert.equal((await receive(line)).data["ResourceID"], i + 1);
    });

    test("HTTP/1.0 gets a stream without chunks", async () => {
      const line = await dial(library.port);
      lines.push(line);
      line.send(
        `GET /event?after=0 HTTP/1.0\r\nAuthorization: Bearer ${tokenOf("a")}\r\nAccept: text/event-stream\r\n\r\n`,
      );
      const head = await line.until("\r\n\r\n");
      assert.doesNotMatch(head, /chunked/);
      assert.match(head, /Connection: close/);
      await line.until("retry: 2000\n\n");
    });

    test("a list counts at most 10,000 events, and returns those after them", async () => {
      const event = { type: "record.created", date: 0, project: 1, resource: "record", parent: 3, data: "{}" } as const;
      const added = Array.from({ length: mostCounted + 50 }, (_, index) => ({ ...event, id: index + 1 }));
      const start = await newest();
      await library.store.write((tx) => append(tx, added));
      for (const token of ["a", "d"]) {
        const page = await list(`?type=record.*&after=${start}&limit=3`, token);
        assert.deepEqual(
          [page.headers.get("X-Total-Count"), page.json.map(({ ResourceID }) => ResourceID)],
          [String(mostCounted), [1, 2, 3]],
        );
        const last = await list(`?newest=true&after=${start}&limit=2`, token);
        assert.deepEqual(
          last.json.map(({ ResourceID }) => ResourceID),
          [mostCounted + 50, mostCounted + 49],
        );
        const few = await list(`?after=${start + mostCounted}`, token);
        assert.equal(few.headers.get("X-Total-Count"), "50");
      }
    });
  });
