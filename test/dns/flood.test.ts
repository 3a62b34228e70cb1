/** Limits for the networks of clients: how a flood is limited, and how real clients of the same network still get responses. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { decode, openDnsClient, query, target } from "../support/dnsclient.ts";
import { openServer, openStream } from "../support/dnstools.ts";
import { image, set } from "../support/zone.ts";

const rate = 20;

/** Sends all packets at once, and resolves to the number of complete, truncated and missing responses. */
async function flood(address: string, packets: readonly Buffer[]) {
  const { host, port } = target(address);
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
  const answers: Buffer[] = [];
  socket.on("message", (answer) => answers.push(answer));
  await new Promise<void>((resolve) => socket.connect(Number(port), host, resolve));
  const other = await openDnsClient(address, "127.9.9.9");
  const begun = performance.now();
  for (const packet of packets) socket.send(packet);
  // The server responds in the order of the queries: when a client of another network has its response, all others are sent.
  assert.equal(decode((await other.exchange(query("www.example.com", 1))) as Buffer).answers.length, 1);
  const seconds = (performance.now() - begun) / 1000;
  for (let count = -1; count !== answers.length; ) {
    count = answers.length;
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  other.close();
  socket.close();
  const truncated = answers.filter((answer) => decode(answer).flag_tc).length;
  const complete = answers.length - truncated;
  assert.ok(complete >= rate && complete <= rate + rate * seconds, `${complete} complete responses in ${seconds} s`);
  return { complete, truncated, silent: packets.length - answers.length };
}

test("a network has a limit of all queries, also for different names", async () => {
  const limited = await openServer({ queryLimit: rate, limitLoopback: true });
  const names = Array.from({ length: 220 }, (_, i) => `n${i}.example.com`);
  const sets = [...names, "www.example.com"].map((name) => set(name, "A", "192.0.2.1"));
  await limited.publish([image("example.com", 1, sets)]);
  const { address } = await limited.observe();
  const { complete, truncated } = await flood(
    address,
    names.map((name) => query(name, 1)),
  );
  assert.equal(truncated, Math.floor((names.length - complete) / 16));
  await limited.close();
});

test("a client over the rate gets every second response truncated, and no other", async () => {
  const limited = await openServer({ rateLimit: rate, limitLoopback: true });
  await limited.publish([image("example.com", 1, [set("www.example.com", "A", "192.0.2.1")])]);
  const { address } = await limited.observe();
  const { truncated, silent } = await flood(address, new Array<Buffer>(220).fill(query("www.example.com", 1)));
  assert.ok(Math.abs(truncated - silent) <= 1, `${truncated} truncated, ${silent} dropped`);
  const stream = await openStream(address);
  stream.write(query("www.example.com", 1));
  assert.equal(decode((await stream.next()) as Buffer).answers.length, 1, "TCP is not limited");
  stream.socket.destroy();
  await limited.close();
});
