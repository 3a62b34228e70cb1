import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { connectVici, decode, encode, type Message, sections, text, texts } from "./vici.ts";

const folder = mkdtempSync(join(tmpdir(), "brume-vici-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes as VICI's own documentation lays them out. */
const sample =
  "\x03\x01a\x00\x01b" +
  "\x01\x01s" +
  "\x04\x01l" +
  "\x05\x00\x01x" +
  "\x05\x00\x00" +
  "\x06" +
  "\x01\x01e\x02" +
  "\x02";

test("a message consists of its elements in order", () => {
  const message = { a: "b", s: { l: ["x", ""], e: {} } };
  assert.equal(encode(message).toString("latin1"), sample);
  assert.deepEqual(JSON.parse(JSON.stringify(decode(Buffer.from(sample, "latin1")))), message);
});

test("undefined values are omitted, and too long ones rejected", () => {
  assert.equal(encode({ a: undefined }).length, 0);
  assert.throws(() => encode({ ["n".repeat(256)]: "" }), RangeError);
  assert.throws(() => encode({ a: "v".repeat(65_536) }), RangeError);
});

test("every message is decoded as it was encoded, for any keys", () => {
  const key = fc.oneof(fc.string({ unit: "grapheme", maxLength: 20 }), fc.constantFrom("__proto__", "constructor"));
  const value = fc.letrec((tie) => ({
    message: fc.dictionary(
      key,
      fc.oneof(
        { maxDepth: 3 },
        fc.string({ unit: "grapheme" }),
        fc.array(fc.string()),
        tie("message") as fc.Arbitrary<Message>,
      ),
    ),
  })).message as fc.Arbitrary<Message>;
  fc.assert(
    fc.property(value, (message) => {
      assert.equal(JSON.stringify(decode(encode(message))), JSON.stringify(message));
    }),
    { numRuns: 300 },
  );
});

test("any bytes are decoded or throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        encode(decode(Buffer.from(bytes)));
      } catch (error) {
        assert.match((error as Error).message, /^VICI: /);
      }
    }),
    { numRuns: 2000 },
  );
  const cut = Buffer.from(sample, "latin1");
  for (let length = 1; length < cut.length; length++)
    if (length !== 6) assert.throws(() => decode(cut.subarray(0, length)), `${length} bytes`);
});

test("parts of a message are found, and missing ones are empty", () => {
  const message = decode(encode({ a: "b", l: ["x"], s: { c: "d" } }));
  assert.deepEqual([text(message, "a"), text(message, "l"), text(undefined, "a")], ["b", "", ""]);
  assert.deepEqual([texts(message, "l"), texts(message, "a")], [["x"], []]);
  assert.deepEqual(
    sections(message).map(([name, section]) => [name, text(section, "c")]),
    [["s", "d"]],
  );
});

const framed = (...parts: readonly (string | Buffer)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : part)));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
};
const response = (message: Message): Buffer => framed("\x01", encode(message));

let sockets = 0;
/** A charon that responds to each request with the result of `answer`. */
async function serve(answer: (request: string, socket: Socket) => void) {
  const path = join(folder, `${sockets++}`);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (let rest = chunk; rest.length > 0; rest = rest.subarray(4 + rest.readUInt32BE()))
        answer(rest.toString("latin1", 4, 4 + rest.readUInt32BE()), socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { path, close: () => server.close() };
}

test("responses are matched in order, in pieces or all at once", async () => {
  const { path, close } = await serve((request, socket) => {
    for (const byte of response({ echo: request.slice(2, 3) })) socket.write(Buffer.of(byte));
  });
  const vici = await connectVici(path);
  const answers = await Promise.all(["a", "b", "c"].map((command) => vici.call(command)));
  assert.deepEqual(
    answers.map((answer) => text(answer, "echo")),
    ["a", "b", "c"],
  );
  vici.close();
  close();
});

test("a stream contains the events until the response, and a listener gets all later ones", async () => {
  const event = (n: string) => framed("\x07\x02sa", encode({ n }));
  const { path, close } = await serve((request, socket) => {
    if (request.startsWith("\x00")) socket.write(Buffer.concat([event("1"), event("2"), response({})]));
    else socket.write(Buffer.concat([framed("\x05"), ...(request === "\x03\x02up" ? [framed("\x07\x02up")] : [])]));
  });
  const vici = await connectVici(path);
  const seen = await vici.stream("list", "sa");
  assert.deepEqual(
    seen.map((message) => text(message, "n")),
    ["1", "2"],
  );
  await new Promise<void>((resolve, reject) => {
    vici.listen("up", () => resolve()).catch(reject);
  });
  vici.close();
  close();
});

test("an error contains the text of charon, and the connection continues", async () => {
  const { path, close } = await serve((request, socket) =>
    socket.write(
      request.includes("bad")
        ? response({ success: "no", errmsg: "no such thing" })
        : request.includes("huh")
          ? framed("\x02")
          : response({ success: "yes" }),
    ),
  );
  const vici = await connectVici(path);
  await assert.rejects(vici.call("bad"), /VICI bad: no such thing/);
  await assert.rejects(vici.call("huh"), /charon does not know huh/);
  assert.equal(text(await vici.call("good"), "success"), "yes");
  vici.close();
  close();
});

test("a timeout, invalid data and an end close the connection, once", async () => {
  const endings: readonly (readonly [string, (socket: Socket) => void, RegExp, limit?: number])[] = [
    ["silence", () => {}, /no response within 50 ms/, 50],
    ["a packet without end", (socket) => socket.write(Buffer.of(255, 255, 255, 255)), /a packet of/],
    ["an empty packet", (socket) => socket.write(Buffer.alloc(4)), /a packet of 0 bytes/],
    ["a broken message", (socket) => socket.write(framed("\x01\x03")), /ends too early/],
    ["an end", (socket) => socket.destroy(), /closed/],
  ];
  for (const [name, act, expected, limit = 60_000] of endings) {
    const { path, close } = await serve((_, socket) => act(socket));
    const vici = await connectVici(path);
    let ended = 0;
    const end = new Promise<void>((resolve) => {
      vici.onClose(() => {
        ended++;
        resolve();
      });
    });
    await assert.rejects(vici.call("version", {}, limit), expected, name);
    await end;
    await assert.rejects(vici.call("version", {}, 50), /closed/, name);
    assert.equal(ended, 1);
    close();
  }
});

test("a missing socket is an error at once", async () => {
  await assert.rejects(connectVici(join(folder, "nobody")), /ENOENT/);
});
