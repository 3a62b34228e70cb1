/**
 * The protocol beside the records: EDNS, refusals, letter case, truncation, TCP. The tests use dig, as operators do, and sockets for
 * messages that dig cannot send.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { type DnsClient, decode, openDnsClient, query } from "../support/dnsclient.ts";
import { openServer, openStream, run, type Stream } from "../support/dnstools.ts";
import { image, set } from "../support/zone.ts";

let server: Nameserver;
let address: string;
let dnsClient: DnsClient;

const many = Array.from({ length: 60 }, (_, i) => `10.0.0.${i}`);

before(async () => {
  server = await openServer();
  ({ address } = await server.observe());
  dnsClient = await openDnsClient(address);
  await server.publish([
    image("example.com", 42, [
      set("example.com", "NS", "ns1.example.com", "ns2.example.com"),
      set("example.com", "MX", "10 mail.example.com"),
      set("ns1.example.com", "A", "192.0.2.1"),
      set("mail.example.com", "A", "192.0.2.2"),
      set("www.example.com", "A", "192.0.2.3"),
      set("www.example.com", "TXT", "hello"),
      set("many.example.com", "A", ...many),
      set("huge.example.com", "TXT", ...Array.from({ length: 40 }, (_, i) => `${i}`.padEnd(250, "x"))),
      set("beyond.example.com", "TXT", ...Array.from({ length: 300 }, (_, i) => `${i}`.padEnd(250, "x"))),
      set("long.example.com", "TXT", "x".repeat(700)),
      set("fat.example.com", "NS", ...Array.from({ length: 20 }, (_, i) => `${"n".repeat(50)}${i}.fat.example.com`)),
      ...Array.from({ length: 20 }, (_, i) => set(`${"n".repeat(50)}${i}.fat.example.com`, "AAAA", `2001:db8::${i}`)),
      set("Spelled.example.com", "CNAME", "Target.Example.com"),
      set("away.example.com", "CNAME", "www.example.org"),
      set("below.example.com", "NS", "ns.other.test"),
      ...Array.from({ length: 12 }, (_, i) => set(`c${i}.example.com`, "CNAME", `c${i + 1}.example.com`)),
      set("c12.example.com", "A", "192.0.2.12"),
    ]),
    image("example.org", 1, [set("www.example.org", "A", "192.0.2.99")]),
    image("hosted.example.com", 1, [set("www.hosted.example.com", "A", "192.0.2.50")]),
  ]);
});

after(async () => {
  dnsClient.close();
  await server.close();
});

const send = async (name: string, type: number, options: Parameters<typeof query>[2] = {}): Promise<Buffer> => {
  const answer = await dnsClient.exchange(query(name, type, options));
  assert.notEqual(answer, null);
  return answer as Buffer;
};

for (const transport of ["+notcp", "+tcp"]) {
  test(`dig ${transport}`, async () => {
    const text = await run("dig", address, "www.example.com", "A", transport, "+norec");
    assert.match(text, /status: NOERROR/);
    assert.match(text, /flags: qr aa; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1/);
    assert.match(text, /EDNS: version: 0, flags:; udp: 1232/);
    assert.match(text, /^www\.example\.com\.\t+300\tIN\tA\t192\.0\.2\.3$/m);
    assert.doesNotMatch(text, /WARNING|malformed|mismatch/i);
  });
}

test("RD is copied, RA, AD and CD are not", async () => {
  assert.match(await run("dig", address, "www.example.com", "+rec", "+adflag", "+cdflag"), /flags: qr aa rd; /);
  // The cached response, without EDNS and with EDNS again.
  for (const flags of [0, 0x0100, 0, 0x0130]) {
    assert.equal((await send("www.example.com", 1, { flags })).readUInt16BE(2), 0x8400 | (flags & 0x0100));
  }
});

test("+noedns gets no OPT, +bufsize does not raise the maximum size, DO is copied", async () => {
  assert.doesNotMatch(await run("dig", address, "www.example.com", "+noedns"), /EDNS|OPT/);
  assert.match(await run("dig", address, "www.example.com", "+bufsize=4096"), /udp: 1232/);
  assert.match(await run("dig", address, "www.example.com", "+dnssec"), /EDNS: version: 0, flags: do; udp: 1232/);
});

test("unknown EDNS options are ignored, cookies and name server ids too", async () => {
  for (const option of [
    "+ednsopt=100:cafe",
    "+nsid",
    "+cookie",
    "+subnet=192.0.2.0/24",
    "+padding=128",
    "+keepalive",
  ]) {
    const text = await run("dig", address, "www.example.com", option);
    assert.match(text, /status: NOERROR/, option);
    assert.match(text, /192\.0\.2\.3/, option);
    assert.doesNotMatch(text, /OPT=|COOKIE: .*good|NSID/, option);
  }
});

test("an unknown EDNS version is BADVERS, without records", async () => {
  const text = await run("dig", address, "www.example.com", "+edns=1", "+noednsnegotiation");
  assert.match(text, /status: BADVERS/);
  assert.match(text, /ANSWER: 0, AUTHORITY: 0, ADDITIONAL: 1/);
  const update = await run("dig", address, "www.example.com", "+edns=1", "+noednsnegotiation", "+opcode=UPDATE");
  assert.match(update, /opcode: UPDATE, status: BADVERS/);
});

test("version.bind and every class except IN are refused", async () => {
  assert.match(await run("dig", address, "version.bind", "TXT", "CH"), /status: REFUSED/);
  assert.match(await run("dig", address, "www.example.com", "A", "HS"), /status: REFUSED/);
  assert.equal(decode(await send("www.example.com", 1, { class: 255 })).rcode, "REFUSED");
});

test("opcodes: NOTIFY is refused, STATUS and UPDATE are not implemented", async () => {
  assert.match(await run("dig", address, "example.com", "SOA", "+opcode=NOTIFY"), /opcode: NOTIFY, status: REFUSED/);
  assert.match(await run("dig", address, "example.com", "SOA", "+opcode=STATUS"), /opcode: STATUS, status: NOTIMP/);
  assert.match(await run("dig", address, "example.com", "SOA", "+opcode=UPDATE"), /opcode: UPDATE, status: NOTIMP/);
  assert.match(await run("dig", address, "example.com", "SOA", "+opcode=15"), /opcode: RESERVED15, status: NOTIMP/);
});

test("the question keeps its letter case, also from the cache", async () => {
  for (const name of ["WwW.eXample.COM", "www.EXAMPLE.com", "wWW.example.com"]) {
    const text = await run("dig", address, name);
    assert.match(text, new RegExp(`^;${name.replaceAll(".", "\\.")}\\.\\t+IN\\tA$`, "m"));
    assert.match(text, /192\.0\.2\.3/);
  }
});

test("stored names keep their letter case, regardless of that of the question, also from the cache", async () => {
  for (const name of ["spelled.example.com", "SPELLED.EXAMPLE.COM", "sPelled.example.com"]) {
    const text = await run("kdig", address, name, "CNAME");
    assert.match(text, /^Spelled\.example\.com\.\s.*\sCNAME\s+Target\.Example\.com\.$/im);
    assert.match(text, /\sTarget\.Example\.com\.$/m);
    assert.match(text, /^Spelled\./m);
    assert.match(await run("kdig", address, name.replace(/^[^.]+\./, ""), "MX"), /\smail\.example\.com\.$/m);
  }
});

test("names of other zones are refused, without AA and records", async () => {
  const { rcode, flag_aa, answers, authorities } = decode(await send("www.example.net", 1));
  assert.deepEqual([rcode, flag_aa, answers, authorities], ["REFUSED", false, [], []]);
});

test("ANY gets one set (RFC 8482)", async () => {
  const { rcode, answers } = decode(await send("www.example.com", 255));
  assert.equal(rcode, "NOERROR");
  assert.equal(new Set(answers.map(({ type }) => type)).size, 1);
  assert.equal(decode(await send("example.org", 255)).answers[0]?.type, "SOA");
  assert.equal(decode(await send("nothing.example.com", 255)).rcode, "NXDOMAIN");
});

test("a CNAME is followed into other hosted zones only", async () => {
  // Knot stays inside the zone. Brume answers for both zones, as the API promises.
  const { rcode, flag_aa, answers } = decode(await send("away.example.com", 1));
  assert.deepEqual(
    [rcode, flag_aa, answers.map(({ data }) => data)],
    ["NOERROR", true, ["www.example.org", "192.0.2.99"]],
  );
  await server.publish([image("example.org", 2, [set("www.example.org", "A", "192.0.2.98")])]);
  assert.equal(decode(await send("away.example.com", 1)).answers[1]?.data, "192.0.2.98");
  await server.withdraw("example.org", 2);
  assert.deepEqual(
    decode(await send("away.example.com", 1)).answers.map(({ data }) => data),
    ["www.example.org"],
  );
  await server.publish([image("example.org", 3, [set("www.example.org", "A", "192.0.2.99")])]);
  assert.equal(decode(await send("away.example.com", 1)).answers[1]?.data, "192.0.2.99");
});

test("a chain of CNAMEs is followed eight times", async () => {
  const { rcode, answers } = decode(await send("c0.example.com", 1));
  assert.equal(rcode, "NOERROR");
  assert.deepEqual(
    answers.map(({ type }) => type),
    new Array(9).fill("CNAME"),
  );
  assert.equal(decode(await send("c4.example.com", 1)).answers.at(-1)?.data, "192.0.2.12");
});

test("DS of a hosted zone is served from its parent zone if that is hosted too", async () => {
  const below = decode(await send("hosted.example.com", 43));
  assert.deepEqual([below.rcode, below.flag_aa, below.authorities[0]?.name], ["NOERROR", true, "example.com"]);
  const top = decode(await send("example.com", 43));
  assert.deepEqual([top.rcode, top.authorities[0]?.name], ["NOERROR", "example.com"]);
});

test("a name between two hosted zones exists, as long as the lower one does", async () => {
  await server.publish([image("deep.between.example.com", 1, [])]);
  for (const name of ["between.example.com", "deep.between.example.com"]) {
    const { rcode, answers, authorities } = decode(await send(name, 16));
    assert.deepEqual([rcode, answers, authorities.length], ["NOERROR", [], 1], name);
  }
  assert.equal(decode(await send("other.between.example.com", 16)).rcode, "NXDOMAIN");
  await server.withdraw("deep.between.example.com", 1);
  assert.equal(decode(await send("between.example.com", 16)).rcode, "NXDOMAIN");
});

test("zone transfer is refused unless configured", async () => {
  assert.match(await run("dig", address, "example.com", "AXFR"), /Transfer failed/);
  assert.equal(decode(await send("example.com", 252)).rcode, "REFUSED");
  assert.equal(decode(await send("example.com", 251)).rcode, "REFUSED");
});

test("names in responses are compressed", async () => {
  // Header 12, question 17, MX 12 + 2 + 18, A 16 with the owner inside the rdata of the MX, OPT 11.
  assert.equal((await send("example.com", 15)).length, 12 + 17 + 12 + 2 + 18 + 16 + 11);
});

test("a response that does not fit is truncated to its question, and complete by TCP", async () => {
  for (const [name, type, edns] of [
    ["many.example.com", 1, 0],
    ["many.example.com", 1, 600],
    ["long.example.com", 16, 0],
    ["long.example.com", 16, 512],
    ["huge.example.com", 16, 4096],
    ["fat.example.com", 1, 1232],
  ] as const) {
    const bytes = await send(name, type, { edns });
    const { flag_tc, answers, authorities, questions } = decode(bytes);
    assert.deepEqual([flag_tc, answers, authorities, questions[0]?.name], [true, [], [], name]);
    assert.ok(bytes.length <= Math.max(512, edns));
  }
  assert.equal(decode(await send("many.example.com", 1, { edns: 1232 })).answers.length, 60);
  const text = await run("dig", address, "many.example.com", "+noedns");
  assert.match(text, /Truncated, retrying in TCP mode/);
  assert.match(text, /ANSWER: 60/);
  assert.match(await run("dig", address, "huge.example.com", "TXT"), /ANSWER: 40/);
});

test("a client with a small buffer does not get a response for a large one", async () => {
  for (const edns of [1232, 512, 4096, 0, 1000, 900]) {
    const bytes = await send("many.example.com", 1, { edns });
    assert.ok(bytes.length <= Math.min(1232, Math.max(512, edns)), `${bytes.length} bytes for ${edns}`);
    assert.equal(decode(bytes).flag_tc, bytes.length < 900);
  }
});

test("a TCP response has at most 65,535 bytes", async () => {
  // Header 12, question 22; a record is 12 and its strings, each with its length in front.
  const filled = (rest: number): string[] => [
    ...Array.from({ length: 15 }, (_, i) => `${i}`.padEnd(4080)),
    "x".repeat(rest),
  ];
  const most = 65_535 - 34 - 15 * (12 + 4096) - 12 - 16;
  await server.publish([
    image("example.net", 1, [
      set("full.example.net", "TXT", ...filled(most)),
      set("over.example.net", "TXT", ...filled(most + 1)),
    ]),
  ]);
  const stream = await openStream(address);
  stream.write(query("full.example.net", 16, { edns: 0 }), query("over.example.net", 16, { edns: 0 }));
  const full = (await stream.next()) as Buffer;
  assert.equal(full.length, 65_535);
  assert.equal(decode(full).answers.length, 16);
  assert.equal(decode((await stream.next()) as Buffer).rcode, "SERVFAIL");
  stream.socket.destroy();
  await server.withdraw("example.net", 1);
});

test("a set larger than a TCP message is a server failure", async () => {
  const stream = await openStream(address);
  stream.write(query("beyond.example.com", 16));
  assert.equal(decode((await stream.next()) as Buffer).rcode, "SERVFAIL");
  stream.socket.destroy();
});

test("TCP pipelining: many queries in one packet, byte by byte, and before a half-close", async () => {
  const stream = await openStream(address);
  const queries = Array.from({ length: 500 }, (_, i) =>
    query(i % 2 === 0 ? "www.example.com" : "many.example.com", 1, { id: i }),
  );
  stream.write(...queries);
  for (let i = 0; i < 500; i++) {
    const { id, answers } = decode((await stream.next()) as Buffer);
    assert.deepEqual([id, answers.length], [i, i % 2 === 0 ? 1 : 60]);
  }
  const last = query("www.example.com", 1, { id: 777 });
  for (const byte of Buffer.concat([Buffer.from([0, last.length]), last])) {
    stream.socket.write(Buffer.from([byte]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(decode((await stream.next()) as Buffer).id, 777);
  stream.write(query("huge.example.com", 16, { id: 778 }));
  stream.socket.end();
  assert.equal(decode((await stream.next()) as Buffer).answers.length, 40);
  assert.equal(await stream.next(), null);
});

test("a TCP client that reads late gets everything", async () => {
  const stream = await openStream(address);
  stream.socket.pause();
  const count = 2000;
  stream.write(...Array.from({ length: count }, (_, i) => query("huge.example.com", 16, { id: i })));
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(decode(await send("www.example.com", 1)).rcode, "NOERROR", "others are served meanwhile");
  stream.socket.resume();
  for (let i = 0; i < count; i++) assert.equal((await stream.next())?.readUInt16BE(0), i);
  stream.socket.destroy();
});

test("malformed TCP messages: no response to short ones, FORMERR for invalid ones, disconnection for huge ones", async () => {
  const stream = await openStream(address);
  stream.write(Buffer.alloc(0), Buffer.alloc(5), Buffer.from("0001000000010000000000000377", "hex"));
  assert.equal(decode((await stream.next()) as Buffer).rcode, "FORMERR");
  stream.write(query("www.example.com", 1));
  assert.equal(decode((await stream.next()) as Buffer).rcode, "NOERROR");
  stream.socket.write(Buffer.from([0xff, 0xff]));
  assert.equal(await stream.next(), null);
});

test("a network has at most 128 TCP connections, and a new one replaces the idlest", async () => {
  const streams = await Promise.all(Array.from({ length: 134 }, () => openStream(address)));
  const isAnswered = async (stream: Stream): Promise<boolean> => {
    stream.write(query("www.example.com", 1));
    return (await stream.next()) !== null;
  };
  await Promise.all(streams.map(isAnswered));
  const answers = await Promise.all(streams.map(isAnswered));
  assert.equal(answers.filter(Boolean).length, 128);
  const newStream = await openStream(address);
  assert.equal(await isAnswered(newStream), true);
  for (const { socket } of [...streams, newStream]) socket.destroy();
});

test("malformed queries: FORMERR with the id, or no response", async () => {
  const good = query("www.example.com", 1, { edns: 0 });
  const change = (at: number, ...bytes: number[]): Buffer => {
    const copy = Buffer.from(good);
    copy.set(bytes, at);
    return copy;
  };
  for (const [what, packet] of Object.entries({
    "no question": Buffer.concat([change(5, 0).subarray(0, 12)]),
    "two questions": change(5, 2),
    "question cut off": good.subarray(0, 20),
    "question without type": good.subarray(0, good.length - 3),
    "pointer as question": Buffer.concat([good.subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
    "label type of the future": change(12, 0x41),
    "record announced and missing": change(11, 1),
    "something behind the end": Buffer.concat([good, Buffer.from([0])]),
  })) {
    const answer = await dnsClient.exchange(packet);
    assert.equal(answer?.length, 12, what);
    assert.equal((answer?.[3] as number) & 15, 1, what);
  }
  for (const packet of [Buffer.alloc(0), good.subarray(0, 11), change(2, 0x80), change(2, 0x84)]) {
    assert.equal(await dnsClient.exchange(packet, 150), null);
  }
});

test("a malformed OPT record gets FORMERR with an OPT record, so that EDNS does not seem unsupported", async () => {
  const opt = [0, 0, 41, 4, 208, 0, 0, 0, 0];
  for (const [what, count, bytes] of [
    ["second OPT", 2, [...opt, 0, 0, ...opt, 0, 0]],
    ["OPT with a name", 1, [1, 97, ...opt, 0, 0]],
    ["option longer than its record", 1, [...opt, 0, 5, 0, 100, 0, 2, 7]],
    ["half an option", 1, [...opt, 0, 7, 0, 100, 0, 0, 0, 100, 0]],
  ] as const) {
    for (const type of [1, 252]) {
      const packet = Buffer.concat([query("www.example.com", type, { edns: 0 }), Buffer.from(bytes)]);
      packet.writeUInt16BE(count, 10);
      const { rcode, questions, answers, additionals } = decode((await dnsClient.exchange(packet)) as Buffer);
      assert.deepEqual(
        [rcode, questions[0]?.name, answers, additionals.map((record) => record.type)],
        ["FORMERR", "www.example.com", [], ["OPT"]],
        what,
      );
    }
  }
});

test("the response time is measured", async () => {
  const measured = await openServer();
  await measured.publish([image("example.com", 1, [set("www.example.com", "A", "192.0.2.1")])]);
  assert.equal((await measured.observe()).p99, 0);
  const client = await openDnsClient((await measured.observe()).address);
  for (let i = 0; i < 200; i++) await client.exchange(query("www.example.com", 1));
  assert.ok((await measured.observe()).p99 > 0);
  client.close();
  await measured.close();
});
