import assert from "node:assert/strict";
import { test } from "node:test";
import { type RecordType, recordSpecs } from "@brume/api/record/types.ts";
import fc from "fast-check";
import { applyBatch, createBatch } from "../builtin/change.ts";
import { createZones } from "../builtin/zones.ts";
import type { RecordData, RecordSet } from "../interface.ts";
import { parseQuery, type Query } from "../wire/message.ts";
import { createDirect, type Direct } from "./direct.ts";
import { clientAt } from "./ratelimit.ts";
import { createResponder } from "./responder.ts";

const soa = { mname: "ns.example.com", rname: "h.ns.a", ttl: 60, refresh: 1, retry: 2, expire: 3, minimum: 4 };
const set = (owner: string, type: RecordType, ...data: RecordData[]): RecordSet => {
  return { owner, type: recordSpecs[type], ttl: 77, data };
};
const long = "x".repeat(200);

const sets: Record<string, RecordSet[]> = {
  "example.com": [
    set("example.com", "NS", ["ns.example.com"]),
    set("example.com", "A", ["192.0.2.9"]),
    set("ns.example.com", "A", ["192.0.2.1"], ["192.0.2.2"], ["192.0.2.3"]),
    set("ns.example.com", "AAAA", ["2001:db8::1"]),
    set("a.b.example.com", "TXT", [["one", "two"]], [["three"]]),
    set("WwW.b.example.com", "A", ["192.0.2.4"]),
    set("*.b.example.com", "A", ["192.0.2.5"]),
    set("*.b.example.com", "MX", [10, "ns.example.com"]),
    set("c.example.com", "CNAME", ["ns.example.com"]),
    set("large.example.com", "TXT", [[long, long]], [[long, long]], [[long, long]], [[long, long]]),
  ],
  "c.test": [set("cut.c.test", "NS", ["ns.example.com"]), set("a.b.c.test", "A", ["192.0.2.6"])],
  "b.c.test": [set("*.b.c.test", "SRV", [1, 2, 3, "ns.example.com"]), set("x.b.c.test", "A", ["192.0.2.7"])],
  "z.test": [set("y.z.test", "AAAA", ["2001:db8::2"])],
};

function open() {
  const zones = createZones(7);
  const batch = createBatch();
  batch.add(Object.entries(sets).map(([zone, own]) => ({ zone, base: null, serial: 1, soa, sets: own })));
  for (const _ of applyBatch(zones, batch.take(), [])) continue;
  const error = (error: unknown): never => {
    throw error;
  };
  const options = { limiter: null, limitLoopback: false, keys: new Map(), mayTransfer: () => false, now: Date.now };
  return { zones, responder: createResponder({ ...options, zones, error }) };
}

const label = fc.constantFrom("a", "b", "c", "ns", "www", "WWW", "*", "cut", "large", "y", "x", "example", "Test");
const zone = fc.constantFrom("example.com", "EXAMPLE.com", "c.test", "b.c.test", "z.test", "test", "com", "");
const codes = [1, 2, 5, 6, 12, 15, 16, 28, 33, 43, 99, 255, 65_280];
const question = fc.record({
  labels: fc.array(label, { maxLength: 3 }),
  zone,
  type: fc.constantFrom(...codes),
  klass: fc.constantFrom(1, 1, 1, 3),
  opt: fc.constantFrom(null, 512, 1232, 4096),
  bits: fc.constantFrom(0, 1),
});

interface Question {
  readonly labels: readonly string[];
  readonly zone: string;
  readonly type: number;
  readonly klass: number;
  readonly opt: number | null;
  readonly bits: number;
}

function packetOf({ labels, zone: apex, type, klass, opt, bits }: Question): Buffer {
  const names = [...labels, ...(apex === "" ? [] : apex.split("."))];
  const name = names.map((text) => String.fromCharCode(text.length) + text).join("");
  const packet = Buffer.from(
    `\x12\x34\0\0\0\x01\0\0\0\0\0\0${name}\0\0\0\0\0${opt === null ? "" : "\0\0\x29\0\0\0\0\x80\0\0\0"}`,
    "latin1",
  );
  const end = 12 + name.length + 5;
  packet[2] = bits;
  packet.writeUInt16BE(type, end - 4);
  packet.writeUInt16BE(klass, end - 2);
  if (opt !== null) {
    packet[11] = 1;
    packet.writeUInt16BE(opt, end + 3);
  }
  return packet;
}

