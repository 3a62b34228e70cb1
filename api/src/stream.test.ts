import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { createClient } from "./client.ts";
import { describeProblem } from "./errors.ts";
import { createFrameReader, type Frame } from "./stream.ts";

const readAll = (pieces: readonly string[]): Frame[] => {
  const push = createFrameReader();
  return pieces.flatMap((piece) => push(piece));
};

test("frames are parsed as in the standard", () => {
  assert.deepEqual(readAll(["retry: 2000\n\n: ping\n\nid: 7\nevent: a.b\ndata: {\ndata:}\n\ndata: x\n\nid\n\n"]), [
    { id: null, event: "message", data: "", retry: 2000 },
    { id: "7", event: "a.b", data: "{\n}", retry: null },
    { id: "7", event: "message", data: "x", retry: null },
    { id: "", event: "message", data: "", retry: null },
  ]);
});

test("the split of the bytes and the form of line ends do not matter", () => {
  const text = "id: 1\nevent: e\ndata: first\n\n: note\nretry: 5\nid: 2\ndata:  second\n\n";
  const unsplit = readAll([text]);
  assert.equal(unsplit.length, 2);
  assert.equal(unsplit[1]?.data, " second");
  for (const ending of ["\n", "\r\n", "\r"]) {
    const written = text.replaceAll("\n", ending);
    for (let size = 1; size <= written.length; size++) {
      const pieces = written.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
      // The end shows whether a LF follows the last CR.
      assert.deepEqual(readAll([...pieces, ": end"]), unsplit, `${JSON.stringify(ending)} in pieces of ${size}`);
    }
  }
});

test("unknown frames are ignored", () => {
  assert.deepEqual(readAll(["unknown: 1\n\nretry: soon\n\nid: a\0b\n\nno colon\n\n"]), []);
});

const event = (id: number) => ({ ID: id, Type: "record.created", Data: null });
const frame = (id: number) => `id: ${id}\nevent: record.created\ndata: ${JSON.stringify(event(id))}\n\n`;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A service that answers each connection with the next handler, and a client of it that does not wait between connections. */
async function serve(handlers: readonly Handler[], options: { retries?: number } = {}) {
  const requests: IncomingMessage[] = [];
  const slept: number[] = [];
  let expire: (() => void) | null = null;
  const server = createServer((request, response) => {
    const handler = handlers[requests.length];
    requests.push(request);
    if (handler) handler(request, response);
    else response.writeHead(500).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = createClient({
    url: `http://127.0.0.1:${port}`,
    token: "secret",
    retries: options.retries ?? 2,
    random: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const stop = () => {
          const reason: unknown = signal?.reason;
          reject(reason);
        };
        // The watch over silent connections is the longest sleep; it ends when the test calls `expire`.
        if (ms === 45_000) {
          expire = resolve;
          signal?.addEventListener("abort", () => {
            expire = null;
            stop();
          });
          return;
        }
        slept.push(ms);
        if (signal?.aborted) stop();
        else setImmediate(resolve);
      }),
  });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  /** Ends the watch over the connection. Returns false if nothing waits for data. */
  const expireWatch = (): boolean => {
    expire?.();
    return expire !== null;
  };
  return { client, requests, slept, expireWatch, close };
}

const stream =
  (text: string, after: (response: ServerResponse) => void): Handler =>
  (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => after(response));
  };
const stay = () => undefined;
const end = (response: ServerResponse) => response.end();
const tear = (response: ServerResponse) => response.destroy();

test("a stream that ends or breaks is resumed without missing or repeated events", async () => {
  const { client, requests, slept, close } = await serve([
    stream(`retry: 1000\n\n${frame(5)}${frame(6)}`, end),
    stream(frame(6) + frame(7) + frame(8).slice(0, 20), tear),
    (_, response) => response.writeHead(503, { "retry-after": "1" }).end(),
    stream(frame(8), stay),
  ]);
  const ids: unknown[] = [];
  for await (const one of client.events({ after: 4, types: ["record.*", "domain.deleted"], resources: ["domain:3"] })) {
    assert.notEqual(one.Type, "reset");
    if ("ID" in one) ids.push(one.ID);
    if (ids.length === 4) break;
  }
  assert.deepEqual(ids, [5, 6, 7, 8]);
  assert.deepEqual(
    requests.map(({ headers }) => headers["last-event-id"]),
    ["4", "6", "7", "7"],
  );
  assert.equal(requests[0]?.url, "/event?type=record.*%2Cdomain.deleted&resource=domain%3A3");
  assert.equal(requests[0]?.headers.accept, "text/event-stream");
  assert.equal(requests[0]?.headers.authorization, "Bearer secret");
  // The pause that the stream requested, and that of the transport.
  assert.deepEqual(slept, [1100, 1200, 1400]);
  close();
});

test("leaving the loop closes the connection", async () => {
  let closed: () => void = () => undefined;
  const isClosed = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const { client, close } = await serve([
    (request, response) => {
      response.on("close", closed);
      stream(frame(1), stay)(request, response);
    },
  ]);
  for await (const one of client.events()) {
    assert.deepEqual(one, event(1));
    break;
  }
  await isClosed;
  close();
});

test("a signal ends the stream without an error, also while it is idle", async () => {
  const stop = new AbortController();
  const { client, requests, close } = await serve([stream(frame(1), stay)]);
  const seen: unknown[] = [];
  for await (const one of client.events({ signal: stop.signal })) {
    seen.push(one);
    setImmediate(() => stop.abort());
  }
  assert.deepEqual(seen, [event(1)]);
  for await (const one of client.events({ signal: stop.signal })) assert.fail(JSON.stringify(one));
  assert.equal(requests.length, 1);
  close();
});

test("deleted events are reported as a reset, and the stream continues after them", async () => {
  const { client, requests, close } = await serve([
    stream('event: reset\ndata: {"Oldest":90}\n\n', end),
    stream(frame(90), stay),
  ]);
  const seen: unknown[] = [];
  for await (const one of client.events({ after: 3 })) if (seen.push(one) === 2) break;
  assert.deepEqual(seen, [{ Type: "reset", Oldest: 90 }, event(90)]);
  assert.equal(requests[1]?.headers["last-event-id"], "89");
  close();
});

test("a connection without any data is closed", async () => {
  const { client, requests, expireWatch, close } = await serve([stream(frame(1), stay), stream(frame(2), stay)]);
  const events = client.events();
  assert.deepEqual((await events.next()).value, event(1));
  const second = events.next();
  while (!expireWatch()) await new Promise(setImmediate);
  assert.deepEqual((await second).value, event(2));
  await events.return();
  assert.equal(requests[1]?.headers["last-event-id"], "1");
  close();
});

test("a deleted token ends the stream with its error", async () => {
  const problem = JSON.stringify(describeProblem("token_expired", "The token has expired.", "r1"));
  const { client, close } = await serve([
    stream(frame(1), end),
    (_, response) => response.writeHead(401, { "content-type": "application/problem+json" }).end(problem),
  ]);
  const all = async () => {
    for await (const one of client.events()) assert.deepEqual(one, event(1));
  };
  await assert.rejects(all, { name: "ApiError", code: "token_expired" });
  close();
});

test("a stream that never opened stops its attempts", async () => {
  const refuse: Handler = (request) => request.socket.destroy();
  const { client, requests, close } = await serve([refuse, refuse, refuse, refuse], { retries: 2 });
  await assert.rejects(client.events().next(), { name: "ConnectionError" });
  assert.equal(requests.length, 3);
  close();
});
