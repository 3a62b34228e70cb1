/** The life cycle of the name server's thread: a start that is not permitted, a crash, the restart, and what callers receive meanwhile. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import { decode, openDnsClient, query, target } from "../support/dnsclient.ts";
import { openServer } from "../support/dnstools.ts";
import { image, SOA, set } from "../support/zone.ts";
import { freePort } from "./knot.ts";

const OPTIONS = {
  host: "127.0.0.1",
  port: 0,
  rateLimit: 0,
  transfer: { addresses: [], keys: [], notify: [] },
  log: () => {},
};
const WORKER = new URL("../../service/src/drivers/nameserver/builtin/worker.ts", import.meta.url);

test("a crashed thread is restarted on its address, and requests all zones again", async () => {
  const threads: Worker[] = [];
  const logged: string[] = [];
  const log = (level: string, message: string): unknown => logged.push(`${level}: ${message}`);
  const port = await freePort();
  const server = await createBuiltin({ ...OPTIONS, port, log }, (options) => {
    const thread = new Worker(WORKER, { workerData: options });
    threads.push(thread);
    return thread;
  });
  const { address } = await server.observe();
  let starts = 0;
  let started = (): void => {};
  server.onStart(() => {
    starts++;
    started();
  });
  await server.publish([image("example.com", 1, [set("a.example.com", "A", "192.0.2.1")])]);
  for (let round = 1; round <= 3; round++) {
    const before = starts;
    const again = new Promise<void>((resolve) => {
      started = resolve;
    });
    const pending = server.publish([{ zone: "example.com", base: 1, serial: 2, soa: SOA, sets: [] }]);
    const ended = threads.at(-1)?.terminate();
    const [outcome] = await Promise.allSettled([pending, ended]);
    if (outcome.status === "rejected") assert.match(String(outcome.reason), /not running/);
    const down = await server.observe();
    assert.deepEqual([down.ready, down.address, down.zones], [false, address, []]);
    await assert.rejects(server.publish([image("example.com", 3, [])]), /not running/);
    await again;
    assert.equal(starts, before + 1);
    const up = await server.observe();
    assert.deepEqual([up.ready, up.address, up.zones], [true, address, []]);
    assert.deepEqual(await server.publish([image("example.com", 1, [set("a.example.com", "A", "192.0.2.1")])]), [1]);
    const dnsClient = await openDnsClient(address);
    assert.equal(decode((await dnsClient.exchange(query("a.example.com", 1))) as Buffer).answers[0]?.data, "192.0.2.1");
    dnsClient.close();
  }
  assert.equal(logged.filter((line) => line.startsWith("error:")).length, 3);
  assert.equal(logged.filter((line) => line.startsWith("info:")).length, 3);
  await server.close();
});

test("a server that is closed while its thread is down does not restart", async () => {
  const threads: Worker[] = [];
  const port = await freePort();
  const server = await createBuiltin({ ...OPTIONS, port }, (options) => {
    const thread = new Worker(WORKER, { workerData: options });
    threads.push(thread);
    return thread;
  });
  await threads[0]?.terminate();
  while (threads.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(threads.length, 2);
  await server.close();
  assert.deepEqual(
    threads.map(({ threadId }) => threadId),
    [-1, -1],
    "both have ended",
  );
  const again = await openServer({ port });
  await again.close();
});

test("an address in use is rejected with a hint, for UDP and for TCP", async () => {
  const port = await freePort();
  const udp = createSocket("udp4");
  await new Promise<void>((resolve) => udp.bind(port, "127.0.0.1", resolve));
  await assert.rejects(openServer({ port }), /in use by another program.*choose another/);
  await new Promise<void>((resolve) => udp.close(resolve));
  const tcp = createServer();
  await new Promise<void>((resolve) => tcp.listen(port, "127.0.0.1", resolve));
  await assert.rejects(openServer({ port }), /in use by another program/);
  await new Promise((resolve) => tcp.close(resolve));
  const server = await openServer({ port });
  assert.equal(target((await server.observe()).address).port, String(port), "nothing is left of the failed start");
  await server.close();
});

test("an address of another host is rejected with a hint", async () => {
  await assert.rejects(openServer({ host: "192.0.2.1" }), /is not an address of this host: choose one/);
});

test("a port that needs a capability is rejected with a hint", async () => {
  const denied = (options: object): Worker =>
    new Worker(
      `const { parentPort } = require("node:worker_threads");
       parentPort.postMessage({ kind: "unable", code: "EACCES", message: "bind EACCES" });`,
      { eval: true, workerData: options },
    );
  await assert.rejects(
    createBuiltin({ ...OPTIONS, port: 53 }, denied),
    /127\.0\.0\.1:53.*CAP_NET_BIND_SERVICE.*port from 1024/,
  );
});

test("queries get responses while a zone of a hundred thousand records loads", async () => {
  const server = await openServer();
  const dnsClient = await openDnsClient((await server.observe()).address);
  await server.publish([image("small.example", 1, [set("a.small.example", "A", "192.0.2.1")])]);
  const sets = Array.from({ length: 100_000 }, (_, i) =>
    set(`n${i}.big.example`, "A", `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`),
  );
  // The thread of the test may get no processor until the zone is loaded: then the next serial is loaded.
  let during = 0;
  for (let serial = 1; during === 0; serial++) {
    let loading = true;
    const load = server.publish([image("big.example", serial, sets)]).finally(() => {
      loading = false;
    });
    while (loading) {
      const answer = await dnsClient.exchange(query("a.small.example", 1));
      assert.equal(decode(answer as Buffer).rcode, "NOERROR");
      if (loading) {
        const big = decode((await dnsClient.exchange(query("n1.big.example", 1))) as Buffer);
        assert.ok(big.rcode === "REFUSED" || big.answers.length === 1, "the complete zone or nothing");
        during++;
      }
    }
    assert.deepEqual(await load, [serial]);
  }
  assert.equal(
    decode((await dnsClient.exchange(query("n99999.big.example", 1))) as Buffer).answers[0]?.data,
    "10.1.134.159",
  );
  dnsClient.close();
  await server.close();
});
