import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import { connectionOf, type Exchange } from "./exchange.ts";
import { readHead } from "./head.ts";
import { createTurnEnd, receive } from "./payload.ts";

const turnEnd = createTurnEnd();

const limits = { body: 100, bodyTime: 10_000 };

/** Sends `parts`, each when the one before was seen to arrive; what was received, and which events were waited for. */
async function send(t: TestContext, parts: readonly string[]) {
  const left = [...parts];
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => {
    client.destroy();
    server.close();
  });
  const sendNext = () => client.write(left.shift() ?? "");
  const sent = new Promise<{ body: string; events: unknown[] }>((resolve, reject) => {
    server.on("request", (request: IncomingMessage, response) => {
      const on = t.mock.method(request, "on");
      const head = readHead(request.rawHeaders);
      const exchange = { request, response, head, connection: connectionOf(request.socket) } as unknown as Exchange;
      receive(exchange, limits, turnEnd, true).then(
        (bytes) =>
          resolve({ body: Buffer.from(bytes).toString(), events: on.mock.calls.map(({ arguments: [name] }) => name) }),
        reject,
      );
      sendNext();
    });
  });
  sendNext();
  return sent;
}

const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";

test("a body that arrived with its head is used at once", async (t) => {
  assert.deepEqual(await send(t, [`${head}hello`]), { body: "hello", events: [] });
});

test("the reader waits for a body that arrives later", async (t) => {
  const { body, events } = await send(t, [`${head}he`, "llo"]);
  assert.equal(body, "hello");
  assert.ok(events.includes("data"));
});
