/**
 * Clients open connections to keep others out, against Brume's name server and Knot in the same test. Both continue to respond by TCP. The
 * transfer of a large zone delays no other response.
 */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { decode, openDnsClient, query, target } from "../support/dnsclient.ts";
import { openServer, openStream } from "../support/dnstools.ts";
import { runsOf } from "../support/random.ts";
import { image, set } from "../support/zone.ts";
import { type Knot, startKnot } from "./knot.ts";

const zone = image("example.com", 1, [
  set("example.com", "NS", "ns1.example.com"),
  set("ns1.example.com", "A", "192.0.2.1"),
  set("big.example.com", "TXT", ...Array.from({ length: 200 }, (_, i) => `${i}`.padEnd(250, "x"))),
]);

/** Records of the zone that is transferred. */
const large = runsOf(300_000, 100_000);

let server: Nameserver;
let knot: Knot;
const addresses: Record<string, string> = {};

before(async () => {
  server = await openServer({ transfer: { addresses: ["127.0.0.1"], keys: [], notify: [] } });
  await server.publish([zone]);
  knot = await startKnot([zone]);
  addresses.ours = (await server.observe()).address;
  addresses.Knot = knot.address;
});

after(async () => {
  await Promise.all([server.close(), knot.close()]);
});

async function openFrom(localAddress: string, address: string, first: Buffer | null): Promise<Socket> {
  const { host, port } = target(address);
  const socket = connect({ host, port: Number(port), localAddress });
  socket.on("error", () => {});
  await new Promise<void>((resolve) => socket.once("connect", resolve).once("close", () => resolve()));
  if (first !== null) socket.write(first);
  return socket;
}

/** Returns whether a query by TCP from this address gets a response. */
async function isAnswered(localAddress: string, address: string): Promise<boolean> {
  const bytes = query("ns1.example.com", 1);
  const socket = await openFrom(localAddress, address, Buffer.concat([Buffer.from([0, bytes.length]), bytes]));
  const answered = await new Promise<boolean>((resolve) => {
    socket.once("data", (data: Buffer) => resolve(decode(data.subarray(2)).answers[0]?.data === "192.0.2.1"));
    socket.once("close", () => resolve(false));
  });
  socket.destroy();
  return answered;
}

const framed = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);

const largeQuery = framed(query("big.example.com", 16));
// Knot waits for the rest of half a query before it reads from the next connection.
for (const [title, first, names] of [
  ["that send nothing", null, ["ours", "Knot"]],
  ["with half a query", framed(query("ns1.example.com", 1)).subarray(0, 20), ["ours"]],
  ["that request large responses and read none", Buffer.concat([largeQuery, largeQuery]), ["ours"]],
] as const)
  for (const name of names)
    test(`1,088 connections ${title} from 17 networks do not block queries ${name} by TCP`, async () => {
      const address = addresses[name] as string;
      const sockets: Socket[] = [];
      try {
        for (let network = 1; network <= 17; network++) {
          const open = Array.from({ length: 64 }, (_, i) =>
            openFrom(`127.${network}.0.${1 + (i % 4)}`, address, first),
          );
          for (const socket of await Promise.all(open)) sockets.push(socket.pause());
        }
        for (const from of ["127.99.0.1", "127.1.0.9", "127.0.0.1"]) {
          assert.equal(await isAnswered(from, address), true, `${name} does not respond to ${from}`);
        }
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    });

test(`during the transfer of a zone with ${large} records, queries by UDP and TCP get responses`, async () => {
  const records = Array.from({ length: large }, (_, i) => set(`h${i}.large.example`, "A", "192.0.2.1"));
  await server.publish([image("large.example", 1, records)]);
  const address = addresses.ours as string;
  const [transfer, stream] = await Promise.all([openStream(address), openStream(address)]);
  const dnsClient = await openDnsClient(address);
  // Another transfer follows if this process got too little processor time to send queries during the first one.
  for (let answered = 0; answered <= 10; ) {
    answered = 0;
    let counted = 0;
    const isOver = (): boolean => counted >= large + 2;
    transfer.write(query("large.example", 252, { edns: 0 }));
    const queries = (async () => {
      while (!isOver()) {
        assert.notEqual(await dnsClient.exchange(query("ns1.example.com", 1)), null);
        stream.write(query("ns1.example.com", 1));
        assert.notEqual(await stream.next(), null);
        answered++;
      }
    })();
    while (!isOver()) counted += ((await transfer.next()) as Buffer).readUInt16BE(6);
    await queries;
    assert.equal(counted, large + 2);
  }
  dnsClient.close();
  for (const { socket } of [transfer, stream]) socket.destroy();
});
