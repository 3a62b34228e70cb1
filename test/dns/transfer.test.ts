/**
 * Zone transfer, signatures and NOTIFY, with kdig, dig and a Knot secondary. An authorised client gets the complete zone of one serial, and
 * any other client gets nothing. A change reaches the secondary automatically.
 */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { after, before, test } from "node:test";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { createKey, sign } from "../../service/src/drivers/nameserver/transfer/tsig.ts";
import { decode, openDnsClient, query } from "../support/dnsclient.ts";
import { openServer, openStream, run } from "../support/dnstools.ts";
import { image, SOA, set } from "../support/zone.ts";
import { freePort, startKnot } from "./knot.ts";

const secret = Buffer.alloc(32, 7).toString("base64");
const other = Buffer.alloc(32, 8).toString("base64");
const KEY = { name: "transfer.brume", algorithm: "hmac-sha256", secret };
const keys = ["hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"].map((algorithm) => ({
  name: `${algorithm}.key`,
  algorithm,
  secret,
}));

let server: Nameserver;
let address: string;

const names = Array.from({ length: 3000 }, (_, i) => set(`host-${i}.example.com`, "A", `10.1.${i >> 8}.${i & 255}`));
const zone = image("example.com", 100, [
  set("example.com", "NS", "ns1.example.com"),
  set("ns1.example.com", "A", "192.0.2.1"),
  set("big.example.com", "TXT", ...Array.from({ length: 200 }, (_, i) => `${i}`.padEnd(250, "x"))),
  set("cut.example.com", "NS", "ns.cut.example.com"),
  set("ns.cut.example.com", "A", "192.0.2.2"),
  set("*.wild.example.com", "CNAME", "ns1.example.com"),
  ...names,
]);
const RECORDS = 1 + 1 + 1 + 200 + 1 + 1 + 1 + 3000 + 1;

before(async () => {
  server = await openServer({ transfer: { addresses: [], keys: [KEY, ...keys], notify: [] } });
  ({ address } = await server.observe());
  await server.publish([zone, image("small.example", 1, [set("a.small.example", "A", "192.0.2.1")])]);
});

after(() => server.close());

const lines = (text: string): string[] => text.split("\n").filter((line) => /^\S+\s+\d+\s+IN\s/.test(line));

for (const { name, algorithm } of [KEY, ...keys]) {
  test(`AXFR by kdig and dig with ${algorithm} key ${name}`, async () => {
    const key = `${algorithm}:${name}:${secret}`;
    for (const tool of ["kdig", "dig"] as const) {
      const text = await run(tool, address, "-y", key, "example.com", "AXFR", "+edns=0");
      assert.equal(lines(text).filter((line) => !/\sTSIG\s/.test(line)).length, RECORDS, text.slice(-500));
      assert.doesNotMatch(text.slice(-1000), /fail|could ?n.t|BADSIG|BADKEY|BADTIME/i);
    }
  });
}

test("a transfer begins and ends with the SOA and contains every record", async () => {
  const text = await run(
    "dig",
    address,
    "-y",
    `hmac-sha256:${KEY.name}:${secret}`,
    "example.com",
    "AXFR",
    "+nocmd",
    "+onesoa",
  );
  const all = lines(text).filter((line) => !/\sTSIG\s/.test(line));
  assert.match(all[0] ?? "", /\sSOA\s.* 100 /);
  assert.equal(new Set(all).size, RECORDS - 1);
  for (const owner of ["host-2999.example.com.", "ns.cut.example.com.", "*.wild.example.com."]) {
    assert.ok(
      all.some((line) => line.startsWith(owner)),
      owner,
    );
  }
});

test("without the key, with a wrong secret, a wrong name or a wrong algorithm nothing is transferred", async () => {
  assert.match(await run("dig", address, "example.com", "AXFR"), /Transfer failed/);
  for (const [key, error] of [
    [`hmac-sha256:${KEY.name}:${other}`, /BADSIG/],
    [`hmac-sha256:nobody.brume:${secret}`, /BADKEY/],
    [`hmac-sha512:${KEY.name}:${secret}`, /BADKEY/],
  ] as const) {
    const text = await run("kdig", address, "-y", key, "example.com", "AXFR");
    assert.match(text, error);
    assert.doesNotMatch(text, /host-/);
    const plain = await run("kdig", address, "-y", key, "ns1.example.com", "A");
    assert.match(plain, error);
    assert.doesNotMatch(plain, /192\.0\.2\.1/);
  }
});

