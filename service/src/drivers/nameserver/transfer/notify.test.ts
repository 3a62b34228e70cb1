import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Clock } from "../../../base/clock.ts";
import { parseQuery } from "../wire/message.ts";
import { nameOf } from "../wire/name.ts";
import { createNotifier, type Target } from "./notify.ts";
import { createKey, sign, verify } from "./tsig.ts";

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "Date"] }));
afterEach(() => mock.timers.reset());

/** In small steps, as a clock goes: timers set by timers fire at their own time. */
function pass(ms: number): void {
  for (let passed = 0; passed < ms; passed += 10) mock.timers.tick(10);
}

function open(targets: readonly Target[], clock: Clock = { now: Date.now }) {
  const sent: { message: Buffer; target: Target }[] = [];
  const logged: string[] = [];
  const ahead: [string, number][] = [];
  let id = 0;
  const notifier = createNotifier(
    targets,
    (message, target) => sent.push({ message, target }),
    clock,
    () => ++id,
    (_level, message, detail) => logged.push(`${message}: ${(detail as { reason?: string }).reason ?? ""}`),
    (...found) => ahead.push(found),
  );
  const opcode = (message: Buffer): number => ((message[2] as number) >> 3) & 15;
  const isTo = (target: Target) => (one: (typeof sent)[number]) => one.target === target;
  return {
    notifier,
    sent,
    logged,
    ahead,
    notifies: (target: Target) => sent.filter(isTo(target)).filter(({ message }) => opcode(message) === 4),
    probes: (target: Target) => sent.filter(isTo(target)).filter(({ message }) => opcode(message) === 0),
    last: () => sent.at(-1)?.message as Buffer,
  };
}

function acknowledge(message: Buffer, rcode = 0): Buffer {
  const answer = Buffer.from(message);
  answer.writeUInt16BE(0xa400 | rcode, 2);
  return answer;
}

/** The answer to a question for the SOA: one with this serial. */
function showing(question: Buffer, serial: number): Buffer {
  const answer = Buffer.concat([
    question,
    Buffer.from([0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0]),
    Buffer.alloc(20),
  ]);
  answer.writeUInt16BE(0x8400, 2);
  answer.writeUInt16BE(1, 6);
  answer.writeUInt32BE(serial, answer.length - 20);
  return answer;
}

const a: Target = { host: "192.0.2.1", port: 53, key: null };
const b: Target = { host: "192.0.2.2", port: 5300, key: null };
const name = nameOf("example.com");
const at = (serial: number) => ({ name, group: 1, serial });
const minute = 60_000;

test("NOTIFY is repeated with growing pauses, for more than an hour, until the secondary has the serial", () => {
  const { notifier, notifies } = open([a, b]);
  notifier.changed(at(7));
  notifier.changed(at(7));
  pass(10);
  assert.deepEqual([notifies(a).length, notifies(b).length], [1, 1]);
  notifier.noteClient(name, 7, "has", a.host, null);
  pass(7000);
  assert.deepEqual([notifies(a).length, notifies(b).length], [1, 4], "after 1, 2 and 4 seconds more");
  pass(70 * minute);
  const late = notifies(b).length;
  assert.ok(late > 15 && late < 30, `${late}`);
  pass(6 * minute);
  assert.ok(notifies(b).length > late, "still notified after an hour");
  notifier.noteClient(name, 6, "has", b.host, null);
  const before = notifies(b).length;
  pass(6 * minute);
  assert.ok(notifies(b).length > before, "an older serial confirms nothing");
  notifier.noteClient(name, 7, "has", b.host, null);
  const after = notifies(b).length;
  pass(20 * minute);
  assert.deepEqual([notifies(a).length, notifies(b).length], [1, after]);
  notifier.close();
});

test("a clock that is set changes no pause, only the time in signatures", () => {
  for (const days of [-10, 10]) {
    let step = 20 * 24 * 60 * minute;
    const clock = { now: () => Date.now() + step, steady: Date.now };
    const key = createKey({ name: "k", algorithm: "hmac-sha256", secret: "c2VjcmV0" });
    const target = { ...a, key };
    const { notifier, notifies, last } = open([target], clock);
    notifier.changed(at(7));
    pass(10);
    step += days * 24 * 60 * minute;
    pass(7000);
    assert.equal(notifies(target).length, 4, "after 1, 2 and 4 seconds more");
    const seconds = Math.floor(clock.now() / 1000);
    assert.equal(verify(last(), parseQuery(last())?.tsig ?? 0, new Map([[key.name, key]]), seconds).state, "good");
    notifier.close();
  }
});

test("a secondary that has a newer serial is reported", () => {
  const { notifier, ahead, last } = open([a]);
  notifier.changed(at(7));
  pass(10);
  notifier.receive(acknowledge(last()), a.host, a.port);
  pass(510);
  notifier.receive(showing(last(), 9), a.host, a.port);
  assert.deepEqual(ahead, [[name, 9]]);
  notifier.close();
});

