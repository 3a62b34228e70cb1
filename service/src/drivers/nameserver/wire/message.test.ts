import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import fc from "fast-check";
import { TYPE } from "../builtin/zone.ts";
import { createWriter, HEADER, parseQuery, type Records, type Writer } from "./message.ts";
import { nameOf, textOf } from "./name.ts";

interface Decoded {
  readonly answers: readonly {
    readonly name: string;
    readonly type: string;
    readonly ttl: number;
    readonly data: unknown;
  }[];
}
const { decode } = createRequire(import.meta.url)("dns-packet") as { decode(bytes: Uint8Array): Decoded };

function records(owner: string, type: number, ...data: string[]): Records {
  const bytes = data.map((item) => String.fromCharCode(item.length >> 8, item.length & 255) + item).join("");
  return { owner: nameOf(owner), type, ttl: 300, data: bytes, start: 0, end: bytes.length };
}

function written(writer: Writer, from: number): Buffer {
  const message = Buffer.alloc(writer.end);
  writer.copy(message, from);
  return message.subarray(from);
}

const label = fc.constantFrom("a", "bc", "example", "com", "l".repeat(40));
const name = fc.array(label, { maxLength: 5 }).map((labels) => labels.join("."));

test("another decoder reads compressed messages as they were written", () => {
  fc.assert(
    fc.property(
      name,
      fc.array(fc.tuple(name, name, fc.constantFrom(TYPE.NS, TYPE.MX, TYPE.SRV)), { maxLength: 40 }),
      (question, list) => {
        const writer = createWriter();
        const wire = Buffer.from(`${nameOf(question)}\0\0\x01\0\x01`, "latin1");
        writer.start(nameOf(question), HEADER + wire.length);
        for (const [owner, target, type] of list) {
          const fixed = type === TYPE.SRV ? "\0\x01\0\x02\0\x03" : type === TYPE.MX ? "\0\x0a" : "";
          const set = records(owner, type, `${fixed}${nameOf(target)}\0`);
          assert.equal(writer.add(set, 0xffff), set.end);
        }
        const header = Buffer.from([0, 0, 0x80, 0, 0, 1, writer.count >> 8, writer.count & 255, 0, 0, 0, 0]);
        const message = Buffer.concat([header, wire, written(writer, HEADER + wire.length)]);
        assert.equal(message.length, writer.end);
        const targets = decode(message).answers.map(({ name, data }) => {
          const { exchange, target } = (typeof data === "string" ? { target: data } : data) as {
            exchange?: string;
            target?: string;
          };
          return [name, exchange ?? target];
        });
        const dotted = (text: string): string => (text === "" ? "." : text);
        assert.deepEqual(
          targets,
          list.map(([owner, target]) => [dotted(owner), dotted(target)]),
        );
      },
    ),
  );
});

test("a name already in the message is a pointer, SRV targets are not, and targets do not point into the question", () => {
  const writer = createWriter();
  writer.start(nameOf("example.com"), 29);
  writer.add(records("example.com", TYPE.NS, `${nameOf("ns.example.com")}\0`, `${nameOf("n2.example.com")}\0`), 512);
  assert.equal(writer.end, 29 + 2 + 10 + 16 + 2 + 10 + 5);
  writer.add(records("ns.example.com", TYPE.SRV, `\0\0\0\0\0\0${nameOf("ns.example.com")}\0`), 512);
  assert.equal(writer.end, 74 + 2 + 10 + 6 + 16);
});

test("every name keeps its letter case, regardless of earlier names in the message", () => {
  const question = "WwW.eXaMpLe.com";
  const wire = Buffer.from(`\x03WwW\x07eXaMpLe\x03com\0\0\x02\0\x01`, "latin1");
  const mixed = (text: string): string =>
    text
      .split(".")
      .map((label) => String.fromCharCode(label.length) + label)
      .join("");
  const writer = createWriter();
  writer.start(nameOf(question), HEADER + wire.length);
  const list = [
    ["WWW.example.com", "Mail.Example.com"],
    ["www.example.com", "mail.example.com"],
    ["a.www.example.com", "A.www.example.com"],
    ["mail.example.com", "Mail.Example.com"],
    ["x.Example.com", "a.www.example.com"],
  ] as const;
  for (const [owner, target] of list) {
    const data = `${mixed(target)}\0`;
    const bytes = `\0${String.fromCharCode(data.length)}${data}`;
    writer.add({ owner: mixed(owner), type: TYPE.NS, ttl: 1, data: bytes, start: 0, end: bytes.length }, 0xffff);
  }
  const header = Buffer.from([0, 0, 0x80, 0, 0, 1, 0, writer.count, 0, 0, 0, 0]);
  const message = Buffer.concat([header, wire, written(writer, HEADER + wire.length)]);
  const { answers } = decode(message);
  assert.deepEqual(
    answers.map(({ data }) => data),
    list.map(([, target]) => target),
  );
  // An owner without capital letters may end in the question, as the client wrote it.
  assert.deepEqual(
    answers.map(({ name }) => name),
    ["WWW.eXaMpLe.com", "WwW.eXaMpLe.com", "a.WwW.eXaMpLe.com", "mail.example.com", "x.Example.com"],
  );
  assert.equal(answers[4]?.data, "a.www.example.com");
});

test("writing stops at the limit and continues from there", () => {
  const writer = createWriter();
  const set = records("example.com", TYPE.A, "1111", "2222", "3333");
  writer.start(nameOf("example.com"), 29);
  const stopped = writer.add(set, 29 + 2 * 16 + 15);
  assert.deepEqual([stopped, writer.count, writer.end], [12, 2, 61]);
  assert.equal(writer.add({ ...set, start: stopped }, 512), set.end);
  assert.equal(writer.count, 3);
});

test("removed records leave no name for compression", () => {
  const writer = createWriter();
  writer.start(nameOf("example.com"), 29);
  const { end, count } = writer;
  writer.add(records("gone.other.test", TYPE.A, "1111"), 512);
  writer.cut(end, count);
  writer.add(records("gone.other.test", TYPE.A, "1111"), 512);
  assert.equal(written(writer, 29).subarray(0, 17).toString("latin1"), "\x04gone\x05other\x04test\0");
});

test("hashes do not depend on letter case, and names that differ differ", () => {
  const packet = (text: string): Buffer =>
    Buffer.from(`\0\0\0\0\0\x01\0\0\0\0\0\0${nameOf("x")}`.slice(0, 12) + `\x03${text}\0\0\x01\0\x01`, "latin1");
  const [a, b, c] = ["www", "WwW", "wwx"].map((text) => parseQuery(packet(text))?.hash);
  assert.equal(a, b);
  assert.notEqual(a, c);
  assert.equal(textOf("\x03www"), "www");
});

test("the serial of an IXFR query and the offset of a TSIG record are found", () => {
  const soa = `\0\0\x06\0\x01\0\0\0\0\0\x16\0\0\x12\x34\x56\x78${"\0".repeat(16)}`;
  const tsig = `\x01k\0\0\xfa\0\xff\0\0\0\0\0\0`;
  const question = `\x01a\0\0\xfb\0\x01`;
  const query = parseQuery(Buffer.from(`\0\0\0\0\0\x01\0\0\0\x01\0\x01${question}${soa}${tsig}`, "latin1"));
  assert.deepEqual([query?.serial, query?.tsig], [0x12345678, 12 + question.length + soa.length]);
});
