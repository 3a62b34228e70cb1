import assert from "node:assert/strict";
import { type AddressInfo, connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { waitUntil } from "../../../../../test/support/waituntil.ts";
import { serveTcp, TCP_LIMITS } from "./tcp.ts";

test("a connection without a complete query for the idle time is closed, one with queries is not", async (t) => {
  let time = 0;
  const limits = { ...TCP_LIMITS, idleMs: 20, crowdedIdleMs: 20 };
  const { server, open } = await listen(
    t,
    (packet) => [packet],
    () => time,
    limits,
  );
  const accepted: Socket[] = [];
  server.on("connection", (socket) => accepted.push(socket));
  const [silent, dribbling, busy] = [await open("127.0.0.1"), await open("127.0.0.1"), await open("127.0.0.1")];
  const closings = [closed(silent), closed(dribbling)];
  await waitUntil(
    "three connections",
    () => accepted.length,
    (count) => count === 3,
  );
  time = 15;
  dribbling.write(Buffer.from([0]));
  await waitUntil(
    "the byte",
    () => accepted[1]?.bytesRead,
    (bytes) => bytes === 1,
  );
  assert.equal(await isAnswered(busy), true);
  time = 30;
  await Promise.all(closings);
  assert.equal(await isAnswered(busy), true);
});

test("a response that fails midway closes the connection", async (t) => {
  const failing = function* (): Generator<Buffer, void> {
    yield Buffer.from("one");
    throw new Error("no more");
  };
  const { server, close } = serveTcp(failing, () => performance.now());
  t.after(close);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => {});
  socket.write(Buffer.from([0, 1, 0]));
  await new Promise<void>((resolve) => socket.resume().on("close", () => resolve()));
  assert.equal(server.listening, true);
});

test("the memory of a message is released when the system has it, also if the client reads late", async (t) => {
  const count = 600;
  let lent = 0;
  let released = 0;
  const answer = function* () {
    for (let index = 0; index < count; index++) {
      const bytes = Buffer.alloc(16_000, index % 250);
      const release = (): void => {
        released++;
        // Bytes that are still to be sent would be replaced.
        bytes.fill(255);
      };
      lent++;
      yield { bytes, release };
    }
  };
  const { server, close } = serveTcp(answer, () => performance.now());
  t.after(close);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.end(Buffer.from([0, 1, 0]));
  for (let before = -1; before !== released || released === 0; ) {
    before = released;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(released < lent && lent < count, `${released} of ${lent}`);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  const received = Buffer.concat(parts);
  assert.equal(received.length, count * 16_002);
  for (let index = 0; index < count; index++) {
    const message = received.subarray(index * 16_002, (index + 1) * 16_002);
    assert.equal(message.readUInt16BE(0), 16_000);
    assert.ok(message.subarray(2).every((byte) => byte === index % 250));
  }
  assert.equal(released, count);
});

test("a client that sends queries and reads no responses is not read", async (t) => {
  const large = Buffer.alloc(60_000);
  let answered = 0;
  const answer = (): Buffer[] => {
    answered++;
    return [large];
  };
  const { server, close } = serveTcp(answer, () => performance.now());
  t.after(close);
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => {});
  const query = Buffer.concat([Buffer.from([0, 12]), Buffer.alloc(12)]);
  const piece = Buffer.concat(new Array<Buffer>(1000).fill(query));
  for (let i = 0; i < 2000; i++) socket.write(piece);
  const held = await accepted;
  for (let before = -1; before !== held.bytesRead || answered === 0; ) {
    before = held.bytesRead;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  // Far less than one piece of what came holds: it stops at what the kernel takes, not at the end of its input.
  assert.ok(answered < 1000, `${answered} answered`);
  assert.ok(held.bytesRead < 1 << 20, `${held.bytesRead} bytes read`);
  socket.destroy();
});

/** A server on loopback, and connections to it from any address of 127/8. They end with the test, also with one that fails. */
async function listen(t: TestContext, ...[answer, now, limits]: Parameters<typeof serveTcp>) {
  const service = serveTcp(answer, now, limits);
  t.after(() => service.close());
  await new Promise<void>((resolve) => service.server.listen(0, "127.0.0.1", resolve));
  const { port } = service.server.address() as AddressInfo;
  const open = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    await new Promise((resolve) => socket.once("connect", resolve));
    return socket;
  };
  return { ...service, open };
}

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.resume().once("close", () => resolve()));

