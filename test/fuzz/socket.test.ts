/**
 * Hostile sockets: ambiguous syntax, and clients that are slow, silent, gone or too many. Each gets an error or a closed connection, no
 * body is parsed as another request, and other clients are served.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@brume/api/client.ts";
import { dial, sendAndClose } from "../support/httpsocket.ts";
import { type Random, withSeed } from "../support/random.ts";
import { createTestService, type TestService } from "../support/testservice.ts";
import { waitUntil } from "../support/waituntil.ts";

let brume: TestService;
let port: number;
let auth: string;
let hiddenCount = 0;

before(async () => {
  brume = await createTestService("sqlite", {
    limits: { headersTime: 2000, bodyTime: 2000, idleTime: 2000, ping: 200 },
  });
  port = Number(new URL(brume.url).port);
  // A connection that stays open could be used just when the service closes it as idle.
  const fetchOnce: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), connection: "close" } });
  brume.client = createClient({ url: brume.url, token: brume.token, retries: 0, fetch: fetchOnce });
  auth = `Authorization: Bearer ${brume.token}`;
  await brume.client.createDomain({ body: { Name: "steady.test", Ip: "192.0.2.1" } });
});
after(() => brume.close());

/** Asserts that other clients are served and that nothing was changed. */
async function assertOthersServed(): Promise<void> {
  const { LinkedRecords } = await brume.client.readDomain({ path: { id: 1 } });
  assert.equal(LinkedRecords.length, 1);
  assert.deepEqual(await brume.resolver.resolve4("steady.test"), ["192.0.2.1"]);
}

const statusesOf = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
const random = (withRandom: (random: Random) => Promise<void>) => () => withSeed(withRandom);