test("an acknowledgement does not confirm a serial, the SOA of the secondary does", () => {
  const { notifier, notifies, probes, last } = open([a]);
  notifier.changed(at(7));
  pass(10);
  notifier.receive(acknowledge(last()), a.host, a.port);
  pass(510);
  assert.equal(probes(a).length, 1);
  notifier.receive(showing(last(), 6), a.host, a.port);
  pass(1000);
  assert.equal(notifies(a).length, 2);
  assert.deepEqual([...(notifier.observe()[0]?.confirmed ?? [])], [[name, 6]]);
  notifier.receive(acknowledge(last()), a.host, a.port);
  pass(510);
  notifier.receive(showing(last(), 7), a.host, a.port);
  pass(20 * minute);
  assert.equal(notifies(a).length, 2);
  assert.deepEqual(notifier.observe()[0], {
    address: "192.0.2.1:53",
    reachable: true,
    behind: 0,
    lag: 0,
    confirmed: new Map([[name, 7]]),
  });
  notifier.close();
});

test("a secondary that does not respond to queries has the serial that it queried", () => {
  const { notifier, notifies, last } = open([a]);
  notifier.changed(at(7));
  pass(10);
  notifier.receive(acknowledge(last()), a.host, a.port);
  notifier.noteClient(name, 7, "queried", a.host, null);
  pass(20 * minute);
  assert.equal(notifies(a).length, 1);
  assert.equal(notifier.observe()[0]?.behind, 0);
  notifier.close();
});

test("only a response with the right id from the right address counts", () => {
  const { notifier, probes, last } = open([a]);
  notifier.changed(at(7));
  pass(10);
  const message = last();
  const otherId = acknowledge(message);
  otherId.writeUInt16BE(999, 0);
  notifier.receive(otherId, a.host, a.port);
  notifier.receive(acknowledge(message), b.host, a.port);
  notifier.receive(acknowledge(message), a.host, b.port);
  notifier.receive(message, a.host, a.port);
  notifier.receive(Buffer.from("nonsense"), a.host, a.port);
  pass(900);
  assert.equal(probes(a).length, 0);
  assert.equal(notifier.observe()[0]?.reachable, null);
  pass(200);
  assert.equal(notifier.observe()[0]?.reachable, false);
  notifier.close();
});

test("a change before the acknowledgement arrives is announced again", () => {
  const { notifier, notifies, last } = open([a]);
  notifier.changed(at(7));
  pass(10);
  notifier.changed(at(8));
  notifier.receive(acknowledge(last()), a.host, a.port);
  pass(20);
  assert.equal(notifies(a).length, 2);
  notifier.noteClient(name, 7, "has", a.host, null);
  assert.equal(notifier.observe()[0]?.behind, 1);
  notifier.noteClient(name, 8, "has", a.host, null);
  pass(5 * minute);
  assert.equal(notifies(a).length, 2);
  notifier.close();
});

test("changes while a NOTIFY is on its way are announced by one more", () => {
  const { notifier, notifies, last } = open([a]);
  notifier.changed(at(7));
  pass(10);
  notifier.changed(at(8));
  pass(10);
  notifier.changed(at(9));
  pass(50);
  assert.equal(notifies(a).length, 1);
  notifier.receive(acknowledge(last()), a.host, a.port);
  pass(20);
  assert.equal(notifies(a).length, 2);
  assert.equal(notifier.observe()[0]?.reachable, true);
  notifier.close();
});

test("a secondary that only responds lags, also if its zone changes often", () => {
  const { notifier, logged, probes, last } = open([a]);
  notifier.noteClient(name, 6, "has", a.host, null);
  for (let serial = 7; serial < 11; serial++) {
    notifier.changed(at(serial));
    pass(10);
    notifier.receive(acknowledge(last()), a.host, a.port);
    pass(510);
    assert.equal(last(), probes(a).at(-1)?.message);
    notifier.receive(showing(last(), 6), a.host, a.port);
    pass(30_000);
  }
  assert.match(logged.join(), /^A secondary lags: [^,]*$/);
  assert.ok((notifier.observe()[0]?.lag ?? 0) >= 120);
  notifier.noteClient(name, 9, "has", a.host, null);
  const { behind, lag = 99 } = notifier.observe()[0] ?? {};
  assert.deepEqual([behind, lag < 40], [1, true], "an older serial is progress");
  notifier.close();
});

test("a secondary that never responds stays behind, and is notified again after the next change", () => {
  const { notifier, notifies } = open([a]);
  notifier.changed(at(7));
  pass(24 * 60 * minute);
  const sent = notifies(a).length;
  pass(60 * minute);
  const { behind, lag = 0 } = notifier.observe()[0] ?? {};
  assert.deepEqual([notifies(a).length, behind, lag >= 25 * 3600], [sent, 1, true]);
  notifier.changed(at(8));
  pass(1010);
  assert.ok(notifies(a).length > sent);
  notifier.close();
});

