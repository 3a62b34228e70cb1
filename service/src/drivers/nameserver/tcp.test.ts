import assert from "node:assert/strict";
import { type AddressInfo, connect, type Socket } from "node:net";
import { test } from "node:test";
import { serveTcp } from "./tcp.ts";

test("a connection without a whole query for the idle time is closed, one with queries is not", async () => {
  const { server, close } = serveTcp(
    (packet) => [packet],
    () => performance.now(),
    { idleMs: 150, perAddress: 9, total: 9 },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const open = (): ReturnType<typeof connect> => connect((server.address() as AddressInfo).port, "127.0.0.1");
  const ended = (socket: ReturnType<typeof connect>): Promise<number> =>
    new Promise((resolve) =>
      socket
        .resume()
        .on("close", () => resolve(performance.now()))
        .on("error", () => {}),
    );
  const [silent, dribbling, busy] = [open(), open(), open()];
  const closings = [ended(silent), ended(dribbling)];
  let closed = 0;
  for (const closing of closings) void closing.then(() => closed++);
  let answers = 0;
  busy.on("data", () => answers++);
  let busyClosed = false;
  busy.on("close", () => {
    busyClosed = true;
  });
  const timer = setInterval(() => {
    dribbling.write(Buffer.from([0]).subarray(0, dribbling.bytesWritten === 0 ? 1 : 0));
    busy.write(Buffer.from([0, 1, 7]));
  }, 20);
  await Promise.all(closings);
  assert.equal(closed, 2);
  assert.equal(busyClosed, false);
  assert.ok(answers > 0);
  clearInterval(timer);
  close();
});

test("an answer that fails on the way closes the connection instead of ending early", async () => {
  const failing = function* (): Generator<Buffer, void> {
    yield Buffer.from("one");
    throw new Error("no more");
  };
  const { server, close } = serveTcp(failing, () => performance.now());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(Buffer.from([0, 1, 0]));
  await new Promise<void>((resolve) => socket.resume().on("close", () => resolve()));
  assert.equal(server.listening, true);
  close();
});

test("who asks without reading is not read from either", async () => {
  const large = Buffer.alloc(60_000);
  let answered = 0;
  const answer = (): Buffer[] => {
    answered++;
    return [large];
  };
  const { server, close } = serveTcp(answer, () => performance.now());
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
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
  close();
});
