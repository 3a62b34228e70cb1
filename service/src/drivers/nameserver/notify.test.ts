import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { nameOf } from "./name.ts";
import { createNotifier, type Target } from "./notify.ts";
import { createKey, sign, verify } from "./tsig.ts";
import { parseQuery } from "./wire.ts";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "Date"] }));
afterEach(() => mock.timers.reset());

/** In small steps, as a clock goes: timers set by timers fire at their own time. */
function pass(ms: number): void {
  for (let passed = 0; passed < ms; passed += 10) mock.timers.tick(10);
}

function open(targets: readonly Target[]) {
  const sent: { message: Buffer; target: Target }[] = [];
  const warned: string[] = [];
  let id = 0;
  const notifier = createNotifier(
    targets,
    (message, target) => sent.push({ message, target }),
    Date.now,
    () => ++id,
    (message) => warned.push(message),
  );
  return { notifier, sent, warned };
}

function acknowledge(message: Buffer, rcode = 0): Buffer {
  const answer = Buffer.from(message);
  answer.writeUInt16BE(0xa400 | rcode, 2);
  return answer;
}

const a: Target = { host: "192.0.2.1", port: 53, key: null };
const b: Target = { host: "192.0.2.2", port: 5300, key: null };
const zone = nameOf("example.com");

test("every target is told until it acknowledges, others are left alone", () => {
  const { notifier, sent, warned } = open([a, b]);
  notifier.changed(zone);
  notifier.changed(zone);
  pass(10);
  assert.deepEqual(
    sent.map(({ target }) => target),
    [a, b],
  );
  notifier.receive(acknowledge(sent[0]?.message as Buffer), a.host, a.port);
  pass(1100);
  assert.deepEqual(
    sent.slice(2).map(({ target }) => target),
    [b],
  );
  pass(5000);
  assert.equal(sent.length, 4, "three tries");
  assert.deepEqual(warned, ["a secondary does not acknowledge NOTIFY"]);
  notifier.close();
});

test("only the right answer from the right place acknowledges", () => {
  const { notifier, sent } = open([a]);
  notifier.changed(zone);
  pass(10);
  const message = sent[0]?.message as Buffer;
  const otherId = acknowledge(message);
  otherId.writeUInt16BE(999, 0);
  notifier.receive(otherId, a.host, a.port);
  notifier.receive(acknowledge(message), b.host, a.port);
  notifier.receive(acknowledge(message), a.host, b.port);
  notifier.receive(message, a.host, a.port);
  notifier.receive(Buffer.from("nonsense"), a.host, a.port);
  pass(1100);
  assert.equal(sent.length, 2);
  notifier.close();
});

test("a change while the acknowledgement is on its way is told again", () => {
  const { notifier, sent } = open([a]);
  notifier.changed(zone);
  pass(10);
  notifier.changed(zone);
  notifier.receive(acknowledge(sent[0]?.message as Buffer), a.host, a.port);
  pass(20);
  assert.equal(sent.length, 2);
  notifier.receive(acknowledge(sent[1]?.message as Buffer), a.host, a.port);
  pass(5000);
  assert.equal(sent.length, 2);
  notifier.close();
});

test("with a key messages are signed, and unsigned acknowledgements do not count", () => {
  const key = createKey("transfer.brume", "hmac-sha256", "c2VjcmV0");
  const { notifier, sent } = open([{ ...a, key }]);
  const verdictOf = (packet: Buffer) =>
    verify(packet, parseQuery(packet)?.tsig ?? 0, new Map([[key.name, key]]), Math.floor(Date.now() / 1000));
  notifier.changed(zone);
  pass(10);
  const message = sent[0]?.message as Buffer;
  const verdict = verdictOf(message);
  assert.equal(verdict.state, "good");
  const plain = message.subarray(0, parseQuery(message)?.tsig);
  plain.writeUInt16BE(0, 10);
  notifier.receive(acknowledge(plain), a.host, a.port);
  pass(1100);
  assert.equal(sent.length, 2);
  const again = sent[1]?.message as Buffer;
  const second = verdictOf(again);
  assert.equal(second.state, "good");
  const body = Buffer.from(again.subarray(0, parseQuery(again)?.tsig));
  body.writeUInt16BE(0, 10);
  if (second.state === "good") {
    const answer = sign(acknowledge(body), second.signer, Math.floor(Date.now() / 1000)).bytes;
    notifier.receive(answer, a.host, a.port);
  }
  pass(5000);
  assert.equal(sent.length, 2);
  notifier.close();
});

test("ten thousand zones are told in portions", () => {
  const { notifier, sent } = open([a]);
  for (let i = 0; i < 10_000; i++) notifier.changed(nameOf(`z${i}.example`));
  pass(10);
  assert.equal(sent.length, 100);
  for (let i = 0; i < 200; i++) {
    for (const { message } of sent.slice(-100)) notifier.receive(acknowledge(message), a.host, a.port);
    pass(10);
  }
  assert.equal(sent.length, 10_000);
  notifier.close();
});
