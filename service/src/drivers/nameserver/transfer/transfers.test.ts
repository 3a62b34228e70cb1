import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { createZone, putSet, TYPE, type Zone } from "../builtin/zone.ts";
import { nameOf } from "../wire/name.ts";
import { imageOf, transferZone } from "./transfer.ts";
import { createTransfers, type Transfers } from "./transfers.ts";
import { createKey } from "./tsig.ts";

const head = Buffer.from("\0\0\x84\0\0\x01\0\0\0\0\0\0\x01z\0\0\xfc\0\x01", "latin1");
const authority = { serial: 7, ttl: 60, negativeTtl: 60, rdata: "\0\0".padEnd(22, "\0") };

function zoneOf(count: number): Zone {
  const zone = createZone(nameOf("z"), authority, []);
  const address = "\0\x01\0\0\0\x3c\0\0\0\x06\0\x04\x01\x02\x03\x04";
  for (let i = 0; i < count; i++) putSet(zone, nameOf(`host-${i}`), TYPE.A, address);
  return zone;
}

async function readAll(messages: ReturnType<Transfers["transfer"]>): Promise<Buffer[]> {
  const all: Buffer[] = [];
  for (const message of messages) {
    if (message instanceof Promise) await message;
    else {
      all.push(Buffer.from(message.bytes));
      message.release();
      assert.equal(message.bytes.length, 0);
    }
  }
  return all;
}

/** Transfers with a real thread, and the threads that were started. */
function open(t: { after(end: () => void): void }, idleMs?: number) {
  const threads: Worker[] = [];
  const start = (): Worker => {
    const thread = new Worker(new URL("./thread.ts", import.meta.url));
    threads.push(thread);
    return thread;
  };
  const transfers = createTransfers(start, idleMs);
  t.after(() => transfers.close());
  return { transfers, threads };
}

test("the messages of the thread are those of the zone at the start, several transfers at once", async (t) => {
  const { transfers, threads } = open(t);
  const zone = zoneOf(30_000);
  const image = imageOf(zone);
  const expected = [...transferZone(image, head, null, () => 0)];
  assert.ok(expected.length > 40);
  zone.generation++;
  for (let i = 0; i < 30_000; i += 3) putSet(zone, nameOf(`host-${i}`), TYPE.A, "");
  const [one, two] = await Promise.all([
    readAll(transfers.transfer(image, head, null)),
    readAll(transfers.transfer(image, head, null)),
  ]);
  assert.deepEqual(one, expected);
  assert.deepEqual(two, expected);
  assert.equal(threads.length, 1);
});

test("a signed transfer is signed in the thread", async (t) => {
  const { transfers } = open(t);
  const key = createKey({ name: "k", algorithm: "hmac-sha256", secret: "c2VjcmV0" });
  const image = imageOf(zoneOf(2000));
  const unsigned = [...transferZone(image, head, null, () => 0)];
  const signed = await readAll(transfers.transfer(image, head, { key, prior: Buffer.alloc(32) }));
  const size = (messages: readonly Buffer[]): number => messages.reduce((sum, { length }) => sum + length, 0);
  assert.ok(size(signed) > size(unsigned));
  for (const message of signed) assert.equal(message.readUInt16BE(10), 1, "a TSIG record in each");
});

test("the thread composes only what its reader takes, and ends when there is nothing to do", async (t) => {
  const { transfers, threads } = open(t, 10);
  const reading = transfers.transfer(imageOf(zoneOf(60_000)), head, null);
  const first = reading.next().value;
  assert.ok(first instanceof Promise);
  await first;
  const [thread] = threads as [Worker];
  let composed = 0;
  thread.on("message", ({ messages }: { messages: readonly unknown[] }) => {
    composed += messages.length;
  });
  const message = once(thread, "message");
  await message;
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.ok(composed <= 32, `${composed} messages without a reader`);
  const ended = once(thread, "exit");
  reading.return();
  await ended;
  assert.ok((await readAll(transfers.transfer(imageOf(zoneOf(2000)), head, null))).length > 0, "a new thread");
  assert.equal(threads.length, 2);
});

test("a transfer whose thread ends fails, so that it does not look complete", async (t) => {
  const { transfers, threads } = open(t);
  const reading = readAll(transfers.transfer(imageOf(zoneOf(60_000)), head, null));
  const failed = assert.rejects(reading, /has ended/);
  await threads[0]?.terminate();
  await failed;
});
