/** The way to endpoints: which addresses it goes to, and that neither names, redirections nor slow or endless answers lead elsewhere. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createPlainServer, type LookupFunction } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createSender, type SenderOptions } from "./sender.ts";

const publicAddresses = () => ["198.41.0.4", "2001:503:ba3e::2:30"];

async function withServer(
  listener: RequestListener,
  options: Partial<SenderOptions>,
  prove: (port: number, sender: ReturnType<typeof createSender>) => Promise<void>,
): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const sender = createSender({ allow: ["127.0.0.1"], own: publicAddresses, ...options });
  try {
    await prove((server.address() as AddressInfo).port, sender);
  } finally {
    sender.close();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}

const message = (url: string) => ({ url, headers: {}, body: "{}" });
const never = new AbortController().signal;

/** A resolver that returns the answers of the test, one after the other. */
function answering(...answers: readonly string[][]): {
  lookup: NonNullable<SenderOptions["lookup"]>;
  asked: () => number;
} {
  let lookups = 0;
  const lookup: LookupFunction = (_host, _options, done) => {
    const found = answers[Math.min(lookups++, answers.length - 1)] ?? [];
    setImmediate(() =>
      done(
        null,
        found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      ),
    );
  };
  return { lookup: lookup as unknown as NonNullable<SenderOptions["lookup"]>, asked: () => lookups };
}

test("a name is resolved once for each connection, which uses the checked address", async () => {
  let calls = 0;
  const { lookup, asked } = answering(["127.0.0.1"]);
  await withServer(
    (_request, response) => void (calls++, response.end()),
    { lookup },
    async (port, sender) => {
      assert.deepEqual(await sender.send(message(`http://hook.example:${port}/`), never), { status: 200, error: null });
      assert.deepEqual([calls, asked()], [1, 1]);
    },
  );
});

test("a name is rejected if one of its addresses is not allowed", async () => {
  let calls = 0;
  const { lookup } = answering(["127.0.0.1", "10.0.0.1"]);
  await withServer(
    (_request, response) => void (calls++, response.end()),
    { lookup },
    async (port, sender) => {
      const { status, error } = await sender.send(message(`http://hook.example:${port}/`), never);
      assert.equal(status, null);
      assert.match(error ?? "", /may not call/);
      assert.equal((await sender.judge(`http://hook.example:${port}/`)) === null, false);
      assert.equal(calls, 0);
    },
  );
});

test("literal addresses are checked in every spelling", async () => {
  await withServer(
    (_request, response) => void response.end(),
    { allow: [] },
    async (port, sender) => {
      for (const host of [
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "127.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "localhost",
      ]) {
        const { status, error } = await sender.send(message(`http://${host}:${port}/`), never);
        assert.equal(status, null, host);
        assert.match(error ?? "", /may not call/, host);
      }
    },
  );
});

test("redirections are responses, slow and endless ones are ended, and a lost connection is reported", async () => {
  const listener: RequestListener = (request, response) => {
    if (request.url === "/away") response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
    if (request.url === "/lost") request.socket.destroy();
    if (request.url !== "/endless") return;
    const pour = (): void => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", pour);
    pour();
  };
  const send = (port: number, sender: ReturnType<typeof createSender>, path: string) =>
    sender.send(message(`http://127.0.0.1:${port}${path}`), never);
  await withServer(listener, { time: 100 }, async (port, sender) => {
    const slow = { status: null, error: "The endpoint did not respond within 0.1 seconds." };
    assert.deepEqual(await send(port, sender, "/slow"), slow);
  });
  await withServer(listener, { time: 60_000 }, async (port, sender) => {
    const moved = { status: 302, error: "The endpoint returned status 302." };
    assert.deepEqual(await send(port, sender, "/away"), moved);
    assert.deepEqual(await send(port, sender, "/endless"), { status: 200, error: null });
    const lost = { status: null, error: "Could not reach the endpoint: it closed the connection." };
    assert.deepEqual(await send(port, sender, "/lost"), lost);
    const refused = { status: null, error: "Could not reach the endpoint: it refused the connection." };
    assert.deepEqual(await send(1, sender, "/"), refused);
  });
});

test("an endpoint that switches protocols has not accepted the delivery", async () => {
  const endpoint = createPlainServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.write("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nrest"),
    );
  });
  await new Promise<void>((done) => endpoint.listen(0, "127.0.0.1", done));
  const sender = createSender({ allow: ["127.0.0.1"], own: publicAddresses, time: 1000 });
  try {
    const { port } = endpoint.address() as AddressInfo;
    const answer = await Promise.race([
      sender.send(message(`http://127.0.0.1:${port}/`), never),
      pause(5000, "no end"),
    ]);
    assert.deepEqual(answer, { status: 101, error: "The endpoint returned status 101." });
  } finally {
    sender.close();
    endpoint.close();
  }
});
