import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import fc from "fast-check";
import { createQmp, pick, type QmpError, type QmpEvent } from "./qmp.ts";

const banner = '{"QMP": {"version": {}, "capabilities": []}}\r\n';

/** The other end of a monitor: `received` lists the commands, `send` sends bytes. */
function peer(respond: (command: { execute: string; id: number }, send: (text: string) => void) => void) {
  const received: string[] = [];
  let text = "";
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
        const command = JSON.parse(text.slice(0, end)) as { execute: string; id: number };
        text = text.slice(end + 1);
        received.push(command.execute);
        if (command.execute === "qmp_capabilities") send(`{"return": {}, "id": ${command.id}}\n`);
        else respond(command, send);
      }
      done();
    },
  });
  const send = (line: string | Buffer) => void socket.push(line);
  return { socket, received, send };
}
const silent = () => {};

test("accepts the banner, and matches responses in any order and in pieces", async () => {
  const held: { execute: string; id: number }[] = [];
  const { socket, received, send } = peer((command) => held.push(command));
  send(banner);
  const qmp = await createQmp(socket);
  const first = qmp.run("query-status");
  const second = qmp.run("query-uuid");
  const [one, two] = held;
  send(`{"return": {"UUID": "u"}, "id": ${two?.id}}\n{"return": {"sta`);
  send(`tus": "running"}, "id": ${one?.id}}\n`);
  assert.deepEqual([await first, await second], [{ status: "running" }, { UUID: "u" }]);
  assert.deepEqual(received, ["qmp_capabilities", "query-status", "query-uuid"]);
  qmp.close();
});

test("an error contains class and description of QEMU", async () => {
  const { socket, send } = peer(({ id }, send) =>
    send(`{"error": {"class": "DeviceNotFound", "desc": "no such"}, "id": ${id}}\n`),
  );
  send(banner);
  const qmp = await createQmp(socket);
  await assert.rejects(qmp.run("device_del"), (error: QmpError) => {
    assert.deepEqual([error.kind, error.message], ["DeviceNotFound", "QEMU refuses device_del: no such"]);
    return true;
  });
  qmp.close();
});

test("all listeners receive events with their time", async () => {
  const { socket, send } = peer(silent);
  send(banner);
  const qmp = await createQmp(socket);
  const seen: QmpEvent[] = [];
  qmp.onEvent((event) => seen.push(event));
  const stop = qmp.onEvent(() => assert.fail("it does not listen any more"));
  stop();
  send('{"event": "SHUTDOWN", "data": {"guest": true}, "timestamp": {"seconds": 7, "microseconds": 12345}}\n');
  await new Promise(setImmediate);
  assert.deepEqual(seen, [{ name: "SHUTDOWN", data: { guest: true }, at: 7012 }]);
  qmp.close();
});

test("times out without a banner or response", async () => {
  await assert.rejects(createQmp(peer(silent).socket, 20), /sent no banner within 20 ms/);
  const { socket, send } = peer(silent);
  send(banner);
  const qmp = await createQmp(socket);
  await assert.rejects(qmp.run("query-status", undefined, 20), /did not respond to query-status within 20 ms/);
  qmp.close();
});

test("a closed connection rejects all pending calls", async () => {
  const { socket, send } = peer(silent);
  send(banner);
  const qmp = await createQmp(socket);
  const waiting = assert.rejects(qmp.run("quit"), /closed its monitor before it responded to quit/);
  socket.destroy();
  await waiting;
  await qmp.closed;
  await assert.rejects(qmp.run("quit"), /closed its monitor before quit was sent/);
  const gone = peer(silent);
  gone.socket.destroy();
  await assert.rejects(createQmp(gone.socket), /closed before it sent its banner/);
});

test("random input never throws and never blocks a call", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(fc.uint8Array({ maxLength: 60 }), fc.json().map(Buffer.from), fc.constant(Buffer.from("\n"))), {
        maxLength: 12,
      }),
      async (chunks) => {
        const { socket, send } = peer(silent);
        send(banner);
        const qmp = await createQmp(socket);
        const settled = qmp.run("query-status", undefined, 1000).catch(() => "refused");
        for (const chunk of chunks) if (!socket.destroyed) send(Buffer.from(chunk));
        await new Promise(setImmediate);
        qmp.close();
        await settled;
        await qmp.closed;
      },
    ),
    { numRuns: 200 },
  );
});

test("an endless line closes the connection", async () => {
  const { socket, send } = peer(silent);
  send(banner);
  const qmp = await createQmp(socket);
  for (let sent = 0; sent < 6 && !socket.destroyed; sent++) {
    send(Buffer.alloc(2 ** 20, 0x20));
    await new Promise(setImmediate);
  }
  await qmp.closed;
});

test("a path into a missing value returns undefined", () => {
  assert.equal(pick({ a: [{ b: 1 }] }, "a", 0, "b"), 1);
  for (const value of [null, undefined, 5, "text", { a: null }]) assert.equal(pick(value, "a", "b"), undefined);
});
