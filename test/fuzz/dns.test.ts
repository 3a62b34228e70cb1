/** Fuzzing of the name server: tens of thousands of packets while the API works, and crashes of its thread under load. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { FromWorker } from "../../service/src/drivers/nameserver/builtin/worker.ts";
import { lookUp } from "../chaos/load.ts";
import { checkStored } from "../chaos/stored.ts";
import { sqliteFirst } from "../support/databases.ts";
import { type DnsClient, openDnsClient, query, target } from "../support/dnsclient.ts";
import { openStream } from "../support/dnstools.ts";
import { createProcess } from "../support/process.ts";
import { type Random, runsOf, withSeed } from "../support/random.ts";
import { createTestService } from "../support/testservice.ts";
import { waitUntil } from "../support/waituntil.ts";

const packets = runsOf(30_000);
const streams = runsOf(150);

/** Names that exist in the tested zone, and some that do not. */
const names = [
  "fuzz.test",
  "www.fuzz.test",
  "a.b.c.fuzz.test",
  "x.wild.fuzz.test",
  "a.cut.fuzz.test",
  "alias.fuzz.test",
  "test",
  "",
];
const zoneFile = [
  "www A 192.0.2.1",
  "*.wild MX 10 www",
  "cut NS ns.cut",
  "ns.cut A 192.0.2.2",
  "alias CNAME www",
  `big TXT ${Array.from({ length: 15 }, (_, i) => `"${String(i).repeat(200)}"`).join(" ")}`,
  "",
].join("\n");

/** Returns a valid query, a mutated one, or random bytes. */
function forgePacket({ pick, below, chance }: Random): Buffer {
  if (chance(10)) return Buffer.from(Array.from({ length: below(700) }, () => below(256)));
  const edns = pick([0, 0, 100, 512, 1232, 65_535]);
  const type = chance(80) ? pick([1, 2, 5, 6, 12, 15, 16, 28, 33, 41, 43, 250, 251, 252, 255]) : below(65_536);
  const options = {
    id: below(65_536),
    flags: chance(80) ? 0x100 : below(65_536),
    class: chance(90) ? 1 : below(65_536),
  };
  const name = chance(50) ? pick(names) : `big.fuzz.test`;
  const packet = query(name, type, { ...options, edns, version: chance(95) ? 0 : below(256), dnssec: chance(20) });
  if (chance(40)) return packet;
  const mutated = Buffer.concat([
    packet,
    Buffer.from(Array.from({ length: chance(20) ? below(60) : 0 }, () => below(256))),
  ]);
  for (let i = below(8); i > 0; i--) mutated[below(mutated.length)] = chance(30) ? 0xc0 + below(64) : below(256);
  return chance(15) ? mutated.subarray(0, below(mutated.length)) : mutated;
}

async function fuzzUdp(address: string, random: Random, asker: DnsClient): Promise<void> {
  const { host, port } = target(address);
  const socket = createSocket("udp4");
  socket.on("error", () => {});
  for (let sent = 0; sent < packets; sent++) {
    const packet = forgePacket(random);
    if (packet.length > 0) socket.send(packet, Number(port), host);
    // The server has read all packets that came before a query with a response: more at once are an overload, or the kernel drops them.
    if (sent % 50 === 49) await lookUp(asker, "www.fuzz.test");
  }
  await lookUp(asker, "www.fuzz.test");
  socket.close();
}

async function fuzzTcp(address: string, random: Random): Promise<void> {
  const { host, port } = target(address);
  const { below, chance } = random;
  for (let i = 0; i < streams; i++) {
    const stream = await openStream(address);
    stream.write(...Array.from({ length: 1 + below(30) }, () => forgePacket(random)));
    const turn = below(4);
    // A message with a wrong length, a length without a message, one byte of a length, and a regular end.
    if (turn === 0) stream.socket.write(Buffer.concat([Buffer.from([0xff, 0xff]), forgePacket(random)]));
    else if (turn === 1) stream.socket.write(Buffer.from([0, 0, 0, 0]));
    else if (turn === 2) stream.socket.write(Buffer.from([7]));
    if (chance(50)) stream.socket.end();
    else stream.socket.resetAndDestroy();
    while (!stream.socket.destroyed && (await stream.next()) !== null) continue;
    stream.socket.destroy();
  }
  // These connections request much data and read none of it.
  const largeQueries = Array.from({ length: 20 }, () =>
    connect(Number(port), host)
      .on("error", () => {})
      .pause(),
  );
  const wanted = query("big.fuzz.test", 16, { edns: 0 });
  const framed = Buffer.concat([Buffer.from([0, wanted.length]), wanted]);
  for (const socket of largeQueries) socket.write(Buffer.concat(Array.from({ length: 2000 }, () => framed)));
  await sleep(200);
  for (const socket of largeQueries) socket.destroy();
}

