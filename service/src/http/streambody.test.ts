import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { StorageError } from "../store/db.ts";
import { collect, printList, sendTexts } from "./streambody.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-body-"));
const respond: { current: (response: ServerResponse) => void } = { current: () => {} };
const server = createServer((_, response) => respond.current(response)).listen(0, "127.0.0.1");
await once(server, "listening");
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

async function* pieces(count: number, size: number, onEnd: () => void = () => {}): AsyncGenerator<string> {
  try {
    for (let index = 0; index < count; index++) yield String(index % 10).repeat(size);
  } finally {
    onEnd();
  }
}
const request = () =>
  new Promise<IncomingMessage>((resolve, reject) =>
    get({ port: (server.address() as AddressInfo).port, agent: false }, resolve).on("error", reject),
  );

test("a short body is a text", async () => {
  assert.equal(await collect(pieces(3, 2), folder), "001122");
});

test("a long body has a length, and is sent as fast as the client reads", async () => {
  const body = await collect(pieces(300, 100_000), folder);
  assert.ok(typeof body !== "string");
  assert.equal(body.bytes, 30_000_000);
  assert.deepEqual(readdirSync(folder), [], "the file has no name");
  let isSent = false;
  let sent: Promise<void> = Promise.resolve();
  respond.current = (response) => {
    sent = body.send(response).finally(() => {
      isSent = true;
    });
  };
  const response = await request();
  // The sockets of both sides take some megabytes; 30 MB do not fit.
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(isSent, false);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  await sent;
  const text = Buffer.concat(chunks).toString();
  const expected = Array.from({ length: 300 }, (_, index) => String(index % 10).repeat(100_000)).join("");
  assert.ok(text === expected, "all bytes arrive, in order");
});

test("a long body is written and sent with the same memory, and no character is divided", async () => {
  const text = `x${"é😀".repeat(100_000)}`;
  async function* parts(): AsyncGenerator<string> {
    for (let index = 0; index < 20; index++) yield text;
  }
  const body = await collect(parts(), folder);
  assert.ok(typeof body !== "string");
  const memories = new Set<ArrayBufferLike>();
  let count = 0;
  respond.current = (response) => {
    const { write } = response;
    response.write = ((part: Buffer, done: () => void) => {
      memories.add(part.buffer);
      count++;
      return Reflect.apply(write, response, [part, done]) as boolean;
    }) as typeof write;
    void body.send(response);
  };
  const received: Buffer[] = [];
  for await (const chunk of await request()) received.push(chunk as Buffer);
  assert.ok(Buffer.concat(received).equals(Buffer.from(text.repeat(20))));
  assert.ok(count > 100, `${count} parts`);
  assert.ok(memories.size <= 2, `${memories.size} pieces of memory`);
});

test("sending ends when the client closes the connection", async () => {
  const body = await collect(pieces(300, 100_000), folder);
  assert.ok(typeof body !== "string");
  const sent = new Promise<void>((resolve, reject) => {
    respond.current = (response) => void body.send(response).then(resolve, reject);
  });
  (await request()).destroy();
  await sent;
});

test("an error of the source, or of the disk, is thrown", async () => {
  let ended = 0;
  async function* failing(): AsyncGenerator<string> {
    yield* pieces(5, 100_000, () => ended++);
    throw new Error("unreadable");
  }
  await assert.rejects(collect(failing(), folder), /unreadable/);
  await assert.rejects(
    collect(
      pieces(5, 100_000, () => ended++),
      join(folder, "missing"),
    ),
    StorageError,
  );
  assert.equal(ended, 2);
});

test("other work runs while a body is created", async () => {
  let isServed = false;
  async function* slow(): AsyncGenerator<string> {
    setImmediate(() => {
      isServed = true;
    });
    for (let index = 0; index < 10; index++) {
      for (const until = performance.now() + 2; performance.now() < until; );
      yield "x";
    }
    assert.equal(isServed, true);
  }
  assert.equal(await collect(slow(), folder), "x".repeat(10));
});

test("a list is printed as JSON", async () => {
  const print = async (...items: unknown[]) => {
    async function* each() {
      yield* items;
    }
    return collect(printList(each()), folder);
  };
  assert.equal(await print(), "[]");
  assert.equal(await print(1, { a: "b" }), '[1,{"a":"b"}]');
  async function* pieces() {
    yield '{"a":';
    yield '"b"}';
  }
  const long = { list: Array.from({ length: 1000 }, (_, index) => index) };
  assert.equal(await print(pieces(), long, pieces()), `[{"a":"b"},${JSON.stringify(long)},{"a":"b"}]`);
});

test("a long text is sent in parts, as fast as the client reads, and no part divides a character", async () => {
  const text = `x${"😀".repeat(8_000_000)}é`;
  const parts: string[] = [];
  respond.current = (response) => {
    const { write } = response;
    response.write = ((part: string, encoding: "utf8") => {
      parts.push(part);
      return Reflect.apply(write, response, [part, encoding]);
    }) as typeof write;
    void sendTexts(response, ["", text.slice(0, 5), text.slice(5)], "utf8");
  };
  const response = await request();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(parts.length < 200, `${parts.length} parts were written before the client has read`);
  const received: Buffer[] = [];
  for await (const part of response) received.push(part as Buffer);
  assert.ok(Buffer.concat(received).equals(Buffer.from(text)));
  assert.ok(parts.every((part) => part.length <= 65_537 && part.isWellFormed()));
  assert.ok(parts.length > 200, `${parts.length} parts`);
});

test("a text is no longer sent when the client has gone", async () => {
  let sent: Promise<void> = Promise.resolve();
  const begun = new Promise<void>((resolve) => {
    respond.current = (response) => {
      sent = sendTexts(response, ["x".repeat(30_000_000), "x".repeat(30_000_000)], "latin1");
      resolve();
    };
  });
  const response = await request();
  await begun;
  response.destroy();
  await sent;
});