suite("syntax that two parsers would parse differently", () => {
  /** A request that must not be executed: its bytes belong to the body of the request in front of it. */
  const hidden = (): string => {
    const body = JSON.stringify({ Name: `smuggled${++hiddenCount}.test` });
    return `POST /dns HTTP/1.1\r\n${auth}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const post = (headers: string, body: string): string =>
    `POST /dns/1/changeset HTTP/1.1\r\n${auth}\r\n${headers}\r\n\r\n${body}`;
  const chunked = "Transfer-Encoding: chunked";
  const length = (text: string) => `Content-Length: ${text.length}`;

  const shapes: Record<string, () => string> = {
    "chunks and a length": () => post(`${chunked}\r\nContent-Length: 5`, `0\r\n\r\n${hidden()}`),
    "a length and chunks": () => post(`Content-Length: 5\r\n${chunked}`, `0\r\n\r\n${hidden()}`),
    "two lengths": () => post(`Content-Length: 0\r\n${length(hidden())}`, hidden()),
    "a list of lengths": () => post("Content-Length: 0, 150", hidden()),
    "a length with a sign": () => post("Content-Length: +0", hidden()),
    "a length in hexadecimal": () => post("Content-Length: 0x0", hidden()),
    "a length with a blank inside": () => post("Content-Length: 0 1", hidden()),
    "a length in other digits": () => post("Content-Length: \u0660", hidden()),
    "a blank before the colon": () => post("Transfer-Encoding : chunked", `0\r\n\r\n${hidden()}`),
    "a folded line": () => post("Transfer-Encoding:\r\n chunked\r\nContent-Length: 5", `0\r\n\r\n${hidden()}`),
    "a folded length": () => post("X: y\r\n Content-Length: 5\r\nContent-Length: 0", hidden()),
    "a line that begins with a blank": () => `GET /dns HTTP/1.1\r\n ${auth}\r\n\r\n`,
    "a vertical tab": () => post("Transfer-Encoding:\x0bchunked", `0\r\n\r\n${hidden()}`),
    "another coding": () => post("Transfer-Encoding: xchunked", `0\r\n\r\n${hidden()}`),
    "chunks that are not last": () => post("Transfer-Encoding: chunked, identity", `0\r\n\r\n${hidden()}`),
    "two codings in two lines": () => post(`${chunked}\r\nTransfer-Encoding: x`, `0\r\n\r\n${hidden()}`),
    "a bare CR": () => post("X: y\rContent-Length: 0", hidden()),
    "a bare LF": () => post("X: y\nContent-Length: 0", hidden()),
    "NUL in a header": () => post("X: y\0z\r\nContent-Length: 0", hidden()),
    "an empty name": () => post(": x\r\nContent-Length: 0", hidden()),
    "a name of one blank": () => post(" : x\r\nContent-Length: 0", hidden()),
    "no colon": () => post("nonsense\r\nContent-Length: 0", hidden()),
    "a name that is not ASCII": () => post("Contént-Length: 0", hidden()),
    "a chunk with a sign": () => post(chunked, `-1\r\n${hidden()}`),
    "a chunk in another notation": () => post(chunked, `0x5\r\nabcde\r\n0\r\n\r\n${hidden()}`),
    "an endless chunk": () => post(chunked, `${"F".repeat(17)}\r\n${hidden()}`),
    "a chunk longer than all memory": () => post(chunked, `FFFFFFFFFFFF\r\n${hidden()}`),
    "a chunk without a size": () => post(chunked, `\r\n${hidden()}`),
    "a chunk that is longer than its size": () => post(chunked, `2\r\nabcdef\r\n0\r\n\r\n${hidden()}`),
    "a chunk that ends in a bare LF": () => post(chunked, `0\n\n${hidden()}`),
    "a chunk with an endless extension": () => post(chunked, `1;${"x".repeat(100_000)}\r\na\r\n0\r\n\r\n`),
    "trailers without end": () => post(chunked, `0\r\n${"x: y\r\n".repeat(20_000)}\r\n`),
    "an unknown version": () => `GET /dns HTTP/9.9\r\n${auth}\r\n\r\n`,
    "a version with a CR": () => `GET /dns HTTP/1.1\r\r\n${auth}\r\n\r\n`,
  };

  for (const [name, shape] of Object.entries(shapes))
    test(name, async () => {
      const statuses = statusesOf(await sendAndClose(port, Buffer.from(shape(), "latin1")));
      assert.ok(statuses.length <= 1, `${statuses.length} answers to one request`);
      for (const status of statuses) assert.ok(status >= 400 && status < 500, `it was answered ${status}`);
      assert.deepEqual(await brume.client.listDomains({ query: { name: "smuggled*" } }), []);
      await assertOthersServed();
    });
});

suite("garbage", () => {
  test(
    "requests with a few bytes changed, hundreds of them in a row",
    random(async ({ below, chance }) => {
      const read = `GET /dns?limit=2 HTTP/1.1\r\n${auth}\r\n\r\n`;
      const change = `PUT /dns/1 HTTP/1.1\r\n${auth}\r\nContent-Length: 13\r\n\r\n{"Labels":{}}`;
      const mutate = (text: string): Buffer => {
        const bytes = Buffer.from(text.repeat(1 + below(3)));
        for (let i = below(6); i > 0; i--) bytes[below(bytes.length)] = below(256);
        return chance(20) ? bytes.subarray(0, below(bytes.length)) : bytes;
      };
      for (let turn = 0; turn < 4; turn++) {
        const packets = Array.from({ length: 150 }, () => mutate(chance(50) ? read : change));
        const all = await Promise.all(packets.map((packet) => sendAndClose(port, packet)));
        all.forEach((text, i) => {
          for (const status of statusesOf(text))
            assert.ok(status < 500, `${status} to ${JSON.stringify(packets[i]?.toString("latin1"))}`);
        });
      }
      await assertOthersServed();
    }),
  );

  test(
    "bytes of all kinds",
    random(async ({ below }) => {
      for (let turn = 0; turn < 5; turn++) {
        const packets = Array.from({ length: 40 }, () =>
          Buffer.from(Array.from({ length: below(2000) }, () => below(256))),
        );
        for (const text of await Promise.all(packets.map((packet) => sendAndClose(port, packet))))
          for (const status of statusesOf(text)) assert.ok(status >= 400 && status < 500);
      }
      await assertOthersServed();
    }),
  );
});

/** Opens many connections and sends the same text on each. A refused client has its response. */
async function openSockets(count: number, text: string): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, "127.0.0.1").on("error", () => {}));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) socket.resume().write(text);
  return sockets;
}

const gone = (sockets: readonly Socket[]): Promise<unknown> =>
  Promise.all(sockets.map((socket) => (socket.closed ? Promise.resolve() : once(socket, "close"))));

suite("many and slow", () => {
  const halves: Record<string, string> = {
    "that send nothing": "",
    "that stop in the middle of a header": "GET /dns HTTP/1.1\r\nX-Slow: ",
    "that stop in the middle of a body": `PUT /dns/1 HTTP/1.1\r\nContent-Length: 100\r\n\r\n{`,
    "that stop in the middle of a chunk": `PUT /dns/1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{`,
  };
  for (const [name, text] of Object.entries(halves))
    test(`hundreds of connections ${name} do not block others, and are closed in the end`, async () => {
      const sockets = await openSockets(400, text.replace("\r\n", `\r\n${auth}\r\n`));
      await assertOthersServed();
      await gone(sockets);
      await assertOthersServed();
    });

  test("a header that arrives byte by byte is rejected as too slow", async () => {
    const line = await dial(port);
    let isOpen = true;
    line.socket.on("close", () => {
      isOpen = false;
    });
    const text = `GET /dns HTTP/1.1\r\nX: ${"x".repeat(4000)}`;
    for (let i = 0; i < text.length && isOpen && line.socket.readableLength === 0; i++) {
      line.send(text.charAt(i));
      await sleep(20);
    }
    assert.match(await line.rest(), /^HTTP\/1\.1 408 /);
  });

  test(
    "clients that disconnect during changes leave no incomplete change",
    random(async ({ below }) => {
      const made = await brume.client.createDomain({ body: { Name: "hangup.test" } });
      const count = 300;
      const body = (i: number) =>
        JSON.stringify({
          Changes: ["a", "b"].map((part) => ({ Op: "Create", TypeRecord: "A", Name: `${part}${i}`, IP: "10.0.0.1" })),
        });
      await Promise.all(
        Array.from({ length: count }, async (_, i) => {
          const text = body(i);
          const [socket] = (await openSockets(
            1,
            `POST /dns/${made.ID}/changeset HTTP/1.1\r\n${auth}\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
          )) as [Socket];
          await sleep(below(30));
          if (i % 2 === 0) socket.resetAndDestroy();
          else socket.destroy();
        }),
      );
      const count2 = async (): Promise<number> =>
        (await brume.client.readDomain({ path: { id: made.ID } })).LinkedRecords.length;
      for (let before = -1, now = await count2(); now !== before; before = now, now = await count2()) await sleep(100);
      const { LinkedRecords } = await brume.client.readDomain({ path: { id: made.ID } });
      const names = LinkedRecords.map(({ HostName }) => HostName.slice(1));
      for (const name of names)
        assert.equal(names.filter((other) => other === name).length, 2, `${name} has only half of its records`);
      await assertOthersServed();
    }),
  );

  test("unread streams block nothing, and one over the limit is rejected", async () => {
    const streamRequest = `GET /event HTTP/1.1\r\n${auth}\r\nAccept: text/event-stream\r\n\r\n`;
    const openUnread = async () => {
      const line = await dial(port);
      line.send(streamRequest);
      await line.until("retry: 2000\n\n");
      line.socket.pause();
      return line;
    };
    const lines = await Promise.all(Array.from({ length: 20 }, openUnread));
    assert.match(
      await sendAndClose(port, streamRequest.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")),
      /^HTTP\/1\.1 429 /,
    );
    const { ID } = await brume.client.createDomain({ body: { Name: "events.test" } });
    const Text = "x".repeat(4000);
    for (let from = 0; from < 200; from += 40)
      await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          brume.client.createRecordTXT({ body: { DomainId: ID, Name: `e${from + i}`, Text } }),
        ),
      );
    await assertOthersServed();
    for (const line of lines) line.close();
    // Each stream receives the end of the connection, one after the other.
    const openStream = async () => {
      const line = await dial(port);
      line.send(streamRequest);
      const head = await line.until("\r\n\r\n");
      line.close();
      return head;
    };
    await waitUntil("a stream", openStream, (head) => head.startsWith("HTTP/1.1 200"), 20);
  });

  test("a stream starts at any valid id, or returns an error", async () => {
    for (const start of ["0", "1", "999999999999999", "-1", "1e3", "9".repeat(40), "\u0661", " ", "'", "0x1"]) {
      const line = await dial(port);
      line.send(
        Buffer.from(
          `GET /event HTTP/1.1\r\n${auth}\r\nAccept: text/event-stream\r\nLast-Event-ID: ${start}\r\n\r\n`,
          "latin1",
        ),
      );
      assert.match(await line.until("\r\n\r\n"), /^HTTP\/1\.1 [24]00 /);
      line.close();
    }
  });
});
