/** Events, delivered once and in order (docs/spec.md#event, #event-endpoints): as a list, as a stream, and after a reconnect. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { createClient } from "@brume/api/client.ts";
import type { Event } from "@brume/api/event.ts";
import { type Caller, type Harness, onEveryDatabase, refused } from "../support/harness.ts";

/** Opens an event stream and splits it into frames. */
async function openStream(
  harness: Harness,
  target: string,
  headers: Record<string, string> = {},
  token = harness.token,
) {
  const stop = new AbortController();
  const response = await fetch(`${harness.brume.url}${target}`, {
    headers: { Authorization: `Bearer ${token}`, Accept: "text/event-stream", ...headers },
    signal: stop.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  return {
    response,
    /** Returns the next frame without its blank line; null at the end of the stream. */
    async next(): Promise<string | null> {
      for (;;) {
        const end = rest.indexOf("\n\n");
        if (end >= 0) {
          const frame = rest.slice(0, end);
          rest = rest.slice(end + 2);
          return frame;
        }
        const chunk = await reader?.read();
        if (chunk === undefined || chunk.done) return null;
        rest += chunk.value;
      }
    },
    close: () => stop.abort(),
  };
}

/** Returns the next frame that is no ping; a slow host may cause pings at any time. */
async function nextEvent(stream: { next(): Promise<string | null> }): Promise<string | null> {
  for (;;) {
    const frame = await stream.next();
    if (!frame?.startsWith(":")) return frame;
  }
}

const idOf = (frame: string | null) => Number(/^id: (\d+)$/m.exec(frame ?? "")?.[1]);

onEveryDatabase(
  "events",
  (harness) => {
    const last = async () => {
      const { headers } = await harness.client.raw.listEvents({ query: { limit: 1 } });
      const total = Number(headers.get("x-total-count"));
      const all = await harness.client.listEvents({ query: { limit: 1000, after: 0 } });
      assert.equal(all.length, Math.min(1000, total));
      return all.at(-1)?.ID ?? 0;
    };
    const since = (after: number, query: object = {}) => harness.client.listEvents({ query: { after, ...query } });
    const brief = (events: readonly Event[]) => events.map((event) => `${event.Type} ${event.ResourceID}`);

    test("can be read from the newest on", async () => {
      const start = await last();
      for (let i = 0; i < 7; i++) await harness.domain();
      const all = await since(start, { limit: 1000 });
      const newest = await harness.client.listEvents({ query: { newest: true, limit: 5 } });
      assert.deepEqual(newest, all.slice(-5).reverse());
      assert.deepEqual(await since(start, { newest: true, limit: 1000 }), all.toReversed());
      await refused(harness.client.listEvents({ query: { newest: true, cursor: "MQ" } }), "query_invalid");
    });

    test("report every change with its token and the new object", async () => {
      const start = await last();
      const { client } = harness;
      const made = await client.raw.createDomain({ body: { Name: "told.example", Ip: "192.0.2.1" } });
      const domain = made.answer;
      const record = await client.createRecordA({ body: { DomainId: domain.ID, Name: "www", IP: "192.0.2.1" } });
      const edited = await client.updateRecordA({ path: { id: record.ID }, body: { TTL: 60 } });
      await client.deleteRecord({ path: { domainid: domain.ID, recordId: record.ID } });
      const labelled = await client.updateDomain({ path: { id: domain.ID }, body: { Labels: { a: "b" } } });
      await client.deleteDomain({ path: { id: domain.ID } });
      const token = await client.createToken({ body: { Name: "told", Scopes: ["dns:read"] } });
      await client.deleteToken({ path: { id: token.ID } });
      const events = await since(start);
      assert.deepEqual(
        events.map(({ Type, Resource, ResourceID, ParentID, Data }) => [Type, Resource, ResourceID, ParentID, Data]),
        [
          ["domain.created", "domain", domain.ID, null, domain],
          ["record.created", "record", record.ID, domain.ID, record],
          ["record.changed", "record", record.ID, domain.ID, edited],
          ["record.deleted", "record", record.ID, domain.ID, null],
          ["domain.changed", "domain", domain.ID, null, labelled],
          ["domain.deleted", "domain", domain.ID, null, null],
          ["token.created", "token", token.ID, null, { ...token, Token: "" }],
          ["token.deleted", "token", token.ID, null, null],
        ],
      );
      for (const event of events) assert.deepEqual([event.ProjectID, event.TokenID], [1, 1]);
      assert.equal(events[0]?.RequestID, made.requestId);
      assert.ok(events.every(({ ID }, index) => index === 0 || ID > (events[index - 1]?.ID ?? 0)));
    });

    test("are not emitted for rejected requests, dry runs and requests without effect", async () => {
      const domain = await harness.domain();
      const start = await last();
      await refused(harness.client.createDomain({ body: { Name: domain.Name } }), "domain_exists");
      await harness.client.createDomain({ body: { Name: "tried.example" } }, { dryRun: true });
      await harness.client.updateDomain({ path: { id: domain.ID }, body: {} });
      await harness.client.changeRecords(
        { path: { id: domain.ID }, body: { Changes: [{ Op: "Create", TypeRecord: "A", IP: "192.0.2.1" }] } },
        { dryRun: true },
      );
      assert.deepEqual(await since(start), []);
    });

    test("of projects and tokens belong to that project", async () => {
      const start = await last();
      const other = await harness.neighbour();
      const path = { id: other.project };
      await harness.client.updateProject({ path, body: { Labels: { a: "" } } });
      assert.deepEqual(brief(await other.client.listEvents()), [
        `project.created ${other.project}`,
        `token.created ${(await other.client.readAccount()).Token.ID}`,
        `project.changed ${other.project}`,
      ]);
      assert.deepEqual(brief(await since(start)), []);
      await harness.client.deleteProject({ path });
      assert.deepEqual(brief(await since(start)), [`project.deleted ${other.project}`]);
    });

    describe("are visible to tokens that can read the object", () => {
      let start: number;
      let domain: number;
      before(async () => {
        start = await last();
        domain = (await harness.domain({ Ip: "192.0.2.1" })).ID;
        await harness.client.createRecordA({ body: { DomainId: domain, Name: "www", IP: "192.0.2.1" } });
      });
      const kinds = async (caller: Caller) =>
        (await caller.client.listEvents({ query: { after: start } })).map(({ Resource }) => Resource);

      test("by scope", async () => {
        const dns = await harness.as(["dns:write"]);
        const admin = await harness.as(["account:admin"]);
        const servers = await harness.as(["server:read", "network:read"]);
        assert.deepEqual(new Set(await kinds(dns)), new Set(["domain", "record"]));
        assert.deepEqual(new Set(await kinds(admin)), new Set(["token"]));
        assert.deepEqual(await kinds(servers), []);
        assert.equal((await servers.client.raw.listEvents()).headers.get("x-total-count"), "0");
      });

      test("by project", async () => {
        const other = await harness.neighbour();
        assert.ok(!(await kinds(other)).includes("domain"));
      });

      test("filtered by type and resource", async () => {
        const www = `record:${(await harness.client.readDomain({ path: { id: domain } })).LinkedRecords[1]?.ID}`;
        const types = async (query: object) => (await since(start, query)).map(({ Type }) => Type);
        assert.deepEqual(await types({ type: "record.*" }), ["record.created"]);
        assert.deepEqual(await types({ type: "domain.created, record.created" }), ["domain.created", "record.created"]);
        assert.deepEqual(await types({ type: "domain.changed" }), []);
        assert.deepEqual(await types({ resource: `domain:${domain}` }), ["domain.created"]);
        assert.deepEqual(await types({ resource: `DOMAIN:${domain},${www}` }), ["domain.created", "record.created"]);
        assert.deepEqual(await types({ resource: www, type: "domain.*" }), []);
        for (const query of [
          "resource=domain",
          "resource=domain:x",
          "resource=bogus:1",
          "type=bogus",
          "type=record.created,bogus.*",
          "after=1e3",
          "after=x",
          "limit=0",
          "limit=1001",
          "cursor=x",
          "limit=a",
        ])
          assert.equal((await harness.request(`GET /event?${query}`)).code, "query_invalid", query);
        assert.deepEqual(await types({ type: "RECORD.*" }), ["record.created"]);
      });
    });

    test("are listed oldest first, 100 per page", async () => {
      const domain = await harness.domain();
      const Changes = Array.from({ length: 250 }, (_, i) => ({
        Op: "Create" as const,
        TypeRecord: "A" as const,
        Name: `h${i}`,
        IP: "192.0.2.1",
      }));
      const start = await last();
      await harness.client.changeRecords({ path: { id: domain.ID }, body: { Changes } });
      const page = await harness.client.raw.listEvents({ query: { after: start } });
      assert.equal(page.answer.length, 100);
      assert.equal(page.headers.get("x-total-count"), "250");
      const names: unknown[] = [];
      for await (const event of harness.client.items("listEvents", {
        query: { after: start, limit: 60, type: "record.*" },
      }))
        names.push((event.Data as { HostName: string }).HostName.split(".")[0]);
      assert.deepEqual(
        names,
        Changes.map(({ Name }) => Name),
      );
      assert.equal((await harness.request("HEAD /event")).status, 405, "a stream has no head without it");
    });

    describe("as a stream", () => {
      const make = async (Text: string) =>
        (await harness.client.createRecordTXT({ body: { DomainId: domain, Text } })).ID;
      let domain: number;
      before(async () => {
        domain = (await harness.domain()).ID;
      });

      test("start with the next event, in the format of server-sent events", async () => {
        const stream = await openStream(harness, "/event");
        assert.equal(stream.response.headers.get("content-type"), "text/event-stream");
        assert.equal(stream.response.headers.get("content-length"), null);
        assert.equal(await stream.next(), "retry: 2000");
        const record = await make("first");
        const frame = await nextEvent(stream);
        const [event] = await harness.client.listEvents({ query: { resource: `record:${record}` } });
        assert.equal(frame, `id: ${event?.ID}\nevent: record.created\ndata: ${JSON.stringify(event)}`);
        stream.close();
      });

      test("are kept open with pings", async () => {
        const stream = await openStream(harness, "/event?type=domain.deleted");
        await stream.next();
        const position = `: position\nid:${await last()}`;
        assert.equal(await stream.next(), position);
        assert.equal(await stream.next(), ": ping");
        assert.equal(await stream.next(), position);
        const record = await make("unseen");
        const [event] = await harness.client.listEvents({ query: { resource: `record:${record}` } });
        // The position also passes events that do not match.
        for (let frame = await stream.next(); frame !== `: position\nid:${event?.ID}`; frame = await stream.next())
          assert.ok(frame?.startsWith(":"), String(frame));
        stream.close();
      });

      test("start after the event in the header or the query, and the header wins", async () => {
        const start = await last();
        for (const text of ["a1", "a2", "a3"]) await make(text);
        const wanted = (await since(start)).map(({ ID }) => ID);
        const [first = 0, second = 0] = wanted;
        for (const [target, headers, from] of [
          [`/event?after=${start}`, {}, 0],
          ["/event", { "Last-Event-ID": String(start) }, 0],
          [`/event?after=${first}`, {}, 1],
          [`/event?after=${start}`, { "Last-Event-ID": String(second) }, 2],
        ] as const) {
          const stream = await openStream(harness, target, headers);
          await stream.next();
          for (const id of wanted.slice(from)) assert.equal(idOf(await nextEvent(stream)), id);
          stream.close();
        }
        const bad = await fetch(`${harness.brume.url}/event`, {
          headers: { Authorization: `Bearer ${harness.token}`, Accept: "text/event-stream", "Last-Event-ID": "x" },
        });
        assert.equal(((await bad.json()) as { code: string }).code, "query_invalid");
      });

      test("can be resumed without gap or duplicate while many clients write", async () => {
        const start = await last();
        const texts = Array.from({ length: 120 }, (_, i) => `w${i}`);
        const work = texts.values();
        const writers = Array.from({ length: 6 }, async () => {
          for (const text of work) await make(text);
        });
        const response: number[] = [];
        let at = start;
        while (response.length < texts.length) {
          const stream = await openStream(harness, "/event", { "Last-Event-ID": String(at) });
          await stream.next();
          for (let i = 0; i < 7 && response.length < texts.length; i++) {
            const frame = await stream.next();
            if (frame?.startsWith(":")) continue;
            at = idOf(frame);
            response.push(at);
          }
          stream.close();
        }
        await Promise.all(writers);
        const all = (await since(start, { limit: 1000 })).map(({ ID }) => ID);
        assert.deepEqual(response, all);
      });

      test("that break before their first matching event continue in the SDK without a gap", async () => {
        let isCut = false;
        const client = createClient({
          url: harness.brume.url,
          token: harness.token,
          async fetch(input, init) {
            const response = await fetch(input, init);
            if (isCut || typeof input !== "string" || !input.includes("/event?")) return response;
            isCut = true;
            // The first connection breaks after its first bytes. The matching event happens before the second one.
            const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
            const first = await reader?.read();
            await reader?.cancel();
            await harness.domain();
            return new Response(first?.value, { headers: response.headers });
          },
        });
        for await (const event of client.events({ types: ["domain.created"], signal: AbortSignal.timeout(60_000) })) {
          assert.ok(isCut && event.Type === "domain.created");
          return;
        }
        assert.fail("The event is missing.");
      });

      test("continue in the SDK after a restart of the service", async () => {
        const start = await last();
        const stop = new AbortController();
        const response: number[] = [];
        const stream = harness.client.events({ after: start, signal: stop.signal, types: ["record.created"] });
        const wanted = [await make("before 1"), await make("before 2")];
        for await (const event of stream) {
          assert.ok("ResourceID" in event);
          response.push(event.ResourceID);
          if (response.length === 2) break;
        }
        await harness.brume.restart();
        wanted.push(await make("after"));
        const again = harness.client.events({ after: start, signal: stop.signal, types: ["record.created"] });
        response.length = 0;
        for await (const event of again) {
          assert.ok("ResourceID" in event);
          response.push(event.ResourceID);
          if (response.length === 3) stop.abort();
        }
        assert.deepEqual(response, wanted);
      });

      test("end with an error if the client missed deleted events", async () => {
        await make("old");
        const newest = await last();
        await make("kept");
        await harness.brume.store.write(async (tx) => {
          await tx.deleteFrom("event").where("id", "<=", newest).execute();
        });
        await harness.brume.restart();
        const oldest = (await since(0))[0]?.ID;
        assert.ok(oldest !== undefined && oldest > newest);
        const stream = await openStream(harness, `/event?after=${newest - 1}`);
        await stream.next();
        assert.equal(await stream.next(), `event: reset\ndata: {"Oldest":${oldest}}`);
        assert.equal(idOf(await nextEvent(stream)), oldest);
        stream.close();
        const fits = await openStream(harness, `/event?after=${newest}`);
        await fits.next();
        assert.equal(idOf(await nextEvent(fits)), oldest);
        fits.close();
      });

      test("end with their token", async () => {
        const made = await harness.client.createToken({ body: { Name: "short", Scopes: ["dns:read"] } });
        const stream = await openStream(harness, "/event", {}, made.Token);
        await stream.next();
        await harness.client.deleteToken({ path: { id: made.ID } });
        let frame = await stream.next();
        while (frame?.startsWith(":")) frame = await stream.next();
        assert.equal(frame, null);
        // The stream must begin before the token expires, also on a slow host.
        for (let seconds = 3; ; seconds *= 2) {
          const ExpiresAt = new Date(Date.now() + seconds * 1000).toISOString();
          const made = await harness.request("POST /token", { Name: "short", Scopes: ["dns:read"], ExpiresAt });
          const expiring = await openStream(harness, "/event", {}, (made.json as { Token?: string }).Token);
          if (made.status !== 200 || expiring.response.status !== 200) continue;
          for (frame = await expiring.next(); frame !== null; ) frame = await expiring.next();
          assert.ok(Date.now() >= Date.parse(ExpiresAt));
          break;
        }
      });

      test("are limited to twenty per token", async () => {
        const caller = await harness.as(["dns:read"]);
        const streams = [];
        for (let i = 0; i < 20; i++) streams.push(await openStream(harness, "/event", {}, caller.token));
        const more = await caller.request("GET /event", undefined, { Accept: "text/event-stream" });
        assert.deepEqual([more.status, more.code], [429, "rate_limited"]);
        assert.ok(Number(more.headers.get("retry-after")) > 0);
        const other = await openStream(harness, "/event");
        assert.equal(other.response.status, 200);
        for (const stream of [...streams, other]) stream.close();
      });
    });
  },
  { limits: { ping: 200 } },
);