test("a lagging secondary is logged once with the reason, and again when it has caught up", () => {
  const { notifier, logged, last } = open([a]);
  notifier.changed(at(7));
  pass(2 * minute);
  assert.deepEqual(logged, ["A secondary lags: it does not respond"]);
  assert.ok((notifier.observe()[0]?.lag ?? 0) >= 120);
  notifier.receive(acknowledge(last(), 9), a.host, a.port);
  pass(2 * minute);
  assert.equal(logged.length, 1);
  notifier.noteClient(name, 7, "has", a.host, null);
  assert.deepEqual(logged.slice(1), ["A secondary has caught up: "]);
  notifier.changed(at(8));
  pass(10);
  notifier.receive(acknowledge(last(), 9), a.host, a.port);
  for (let i = 0; i < 10; i++) {
    pass(10_000);
    notifier.receive(acknowledge(last(), 9), a.host, a.port);
  }
  assert.deepEqual(logged.slice(2), ["A secondary lags: it refuses NOTIFY with response code 9"]);
  notifier.close();
});

test("a removed zone is no longer announced, and one outside of the scope of the key never", () => {
  const only = { zones: ["example.org"], groups: [5] };
  const key = createKey({ name: "k", algorithm: "hmac-sha256", secret: "c2VjcmV0", only });
  const bound = { ...b, key };
  const { notifier, notifies } = open([a, bound]);
  notifier.changed(at(7));
  pass(10);
  assert.deepEqual([notifies(a).length, notifies(bound).length], [1, 0]);
  notifier.gone(name);
  pass(10 * minute);
  assert.equal(notifies(a).length, 1);
  notifier.changed({ name: nameOf("example.org"), group: 1, serial: 1 });
  notifier.changed({ name: nameOf("example.net"), group: 5, serial: 1 });
  notifier.changed({ name: nameOf("catalog.invalid"), group: 0, serial: 1 }, true);
  pass(10);
  assert.equal(notifies(bound).length, 3);
  notifier.close();
});

test("two secondaries at one address are distinguished by their keys", () => {
  const [one, two] = ["one", "two"].map((text) =>
    createKey({ name: text, algorithm: "hmac-sha256", secret: "c2VjcmV0" }),
  );
  assert.ok(one && two);
  const { notifier } = open([
    { ...a, key: one },
    { ...a, port: 54, key: two },
  ]);
  notifier.changed(at(7));
  notifier.noteClient(name, 7, "has", a.host, two);
  notifier.noteClient(name, 7, "has", a.host, null);
  assert.deepEqual(
    notifier.observe().map(({ behind }) => behind),
    [1, 0],
  );
  notifier.close();
});

test("with a key, messages are signed and unsigned responses are ignored", () => {
  const key = createKey({ name: "transfer.brume", algorithm: "hmac-sha256", secret: "c2VjcmV0" });
  const target = { ...a, key };
  const { notifier, notifies, probes, last } = open([target]);
  const verdictOf = (packet: Buffer) =>
    verify(packet, parseQuery(packet)?.tsig ?? 0, new Map([[key.name, key]]), Math.floor(Date.now() / 1000));
  const unsigned = (packet: Buffer): Buffer => {
    const body = Buffer.from(packet.subarray(0, parseQuery(packet)?.tsig));
    body.writeUInt16BE(0, 10);
    return body;
  };
  const signedAs = (answer: Buffer, question: Buffer): Buffer => {
    const verdict = verdictOf(question);
    assert.equal(verdict.state, "good");
    if (verdict.state !== "good") throw new Error("unsigned");
    return sign(answer, verdict.signer, Math.floor(Date.now() / 1000)).bytes;
  };
  notifier.changed(at(7));
  pass(10);
  notifier.receive(acknowledge(unsigned(last())), a.host, a.port);
  pass(900);
  assert.equal(probes(target).length, 0);
  pass(200);
  assert.equal(notifies(target).length, 2);
  notifier.receive(signedAs(acknowledge(unsigned(last())), last()), a.host, a.port);
  pass(510);
  assert.equal(probes(target).length, 1);
  notifier.receive(showing(unsigned(last()), 7), a.host, a.port);
  assert.equal(notifier.observe()[0]?.behind, 1);
  notifier.receive(signedAs(showing(unsigned(last()), 7), last()), a.host, a.port);
  assert.equal(notifier.observe()[0]?.behind, 0);
  notifier.close();
});

test("ten thousand zones are announced in portions", () => {
  const { notifier, sent } = open([a]);
  for (let i = 0; i < 10_000; i++) notifier.changed({ name: nameOf(`z${i}.example`), group: 0, serial: 1 });
  pass(10);
  assert.equal(sent.length, 100);
  for (let i = 0; i < 99; i++) {
    pass(10);
    for (let j = 0; j < 100; j++) notifier.noteClient(nameOf(`z${100 * i + j}.example`), 1, "has", a.host, null);
  }
  assert.equal(sent.length, 10_000);
  notifier.close();
});