test("the response to a wrong clock is signed and contains the time of the server", async () => {
  const key = createKey(KEY);
  const packet = query("example.com", 6, { edns: 0 });
  const stream = await openStream(address);
  stream.write(sign(packet, { key, prior: null }, Math.floor(Date.now() / 1000) - 1000).bytes);
  const answer = (await stream.next()) as Buffer;
  assert.equal(decode(answer).rcode, "NOTAUTH");
  assert.equal(answer.readUInt16BE(answer.length - 10), 18);
  assert.ok(Math.abs(answer.readUIntBE(answer.length - 6, 6) - Date.now() / 1000) < 60);
  stream.socket.destroy();
});

test("every signed query gets a signed response", async () => {
  const text = await run("dig", address, "-y", `hmac-sha256:${KEY.name}:${secret}`, "ns1.example.com", "A", "+notcp");
  assert.match(text, /192\.0\.2\.1/);
  assert.match(text, /TSIG PSEUDOSECTION/);
  assert.doesNotMatch(text, /Couldn't verify|failed/i);
});

test("IXFR: one SOA for a current client and by UDP, everything else as AXFR", async () => {
  const key = ["-y", `hmac-sha256:${KEY.name}:${secret}`];
  const soas = (text: string) => lines(text).filter((line) => /\sSOA\s/.test(line)).length;
  const current = await run("dig", address, ...key, "example.com", "IXFR=100");
  assert.deepEqual([lines(current).filter((line) => !/\sTSIG\s/.test(line)).length, soas(current)], [1, 1]);
  const old = await run("dig", address, ...key, "example.com", "IXFR=99");
  assert.equal(lines(old).filter((line) => !/\sTSIG\s/.test(line)).length, RECORDS);
  const udp = await run("dig", address, ...key, "example.com", "IXFR=99", "+notcp");
  assert.equal(soas(udp), 1);
  assert.match(await run("dig", address, "example.com", "IXFR=99"), /Transfer failed/);
});

test("a configured address needs no key, others need one", async () => {
  for (const [addresses, allowed] of [
    [["127.0.0.1"], true],
    [["127.0.0.0/8", "2001:db8::/32"], true],
    [["192.0.2.0/24"], false],
  ] as const) {
    const mine = await openServer({ transfer: { addresses, keys: [], notify: [] } });
    await mine.publish([image("example.com", 1, [set("a.example.com", "A", "192.0.2.1")])]);
    const at = (await mine.observe()).address;
    const text = await run("dig", at, "example.com", "AXFR");
    assert.equal(/XFR size: 3 records/.test(text), allowed);
    if (allowed) assert.match(await run("dig", at, "nothing.example", "AXFR"), /Transfer failed/);
    const { zones } = await mine.observe();
    assert.deepEqual(zones[0]?.rcodes, allowed ? { NOERROR: 1 } : { REFUSED: 1 });
    await mine.close();
  }
  await assert.rejects(
    openServer({ transfer: { addresses: ["somewhere"], keys: [], notify: [] } }),
    /somewhere|address/i,
  );
});

test("the first message of a transfer has an OPT record if the query has one", async () => {
  const mine = await openServer({ transfer: { addresses: ["127.0.0.1"], keys: [], notify: [] } });
  const sets = (count: number) => Array.from({ length: count }, (_, i) => set(`n${i}.example.com`, "TXT", "text"));
  for (const [serial, count] of [3, 3000].entries()) {
    await mine.publish([image("example.com", serial + 1, sets(count))]);
    for (const options of [{ edns: 1232, dnssec: true }, { edns: 1232 }, { edns: 0 }]) {
      const stream = await openStream((await mine.observe()).address);
      stream.write(query("example.com", 252, options));
      const additionals: string[] = [];
      for (let soas = 0; soas < 2; ) {
        const { answers, additionals: found } = decode((await stream.next()) as Buffer);
        soas += answers.filter(({ type }) => type === "SOA").length;
        additionals.push(found.map(({ type, ...more }) => `${type} ${(more as { flag_do?: boolean }).flag_do}`).join());
      }
      const opt = options.edns === 0 ? "" : `OPT ${options.dnssec === true}`;
      assert.deepEqual(additionals, [opt, ...additionals.slice(1).map(() => "")]);
      stream.socket.destroy();
    }
  }
  await mine.close();
});

test("a transfer contains one serial, also if the zone changes meanwhile", async () => {
  const mine = await openServer({ transfer: { addresses: ["127.0.0.1"], keys: [], notify: [] } });
  const manySets = Array.from({ length: 60_000 }, (_, i) => set(`n${i}.example.com`, "TXT", "old".padEnd(60, ".")));
  await mine.publish([image("example.com", 1, manySets)]);
  const stream = await openStream((await mine.observe()).address);
  stream.write(query("example.com", 252, { edns: 0 }));
  const first = (await stream.next()) as Buffer;
  stream.socket.pause();
  const changes = Array.from({ length: 1000 }, (_, i) => set(`n${59_999 - i}.example.com`, "TXT", "new"));
  assert.deepEqual(await mine.publish([{ zone: "example.com", base: 1, serial: 2, soa: SOA, sets: changes }]), [2]);
  stream.socket.resume();
  let soas = 0;
  let texts = 0;
  for (let message: Buffer = first; soas < 2; message = (await stream.next()) as Buffer) {
    for (const { type, data } of decode(message).answers) {
      if (type === "SOA") {
        assert.equal((data as { serial: number }).serial, 1);
        soas++;
      } else {
        texts++;
        assert.match(String((data as Buffer[])[0]), /^old/);
      }
    }
  }
  assert.equal(texts, 60_000);
  stream.socket.destroy();
  await mine.close();
});

test("a Knot secondary is notified and follows every change", async () => {
  const port = await freePort();
  const primary = await openServer({
    transfer: { addresses: [], keys: [KEY], notify: [{ host: "127.0.0.1", port, key: KEY.name }] },
  });
  await primary.publish([
    image("example.com", 1, [set("example.com", "NS", "ns1.example.com"), set("a.example.com", "A", "192.0.2.1")]),
  ]);
  const { address: from } = await primary.observe();
  const knot = await startKnot([], [], {
    port,
    config: `key:
  - id: ${KEY.name}
    algorithm: ${KEY.algorithm}
    secret: ${KEY.secret}
remote:
  - id: primary
    address: ${from.replace(":", "@")}
    key: ${KEY.name}
acl:
  - id: from-primary
    address: 127.0.0.1
    key: ${KEY.name}
    action: notify
zone:
  - domain: example.com
    master: primary
    acl: from-primary
    zonefile-sync: -1
    zonefile-load: none
    journal-content: all
`,
  });
  const dnsClient = await openDnsClient(knot.address);
  const sees = async (data: string): Promise<boolean> => {
    const answer = await dnsClient.exchange(query("a.example.com", 1), 500);
    return answer !== null && decode(answer).answers[0]?.data === data;
  };
  const until = async (data: string): Promise<void> => {
    for (const end = Date.now() + 120_000; Date.now() < end; ) {
      if (await sees(data)) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.fail(`the secondary does not serve ${data}`);
  };
  try {
    await until("192.0.2.1");
    for (let i = 2; i < 12; i++) {
      const sets = [set("a.example.com", "A", `192.0.2.${i}`)];
      await primary.publish([{ zone: "example.com", base: i - 1, serial: i, soa: SOA, sets }]);
      await until(`192.0.2.${i}`);
    }
  } finally {
    dnsClient.close();
    await knot.close();
    await primary.close();
  }
});

test("NOTIFY is repeated to a secondary that does not respond, and metrics show it as unreachable", async () => {
  const silent = createSocket("udp4");
  await new Promise<void>((resolve) => silent.bind(0, "127.0.0.1", resolve));
  const { port } = silent.address();
  const seen: Buffer[] = [];
  const receivedTwo = new Promise<void>((resolve) => {
    silent.on("message", (packet) => seen.push(packet) === 2 && resolve());
  });
  const notify = [{ host: "127.0.0.1", port }];
  const mine = await openServer({ transfer: { addresses: ["127.0.0.1"], keys: [], notify } });
  await mine.publish([image("example.com", 1, []), image("small.example", 1, [])]);
  await receivedTwo;
  const address = `127.0.0.1:${port}`;
  for (const packet of seen) {
    assert.equal(packet.readUInt16BE(2), 0x2400);
    assert.match(decode(packet).questions[0]?.name ?? "", /^(example.com|small.example)$/);
  }
  let [state] = (await mine.observe()).secondaries;
  for (; state?.reachable === null; [state] = (await mine.observe()).secondaries)
    await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual({ ...state, lag: 0 }, { address, reachable: false, behind: 2, lag: 0, serials: new Map() });
  // A client that transfers a zone has its serial.
  await run("dig", (await mine.observe()).address, "example.com", "AXFR");
  [state] = (await mine.observe()).secondaries;
  const serials = new Map([["example.com", 1]]);
  assert.deepEqual({ ...state, lag: 0 }, { address, reachable: true, behind: 1, lag: 0, serials });
  await mine.close();
  silent.close();
});

test("a key is valid for its zones and projects only, and its catalog lists no others", async () => {
  const only = { zones: ["one.example"], groups: [7] };
  const bound = { name: "bound", algorithm: "hmac-sha256", secret, only };
  const catalog = "catalog.invalid";
  const mine = await openServer({ transfer: { addresses: [], keys: [KEY, bound], notify: [], catalog } });
  const at = (await mine.observe()).address;
  const names = ["one.example", "two.example", "three.example"];
  await mine.publish(
    names.map((zone, i) => ({ ...image(zone, 1, [set(`a.${zone}`, "A", "192.0.2.1")]), group: 6 + i, identity: i })),
  );
  const digWithKey = (key: string, ...args: string[]) => run("dig", at, "-y", `hmac-sha256:${key}:${secret}`, ...args);
  for (const [name, allowed] of [
    ["one.example", true],
    ["two.example", true],
    ["three.example", false],
  ] as const) {
    for (const type of ["AXFR", "IXFR=0"])
      assert.equal(/192\.0\.2\.1/.test(await digWithKey("bound", name, type)), allowed, `${name} ${type}`);
    assert.match(await digWithKey(KEY.name, name, "AXFR"), /192\.0\.2\.1/);
    assert.match(await digWithKey("bound", `a.${name}`, "A"), /192\.0\.2\.1/, "queries are not restricted");
  }
  assert.match(await digWithKey(KEY.name, catalog, "SOA"), /SERVFAIL/, "only when all zones are loaded");
  await mine.loaded();
  const members = (text: string) => [...text.matchAll(/\sPTR\s+(\S+)\./g)].map(([, zone = ""]) => zone).sort();
  assert.deepEqual(members(await digWithKey(KEY.name, catalog, "AXFR")), [...names].sort());
  assert.deepEqual(members(await digWithKey("bound", catalog, "AXFR")), ["one.example", "two.example"]);
  assert.match(await digWithKey(KEY.name, catalog, "SOA"), /status: NOERROR/);
  for (const type of ["SOA", "AXFR", "NS", "TXT"])
    assert.match(await run("dig", at, catalog, type), /REFUSED|Transfer failed/, `${type} without a key`);
  await mine.close();
});

test("an invalid configuration is rejected at the start, with a reason", async () => {
  const broken = (transfer: Parameters<typeof openServer>[0]) => assert.rejects(openServer(transfer));
  await broken({ transfer: { addresses: [], keys: [{ ...KEY, algorithm: "hmac-md5" }], notify: [] } });
  await broken({ transfer: { addresses: [], keys: [{ ...KEY, secret: "" }], notify: [] } });
  await broken({ transfer: { addresses: [], keys: [], notify: [{ host: "127.0.0.1", port: 53, key: "nobody" }] } });
});
