import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { closeSync, readFileSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { type Client, clientAt } from "../answer/ratelimit.ts";
import { createLatency } from "../builtin/latency.ts";
import { addressOf, type Batch, loadMmsg, PLACES } from "./mmsg.ts";
import { createOverload } from "./overload.ts";
import { listenUdp, serveUdp } from "./udp.ts";

const mmsg = await loadMmsg();

/**
 * Starts a server that returns each packet, except those that begin with "silent". The result has the received packets and their senders.
 */
async function echo(t: { after: (end: () => void) => void }, many: boolean, host: string) {
  const served = await listenUdp(many ? mmsg : null, host, 0);
  t.after(() => served.socket.close());
  const received: { text: string; address: string }[] = [];
  const responder = {
    udp(packet: Buffer, length: number, from: Client) {
      const text = packet.toString("utf8", 0, length);
      received.push({ text, address: from.address() });
      return text.startsWith("silent") ? 0 : length;
    },
  };
  serveUdp(served, responder, createLatency());
  return { served, asked: received, port: served.socket.address().port };
}

async function client(t: { after: (end: () => void) => void }, host: string, port: number) {
  const socket: Socket = createSocket({ type: host.includes(":") ? "udp6" : "udp4", recvBufferSize: 4 << 20 });
  t.after(() => socket.close());
  const received: string[] = [];
  socket.on("message", (message) => received.push(message.toString()));
  socket.connect(port, host);
  await once(socket, "connect");
  const settled = async (count: number): Promise<string[]> => {
    while (received.length < count) await once(socket, "message");
    return received;
  };
  return { socket, settled };
}

for (const many of [true, false]) {
  const way = many ? "many by one call" : "one by one";

  test(`${way}: every datagram of a burst gets its own response or none`, async (t) => {
    const { asked, port } = await echo(t, many, "127.0.0.1");
    const { socket, settled } = await client(t, "127.0.0.1", port);
    const sent = Array.from({ length: PLACES * 7 + 3 }, (_, i) => `${i % 3 === 1 ? "silent" : "told"} ${i}`);
    // The kernel has all packets before the server, in this same thread, reads the first.
    for (const text of sent) socket.send(text);
    const answers = await settled(sent.filter((text) => text.startsWith("told")).length);
    assert.deepEqual(
      answers,
      sent.filter((text) => text.startsWith("told")),
    );
    assert.deepEqual(
      asked.map(({ text }) => text),
      sent,
    );
    assert.deepEqual(new Set(asked.map(({ address }) => address)), new Set(["127.0.0.1"]));
  });

  test(`${way}: long and empty datagrams are received completely`, async (t) => {
    const { port } = await echo(t, many, "127.0.0.1");
    const { socket, settled } = await client(t, "127.0.0.1", port);
    const lengths = [5, 65_507, 1, 0, 40_000, 4];
    for (const [i, length] of lengths.entries()) socket.send(Buffer.alloc(length, `${i}`));
    const shape = (text: string) => ({ all: text.length, of: new Set(text) });
    const expected = lengths.map((length, i) => shape(`${i}`.repeat(length))).filter(({ all }) => all > 0);
    assert.deepEqual((await settled(expected.length)).map(shape), expected);
  });

  test(`${way}: IPv6, and IPv4 on a socket for both`, async (t) => {
    const { asked, port } = await echo(t, many, "::");
    const [six, four] = [await client(t, "::1", port), await client(t, "127.0.0.1", port)];
    for (const { socket, settled } of [six, four]) {
      for (let i = 0; i < 3; i++) socket.send(`${i}`);
      assert.deepEqual(await settled(3), ["0", "1", "2"]);
    }
    const plain = asked.map(({ address }) => address.replace("::ffff:", ""));
    assert.deepEqual(plain, ["::1", "::1", "::1", "127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  });

  test(`${way}: an address that is in use or not of the host is the system's error`, async (t) => {
    const { port } = await echo(t, many, "127.0.0.1");
    const listen = (host: string) => listenUdp(many ? mmsg : null, host, port);
    await assert.rejects(listen("127.0.0.1"), { code: "EADDRINUSE", syscall: "bind" });
    await assert.rejects(listen("192.0.2.1"), { code: "EADDRNOTAVAIL", syscall: "bind" });
  });
}

test("more datagrams than can be answered: a client with few is answered, and missing names are not", async (t) => {
  const served = await listenUdp(mmsg, "127.0.0.1", 0);
  t.after(() => served.socket.close());
  const known: boolean[] = [];
  const responder = {
    udp(_packet: Buffer, length: number, _from: Client, isKnownOnly = false) {
      known.push(isKnownOnly);
      return length;
    },
  };
  const overload = createOverload();
  serveUdp(served, responder, createLatency(), overload);
  const { port } = served.socket.address();
  const [greedy, modest] = [await client(t, "127.0.0.1", port), await client(t, "127.0.0.1", port)];
  // All are in the kernel before the server, on this same thread, reads the first.
  for (let i = 0; i < 2500; i++) greedy.socket.send(`${i}`);
  modest.socket.send("here");
  for (let i = 0; i < 100; i++) greedy.socket.send(`${i}`);
  assert.deepEqual(await modest.settled(1), ["here"]);
  assert.ok(overload.dropped > 200, `${overload.dropped} dropped`);
  assert.ok(known.includes(true));
  // It ends when the waiting datagrams are read.
  while (overload.isActive) await new Promise((resolve) => setImmediate(resolve));
});

test("a long queue is read to its end without another datagram, and the overload ends", async (t) => {
  const { socket } = await listenUdp(null, "127.0.0.1", 0);
  t.after(() => socket.close());
  let left = 40;
  const batch: Batch = {
    receive() {
      // Longer than a slice of the thread.
      for (const until = performance.now() + 3; performance.now() < until; );
      return left-- > 0 ? PLACES : 0;
    },
    queued: () => ({ waiting: 1 << 20, buffer: 8 << 20 }),
    client: () => clientAt("127.0.0.1", 9),
    packet: () => Buffer.alloc(12),
    size: () => 12,
    put: () => {},
    send: () => {},
  };
  const overload = createOverload();
  serveUdp({ socket, batch }, { udp: () => 0 }, createLatency(), overload);
  const { socket: asker } = await client(t, "127.0.0.1", socket.address().port);
  asker.send("first");
  while (left >= 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([overload.isActive, overload.dropped > 0], [false, true]);
});

/** Returns the port of a UDP socket over IPv4, from the kernel's table of sockets. */
function portOf(fd: number): number {
  const inode = /\d+/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[0];
  const lines = readFileSync("/proc/self/net/udp", "utf8").split("\n");
  const columns = lines.map((line) => line.trim().split(/\s+/)).find((each) => each[9] === inode);
  return Number.parseInt(columns?.[1]?.split(":")[1] ?? "", 16);
}

test("a batch receives waiting datagrams up to its size, and drops those that cannot be sent", async (t) => {
  const fd = mmsg.bind("127.0.0.1", 0);
  t.after(() => closeSync(fd));
  const port = portOf(fd);
  const batch = mmsg.batch(fd);
  assert.equal(batch.receive(), 0);
  const { socket: asker, settled } = await client(t, "127.0.0.1", port);
  for (let i = 0; i < PLACES + 5; i++) asker.send(`${i}`);
  assert.equal(batch.receive(), PLACES);
  for (let place = 0; place < PLACES; place++) {
    assert.equal(batch.packet(place).toString("utf8", 0, batch.size(place)), `${place}`);
    // IP has no space for the longest datagram that a length can state.
    batch.put(place, place % 2 === 0 ? batch.size(place) : 65_535);
  }
  batch.send();
  const answers = Array.from({ length: PLACES / 2 }, (_, i) => `${2 * i}`);
  assert.deepEqual(await settled(answers.length), answers);
  assert.equal(batch.receive(), 5);
  batch.send();
  assert.equal(batch.receive(), 0);
});

test("addresses of socket names as text", () => {
  const name = (family: number, at: number, bytes: readonly number[]): Buffer => {
    const buffer = Buffer.alloc(28);
    buffer.writeUInt16LE(family, 0);
    buffer.set(bytes, at);
    return buffer;
  };
  assert.equal(addressOf(name(2, 4, [192, 0, 2, 255])), "192.0.2.255");
  assert.equal(addressOf(name(10, 8, [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])), "2001:db8::1");
  assert.equal(addressOf(name(10, 8, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 7])), "10.0.0.7");
  assert.equal(addressOf(name(10, 8, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])), "::1");
});