function answerDatagram(responder: ReturnType<typeof open>["responder"], packet: Buffer): Buffer {
  const buffer = Buffer.alloc(0xffff, 0xee);
  packet.copy(buffer);
  return buffer.subarray(0, responder.udp(buffer, packet.length, clientAt("192.0.2.1")));
}

test("a direct answer has the bytes of the answer that is composed record by record", () => {
  const { responder } = open();
  fc.assert(
    fc.property(question, (asked) => {
      const packet = packetOf(asked);
      // Over TCP no answer is direct.
      const composed = [...responder.tcp(packet, "192.0.2.1")][0] as Buffer;
      const answer = answerDatagram(responder, packet);
      if (((answer[2] as number) & 2) !== 0) return;
      assert.equal(answer.toString("hex"), composed.toString("hex"));
    }),
    { numRuns: 3000 },
  );
});

test("the usual queries are answered directly, all others are not", () => {
  const { zones } = open();
  const answer = createDirect(zones);
  const result: Direct = { end: 0, rcode: 0, kind: "data", zone: undefined };
  const isDirect = (labels: string[], apex: string, type: number, opt: number | null = 1232): boolean => {
    const packet = Buffer.alloc(0xffff);
    const size = packetOf({ labels, zone: apex, type, klass: 1, opt, bits: 0 }).copy(packet);
    return answer(packet, parseQuery(packet, size) as Query, opt === null ? 512 : 1232, result);
  };
  for (const [labels, apex, type, rcode, kind] of [
    [["ns"], "example.com", 1, 0, "data"],
    [["no"], "example.com", 1, 3, "negative"],
    [["ns"], "example.com", 99, 0, "negative"],
    [["b"], "example.com", 1, 0, "negative"],
    [["q", "b"], "example.com", 1, 0, "wildcard"],
    [["q", "b"], "example.com", 28, 0, "wildcard"],
    [["q"], "example.org", 1, 5, "refused"],
    [["a", "b"], "example.com", 16, 0, "data"],
  ] as const) {
    assert.ok(isDirect([...labels], apex, type), `${labels.join(".")} ${type}`);
    assert.deepEqual([result.rcode, result.kind], [rcode, kind], `${labels.join(".")} ${type}`);
  }
  for (const [labels, apex, type] of [
    [["c"], "example.com", 1],
    [[], "example.com", 2],
    [[], "example.com", 6],
    [["q", "b"], "example.com", 15],
    [["www", "b"], "example.com", 1],
    [["a", "cut"], "c.test", 1],
    [["no"], "c.test", 1],
    [["ns"], "example.com", 255],
    [["ns"], "example.com", 252],
  ] as const)
    assert.ok(!isDirect([...labels], apex, type), `${labels.join(".")} ${type}`);
  assert.ok(!isDirect(["large"], "example.com", 16), "an answer that is too long");
});

test("an overloaded server answers known names only", () => {
  const { responder } = open();
  for (const [name, zone, isKnown] of [
    ["ns", "example.com", true],
    ["q", "b.example.com", true],
    ["no", "example.com", false],
    ["no", "example.org", false],
  ] as const) {
    const packet = packetOf({ labels: [name, ...zone.split(".")], zone: "", type: 1, klass: 1, opt: null, bits: 0 });
    const buffer = Buffer.concat([packet], 0xffff);
    assert.equal(responder.udp(buffer, packet.length, clientAt("192.0.2.1"), true) > 0, isKnown, name);
  }
});

test("the SOA of a missing name is that of the present serial", () => {
  const { zones, responder } = open();
  const packet = packetOf({ labels: ["no"], zone: "example.com", type: 1, klass: 1, opt: null, bits: 0 });
  const serialOf = (answer: Buffer): number => answer.readUInt32BE(answer.length - 20);
  assert.equal(serialOf(answerDatagram(responder, packet)), 1);
  for (const serial of [2, 3]) {
    const batch = createBatch();
    batch.add([{ zone: "example.com", base: serial === 2 ? 1 : null, serial, soa, sets: [] }]);
    for (const _ of applyBatch(zones, batch.take(), [])) continue;
    assert.equal(serialOf(answerDatagram(responder, packet)), serial);
  }
});
