/** Responses that arrive in any parts, as `node:http` writes them, and what is no response. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { test } from "node:test";
import { createResponseReader } from "./response.ts";

/** Returns the bytes that `node:http` sends for this handler. */
async function bytesOf(handle: RequestListener): Promise<Buffer> {
  const server = createServer({ keepAliveTimeout: 0 }, handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.end("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  server.close();
  return Buffer.concat(parts);
}

const after = Buffer.from("HTTP/1.1 200");

test("a response is read in any parts, and the bytes after it are returned", async () => {
  const cases: [string, RequestListener, string, string[]][] = [
    ["a length", (_, out) => out.writeHead(200, { "content-length": 6, "X-A": "b" }).end("é{}1\n"), "é{}1\n", []],
    ["no body", (_, out) => out.writeHead(404, { "content-length": 0 }).end(), "", []],
    [
      "chunks",
      (_, out) => {
        out.writeHead(200);
        const text = Buffer.from('{"note":"é"}\n{"no');
        // Between the two bytes of the letter.
        out.write(text.subarray(0, 10));
        out.write(text.subarray(10));
        out.end('te":1}\n{"answer":2}\n');
      },
      '{"answer":2}',
      ['{"note":"é"}', '{"note":1}', '{"answer":2}'],
    ],
  ];
  for (const [name, handle, text, lines] of cases) {
    const whole = Buffer.concat([await bytesOf(handle), after]);
    for (let size = 1; size <= whole.length; size++) {
      const found: string[] = [];
      const reader = createResponseReader(lines.length === 0 ? undefined : (line) => found.push(line));
      let rest: Buffer | null = null;
      let at = 0;
      while (rest === null && at < whole.length) {
        rest = reader.take(whole.subarray(at, at + size));
        at += size;
      }
      assert.deepEqual([reader.reply.text, found], [text, lines], `${name}, parts of ${size} bytes`);
      assert.ok(rest !== null && after.subarray(0, rest.length).equals(rest));
      assert.ok(reader.reply.status === 200 || reader.reply.status === 404);
    }
  }
});

test("a connection that the agent closes is not used again", async () => {
  const reader = createResponseReader();
  reader.take(await bytesOf((_, out) => out.writeHead(400, { connection: "close", "content-length": 2 }).end("{}")));
  assert.deepEqual([reader.reply.status, reader.reply.text, reader.keeps], [400, "{}", false]);
});

test("bytes that are no response are errors", () => {
  for (const [text, reason] of [
    ["SSH-2.0-x\r\n\r\n", /not HTTP/],
    ["HTTP/1.0 200 OK\r\n\r\n", /not HTTP/],
    ["HTTP/1.1 200 OK\r\n\r\n", /no length/],
    ["HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n", /no length/],
    ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", /no size/],
    [`HTTP/1.1 200 OK\r\n${"x".repeat(20_000)}`, /too large/],
    [`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${"1".repeat(20_000)}`, /too long/],
  ] as const)
    assert.throws(() => createResponseReader().take(Buffer.from(text)), reason);
});