const isAnswered = async (socket: Socket): Promise<boolean> => {
  socket.write(Buffer.from([0, 1, 7]));
  return new Promise((resolve) => {
    socket.once("data", () => resolve(true));
    socket.once("close", () => resolve(false));
  });
};

test("with all places in use, a new client is served and the idlest of the largest network is disconnected", async (t) => {
  const limits = { ...TCP_LIMITS, total: 5, perNetwork: 5, idleMs: 60_000, crowdedIdleMs: 60_000 };
  const { open } = await listen(t, (packet) => [packet], performance.now.bind(performance), limits);
  const first = await open("127.1.0.1");
  const second = await open("127.1.0.2");
  const others = [await open("127.2.0.1"), await open("127.3.0.1"), await open("127.4.0.1")];
  assert.equal(await isAnswered(first), true);
  const gone = closed(second);
  assert.equal(await isAnswered(await open("127.9.0.1")), true);
  await gone;
  for (const socket of [first, ...others]) assert.equal(await isAnswered(socket), true);
});

test("a network with all its places loses its own idlest connection", async (t) => {
  const limits = { ...TCP_LIMITS, total: 9, perNetwork: 2, idleMs: 60_000, crowdedIdleMs: 60_000 };
  const { open } = await listen(t, (packet) => [packet], performance.now.bind(performance), limits);
  const other = await open("127.2.0.1");
  const first = await open("127.1.0.1");
  const second = await open("127.1.0.2");
  const gone = closed(first);
  assert.equal(await isAnswered(await open("127.1.0.3")), true);
  await gone;
  for (const socket of [second, other]) assert.equal(await isAnswered(socket), true);
});

for (const [title, leastRate, pauses] of [
  ["a client that has answers to read and takes none is cut", 1, [11_000]],
  ["a client that takes its answers too slowly is cut", 1e9, [9000, 2000]],
] as const) {
  test(title, async (t) => {
    let time = 0;
    const limits = { ...TCP_LIMITS, idleMs: 20, crowdedIdleMs: 20, stallMs: 10_000, leastRate };
    const large = Buffer.alloc(60_000);
    const endless = function* (): Generator<Buffer, void> {
      for (;;) yield large;
    };
    const { server, open } = await listen(t, endless, () => time, limits);
    const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
    const client = (await open("127.0.0.1")).pause();
    client.write(Buffer.from([0, 1, 0]));
    const serverSocket = await accepted;
    const cut = new Promise((resolve) => serverSocket.once("close", resolve));
    for (const [i, pause] of pauses.entries()) {
      await waitUntil(
        "a full connection",
        () => serverSocket.writableNeedDrain,
        (isFull) => isFull,
      );
      // The sweep has looked and left it.
      await new Promise((resolve) => setTimeout(resolve, 60));
      assert.equal(serverSocket.destroyed, false);
      time += pause;
      if (i === pauses.length - 1) break;
      const before = serverSocket.bytesWritten;
      client.resume();
      await waitUntil(
        "more bytes",
        () => serverSocket.bytesWritten,
        (bytes) => bytes !== before,
      );
      client.pause();
    }
    await cut;
    client.destroy();
  });
}

test("a connection with thousands of queries does not delay another", async (t) => {
  const order: number[] = [];
  const answer = (packet: Buffer): Buffer[] => {
    order.push(packet[0] as number);
    return [packet];
  };
  const { server, open } = await listen(t, answer, performance.now.bind(performance));
  const greedy = await open("127.0.0.1");
  const modest = await open("127.0.0.1");
  greedy.resume();
  greedy.write(Buffer.concat(new Array<Buffer>(1000).fill(Buffer.from([0, 1, 1]))));
  modest.write(Buffer.from([0, 1, 2]));
  await new Promise((resolve) => modest.once("data", resolve));
  await waitUntil(
    "all answers",
    () => order.length,
    (count) => count === 1001,
  );
  assert.ok(order.indexOf(2) < 1000, `answered as number ${order.indexOf(2)}`);
  assert.equal(server.listening, true);
});
