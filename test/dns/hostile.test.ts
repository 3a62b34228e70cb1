/** Hostile and random packets: none stops the server, gets an invalid response, or gets a response above the maximum size. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { createSim } from "../../service/src/drivers/nameserver/sim/sim.ts";
import { type DnsClient, decode, openDnsClient, query } from "../support/dnsclient.ts";
import { openServer, openStream } from "../support/dnstools.ts";
import { runsOf } from "../support/random.ts";
import { image, set } from "../support/zone.ts";

const ZONE = image("example.com", 1, [
  set("example.com", "NS", "ns1.example.com"),
  set("ns1.example.com", "A", "192.0.2.1"),
  set("*.wild.example.com", "MX", "10 ns1.example.com"),
  set("cut.example.com", "NS", "ns.cut.example.com"),
  set("ns.cut.example.com", "A", "192.0.2.2"),
  set("loop.example.com", "CNAME", "loop.example.com"),
  set("many.example.com", "A", ...Array.from({ length: 100 }, (_, i) => `10.0.0.${i}`)),
]);

const valid = fc
  .record({
    name: fc.constantFrom(
      "example.com",
      "x.wild.example.com",
      "a.cut.example.com",
      "loop.example.com",
      "many.example.com",
      "a.b.c.test",
    ),
    type: fc.constantFrom(1, 2, 5, 6, 15, 16, 28, 33, 43, 250, 251, 252, 255, 41, 0, 65535),
    edns: fc.constantFrom(0, 512, 1232, 65535),
    flags: fc.integer({ min: 0, max: 0x7fff }),
  })
  .map(({ name, type, edns, flags }) => query(name, type, { edns, flags }));

/** Returns a valid query with some bytes overwritten, removed or doubled. */
const mutated = fc
  .tuple(
    valid,
    fc.array(fc.tuple(fc.nat(80), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }),
    fc.nat(100),
    fc.nat(20),
  )
  .map(([packet, writes, cut, repeat]) => {
    const copy = Buffer.from(packet);
    for (const [at, byte] of writes) if (at < copy.length) copy[at] = byte;
    return Buffer.concat([
      copy.subarray(0, cut < 20 ? copy.length - cut : copy.length),
      copy.subarray(0, repeat < 3 ? repeat * 7 : 0),
    ]);
  });

/** Records whose compressed names point to themselves, to each other, forwards, and into the header. */
const looping = fc
  .tuple(valid, fc.array(fc.nat(120), { minLength: 1, maxLength: 8 }), fc.nat(3))
  .map(([packet, pointers, section]) => {
    const records = pointers.map((to) => Buffer.from([0xc0, to, 0, 41, 4, 208, 0, 0, 0, 0, 0, 2, 0xc0, to]));
    const copy = Buffer.concat([packet, ...records]);
    copy.writeUInt16BE(pointers.length + (section === 2 ? packet.readUInt16BE(10) : 0), 6 + 2 * Math.min(section, 2));
    return copy;
  });

const anything = fc.oneof(
  fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes)),
  fc
    .uint8Array({ minLength: 12, maxLength: 300 })
    .map((bytes) => Buffer.concat([Buffer.from([1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]), bytes])),
  valid,
  mutated,
  looping,
);

function check(packet: Buffer, answer: Buffer | null): void {
  const silent = packet.length < 12 || ((packet[2] as number) & 0x80) !== 0;
  assert.equal(answer === null, silent);
  if (answer === null) return;
  const { id } = decode(answer);
  assert.equal(id, packet.readUInt16BE(0));
  assert.equal((answer[2] as number) & 0xf9, 0x80 | ((packet[2] as number) & 0x79), "QR set, opcode and RD kept");
  assert.equal((answer[3] as number) & 0xf0, 0, "RA, Z, AD and CD clear");
  assert.ok(answer.length <= 1232);
}

test("no packet causes an exception or an invalid response", async () => {
  const server = createSim(Date.now);
  await server.publish([ZONE]);
  fc.assert(
    fc.property(anything, (packet) => check(packet, server.answer(packet))),
    { numRuns: runsOf(20_000) },
  );
});

let server: Nameserver;
let dnsClient: DnsClient;
let address: string;

before(async () => {
  server = await openServer({
    transfer: { addresses: [], keys: [{ name: "k", algorithm: "hmac-sha256", secret: "c2VjcmV0" }], notify: [] },
  });
  ({ address } = await server.observe());
  dnsClient = await openDnsClient(address);
  await server.publish([ZONE]);
});

after(async () => {
  dnsClient.close();
  await server.close();
});

const alive = async (): Promise<void> => {
  const answer = await dnsClient.exchange(query("ns1.example.com", 1));
  assert.equal(decode(answer as Buffer).answers[0]?.data, "192.0.2.1");
};

test("the same packets by UDP do not stop the server", async () => {
  const packets = fc.sample(anything, 3000);
  while (packets.length > 0) {
    // A few at a time: packets that the socket's buffer drops would test nothing.
    for (const packet of packets.splice(0, 50)) void dnsClient.exchange(packet, 1);
    await alive();
  }
});

test("the same packets by TCP do not stop the server", async () => {
  for (const packets of fc.sample(fc.array(anything, { maxLength: 20 }), 100)) {
    const stream = await openStream(address);
    stream.write(...packets);
    stream.socket.write(Buffer.from(packets[0] ?? []));
    stream.socket.end();
    while ((await stream.next()) !== null) continue;
  }
  await alive();
  assert.equal((await server.observe()).ready, true);
});

test("malformed signatures make messages malformed", async () => {
  const base = query("example.com", 6, { edns: 0 });
  base.writeUInt16BE(1, 10);
  const record = fc.tuple(fc.uint8Array({ maxLength: 20 }), fc.uint8Array({ maxLength: 60 })).map(([name, rdata]) => {
    const owner = Buffer.from([...name.map((byte) => byte || 1).slice(0, 0), 1, 107, 0]);
    return Buffer.concat([base, owner, Buffer.from([0, 250, 0, 255, 0, 0, 0, 0, 0, rdata.length]), rdata]);
  });
  for (const packet of fc.sample(record, 500)) {
    const answer = await dnsClient.exchange(packet);
    assert.ok([1, 9].includes((answer?.[3] as number) & 15), "FORMERR or NOTAUTH");
  }
  await alive();
});