test("hostile packets do not disturb the API", (context) =>
  withSeed(async (random) => {
    const brume = await createProcess("sqlite");
    try {
      const dnsClient = await openDnsClient(brume.dns);
      const { client } = brume;
      const { ID } = await client.createDomain({ body: { Name: "fuzz.test", ZoneFile: zoneFile } });
      let isOver = false;
      let made = 0;
      const work = async (): Promise<void> => {
        while (!isOver) {
          const number = ++made;
          const address = `10.0.${number >> 8}.${number & 255}`;
          await client.createRecordA({ body: { DomainId: ID, Name: `r${number}`, IP: address } });
          assert.deepEqual(await lookUp(dnsClient, `r${number}.fuzz.test`), [address]);
        }
      };
      const working = Promise.all(Array.from({ length: 4 }, work));
      try {
        await Promise.all([fuzzUdp(brume.dns, random, dnsClient), fuzzTcp(brume.dns, random)]);
      } finally {
        isOver = true;
        await working;
        dnsClient.close();
      }
      // The thread may still work on the last packets, and then does not report within a second.
      const readiness = async () => (await fetch(`${brume.url}/readyz`)).text();
      await waitUntil("a service that is ready", readiness, (text) => text.includes('"Status":"ready"'), 50);
      assert.deepEqual(
        brume.log.filter(({ level }) => level >= 40),
        [],
      );
      const memory = brume.memory() >> 20;
      assert.ok(memory < 400, `${memory} MB`);
      await checkStored(brume);
      assert.equal(await brume.end("SIGTERM"), 0);
      context.diagnostic(
        `${packets} packets, ${streams} streams, ${made} records created at the same time; ${memory} MB`,
      );
    } finally {
      await brume.close();
    }
  }));

const program = new URL("../../service/src/drivers/nameserver/builtin/worker.ts", import.meta.url);
const quiet = {
  host: "127.0.0.1",
  port: 0,
  rateLimit: 0,
  transfer: { addresses: ["127.0.0.1"], keys: [], notify: [] },
};

for (const kind of sqliteFirst)
  test(`${kind}: a name server whose thread crashes restarts with all zones`, async () => {
    let running = Promise.withResolvers<Worker>();
    /** Ends the thread when it is ready. While it loads koffi, its end would abort the process. */
    const terminate = async (): Promise<void> => {
      const thread = await running.promise;
      running = Promise.withResolvers();
      await thread.terminate();
    };
    let isHeld = false;
    const nameserver = await createBuiltin({ ...quiet, log: () => {} }, (options) => {
      const thread = isHeld
        ? new Worker("process.exit(1)", { eval: true })
        : new Worker(program, { workerData: options });
      thread.on("message", ({ kind }: FromWorker) => {
        if (kind === "ready") running.resolve(thread);
      });
      return thread;
    });
    const brume = await createTestService(kind, { nameserver });
    try {
      const { client } = brume;
      const ids: number[] = [];
      for (let i = 0; i < 20; i++)
        ids.push((await client.createDomain({ body: { Name: `d${i}.test`, Ip: "192.0.2.1" } })).ID);

      const readiness = async () =>
        (await fetch(`${brume.url}/readyz`)).json() as ReturnType<typeof client.readReadiness>;
      const until = async (status: string): Promise<void> => {
        await waitUntil(status, readiness, ({ Status }) => Status === status, 20);
      };
      const existing = {
        kind,
        dns: brume.dns,
        pid: 1,
        snapshot: async () => ({ read: brume.store.read, close: async () => {} }),
      };

      // Repeatedly under load: in the end the name server always serves the state of the database.
      let isOver = false;
      let made = 0;
      const writing = Promise.all(
        ids.slice(2, 10).map(async (id) => {
          while (!isOver) await client.createRecordA({ body: { DomainId: id, Name: `r${++made}`, IP: "192.0.2.3" } });
        }),
      );
      for (let round = 0; round < 4; round++) {
        await sleep(200);
        await terminate();
      }
      isOver = true;
      await writing;
      for (const id of ids.slice(2, 10)) await client.waitFor("readDomain", { path: { id } }, { timeout: 120_000 });
      await checkStored(existing);

      // For a longer time: the service reports it, accepts changes, and publishes them later.
      isHeld = true;
      await terminate();
      await until("failing");
      const { Checks } = await readiness();
      assert.equal(Checks.find(({ Name }) => Name === "nameserver")?.Ok, false);
      const body = { DomainId: ids[0] ?? 0, Name: "late", IP: "192.0.2.2" };
      const late = await client.createRecordA({ body });
      assert.equal(late.State, "New", "the record is not served yet, and the response shows it");
      assert.equal((await client.readRecord({ path: { id: late.ID } })).State, "New");
      await client.deleteDomain({ path: { id: ids[1] as number } });

      isHeld = false;
      await until("ready");
      await client.waitFor("readRecord", { path: { id: late.ID } }, { timeout: 120_000 });
      await checkStored(existing);
      assert.deepEqual(await brume.resolver.resolve4("late.d0.test"), ["192.0.2.2"]);
      await assert.rejects(brume.resolver.resolve4("d1.test"), { code: "EREFUSED" });
    } finally {
      await brume.close();
    }
  });
