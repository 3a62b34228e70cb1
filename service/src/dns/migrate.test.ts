/** Fetching a domain from its present name servers: from kind ones, refusing ones, broken ones, silent ones and hostile ones, all on loopback. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { createRequire } from "node:module";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { mock, test } from "node:test";
import fc from "fast-check";
import type { DnsServer } from "./exchange.ts";
import { fetchZone } from "./migrate.ts";
import { decodeData } from "./model/data.ts";
import { checkZone } from "./model/rules.ts";
import { readMessage, writeQuery } from "./model/wire.ts";

interface Answer {
  name: string;
  type: string;
  ttl?: number;
  class?: string;
  data: unknown;
}
interface Packet {
  id: number;
  type: "response";
  flags: number;
  questions: readonly { name: string; type: string }[];
  answers: readonly Answer[];
}
/** Not our code, and therefore a witness. */
const codec = createRequire(import.meta.url)("dns-packet") as {
  encode(packet: Packet): Buffer;
  decode(bytes: Buffer): Packet;
};

interface Behaviour {
  /** Of a query by UDP, or by TCP other than AXFR; null is silence. */
  answer(name: string, type: string, tcp: boolean): { rcode?: number; truncated?: boolean; answers?: Answer[] } | null;
  /** Messages of a transfer, or a rude thing to do with the connection. */
  transfer?: readonly (readonly Answer[])[] | ((socket: Socket, query: Packet) => void);
}

/** Runs `use` against a name server that behaves so. */
async function withServer<T>({ answer, transfer }: Behaviour, use: (server: DnsServer) => Promise<T>): Promise<T> {
  const reply = (bytes: Buffer, tcp: boolean): Buffer | null => {
    const { id, questions } = codec.decode(bytes);
    const outcome = answer(questions[0]?.name ?? "", questions[0]?.type ?? "", tcp);
    if (outcome === null) return null;
    const flags = 0x0400 | (outcome.rcode ?? 0) | (outcome.truncated ? 0x0200 : 0);
    return codec.encode({ id, type: "response", flags, questions, answers: outcome.answers ?? [] });
  };
  const frame = (bytes: Buffer) => Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]);
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      const query = codec.decode(chunk.subarray(2));
      if (query.questions[0]?.type !== "AXFR") {
        const bytes = reply(chunk.subarray(2), true);
        if (bytes !== null) socket.write(frame(bytes));
      } else if (typeof transfer === "function") transfer(socket, query);
      else if (transfer === undefined) {
        socket.write(frame(codec.encode({ ...query, type: "response", flags: 5, answers: [] })));
      } else
        for (const answers of transfer)
          socket.write(frame(codec.encode({ ...query, type: "response", flags: 0x0400, answers })));
    });
  });
  await new Promise<void>((resolve) => tcp.listen(0, "127.0.0.1", resolve));
  const { port } = tcp.address() as AddressInfo;
  const udp = createSocket("udp4");
  await new Promise<void>((resolve) => udp.bind(port, "127.0.0.1", resolve));
  udp.on("message", (bytes, from) => {
    const message = reply(bytes, false);
    if (message !== null) udp.send(message, from.port, from.address);
  });
  try {
    return await use({ name: "ns1.example.net", address: "127.0.0.1", port });
  } finally {
    udp.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => tcp.close(resolve));
  }
}

const soa: Answer = {
  name: "example.com",
  type: "SOA",
  data: { mname: "ns1.example.net", rname: "host.example.net", serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 1 },
};
const known: Behaviour["answer"] = (_, type) => (type === "SOA" ? { answers: [soa] } : {});
const deadlineMs = 100_000;
/** Fetches the zone. No time passes but what the server lets pass by `mock.timers.tick`. */
async function fetchFrom(behaviour: Behaviour) {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    return await withServer(behaviour, (server) => fetchZone("example.com", { deadlineMs, servers: [server] }));
  } finally {
    mock.timers.reset();
  }
}

test("a transferred zone is imported completely, except unsupported records", async () => {
  const zone: Answer[] = [
    soa,
    { name: "example.com", type: "NS", data: "ns1.example.net" },
    { name: "example.com", type: "MX", ttl: 300, data: { preference: 10, exchange: "Mail.Example.com" } },
    { name: "WWW.example.com", type: "A", ttl: 0, data: "10.0.0.1" },
    { name: "www.example.com", type: "AAAA", ttl: 0xffffffff, data: "2001:db8::1" },
    { name: "www.example.com", type: "A", ttl: 0, data: "10.0.0.1" },
    { name: "_sip._tcp.lab.example.com", type: "SRV", ttl: 60, data: { priority: 1, weight: 2, port: 3, target: "." } },
    { name: "t.example.com", type: "TXT", ttl: 60, data: [Buffer.from("a;"), Buffer.from("é")] },
    { name: "below.cut.example.com", type: "TXT", ttl: 60, data: ["hidden"] },
    { name: "cut.example.com", type: "NS", ttl: 60, data: "ns.cut.example.com" },
    { name: "ns.cut.example.com", type: "A", ttl: 60, data: "10.0.0.2" },
    { name: "example.com", type: "CAA", ttl: 60, data: { flags: 0, tag: "issue", value: "ca.example" } },
    { name: "bin.example.com", type: "TXT", ttl: 60, data: [Buffer.from([255])] },
    { name: "other.org", type: "A", ttl: 60, data: "10.0.0.3" },
    { name: "a b.example.com", type: "A", ttl: 60, data: "10.0.0.3" },
    { name: "c.example.com", type: "A", class: "CH", ttl: 60, data: "10.0.0.3" },
  ];
  const transfer = [zone.slice(0, 4), zone.slice(4, 5), zone.slice(5), [soa]];
  const { state, records, skipped, detail } = await fetchFrom({ answer: known, transfer });
  assert.equal(state, "Completed");
  assert.equal(detail, "The zone was transferred from ns1.example.net (127.0.0.1).");
  assert.deepEqual(
    records.map(({ type, owner, ttl, value }) => `${owner} ${ttl} ${type} ${value}`),
    [
      "cut 60 NS ns.cut.example.com",
      "@ 300 MX 10 Mail.Example.com",
      "www 0 A 10.0.0.1",
      "www 0 AAAA 2001:db8::1",
      "lab 60 SRV _sip._tcp 1 2 3 .",
      "t 60 TXT a;\u001fé",
      "ns.cut 60 A 10.0.0.2",
      "a\\032b 60 A 10.0.0.3",
    ],
  );
  assert.deepEqual(skipped, [
    "example.com. CAA",
    "bin.example.com. TXT: it must be UTF-8, and some bytes are not",
    'other.org. A: the owner is not inside "example.com": "other.org."',
    "c.example.com. A",
    "below.cut.example.com. TXT: delegation_conflict",
  ]);
  assert.deepEqual(checkZone(records), []);
});

/** Answers as a name server with a few names would; long ones by TCP. */
const names: Behaviour["answer"] = (name, type, tcp) => {
  if (type === "SOA") return { answers: [soa] };
  if (name === "www.example.com" && type !== "CNAME")
    return {
      answers: [
        { name, type: "CNAME", ttl: 5, data: "example.com" },
        { name: "example.com", type, ttl: 5, data: type === "A" ? "10.0.0.1" : "::1" },
      ].slice(0, type === "A" ? 2 : 1),
    };
  if (name === "www.example.com") return { answers: [{ name: "WWW.example.com", type, ttl: 5, data: "example.com" }] };
  if (name === "example.com" && type === "TXT")
    return tcp ? { answers: [{ name, type, ttl: 9, data: ["x".repeat(255), "y".repeat(255)] }] } : { truncated: true };
  if (name === "example.com" && type === "NS") return { answers: [{ name, type, ttl: 9, data: "ns1.example.net" }] };
  if (name === "_dmarc.example.com" && type === "TXT") return { answers: [{ name, type, ttl: 9, data: ["v=DMARC1"] }] };
  return { rcode: 3 };
};
const found = [
  "WWW 5 CNAME example.com",
  `@ 9 TXT ${"x".repeat(255)}${"y".repeat(255)}`,
  "_dmarc 9 TXT v=DMARC1",
].sort();

test("without a transfer, the top and common names are queried", async () => {
  const { state, records, detail } = await fetchFrom({ answer: names });
  assert.equal(state, "Completed");
  assert.equal(detail, "No name server allowed a zone transfer: the top and 8 common names were queried.");
  assert.deepEqual(records.map(({ type, owner, ttl, value }) => `${owner} ${ttl} ${type} ${value}`).sort(), found);
});

/** Lets the time pass in which a transfer may be silent, when the client has read what was sent. */
const passIdleTime = (): void => void setImmediate(() => setImmediate(() => mock.timers.tick(deadlineMs / 5)));
const rude: Record<string, NonNullable<Behaviour["transfer"]>> = {
  "closes the connection": (socket) => socket.destroy(),
  "sends garbage": (socket) => socket.write(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), passIdleTime),
  "answers another question": (socket, query) => {
    const bytes = codec.encode({ ...query, id: query.id ^ 1, type: "response", flags: 0, answers: [soa, soa] });
    socket.write(Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]));
  },
  "does not begin with the SOA": [[{ name: "a.example.com", type: "A", data: "10.0.0.9" }, soa, soa]],
  "never comes to the end": (socket, query) => {
    const answers = [soa, { name: "a.example.com", type: "A", data: "10.0.0.9" }];
    const bytes = codec.encode({ ...query, type: "response", flags: 0x0400, answers });
    socket.write(Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]), passIdleTime);
  },
  "sends nothing": passIdleTime,
};
for (const [how, transfer] of Object.entries(rude))
  test(`after a transfer that ${how}, the names are queried`, async () => {
    const { state, records } = await fetchFrom({ answer: names, transfer });
    assert.equal(state, "Completed");
    assert.deepEqual(records.map(({ type, owner, ttl, value }) => `${owner} ${ttl} ${type} ${value}`).sort(), found);
  });

test("silent servers leave time for the queries", async () => {
  let answered = 0;
  let transfers = 0;
  const dead: Behaviour = { answer: () => null };
  const silent: Behaviour = {
    answer(name, type, tcp) {
      // When all three servers have responded, the client still waits for the dead one.
      if (type === "SOA" && ++answered === 3) setImmediate(() => setImmediate(() => mock.timers.tick(deadlineMs / 4)));
      return names(name, type, tcp);
    },
    transfer() {
      transfers++;
      passIdleTime();
    },
  };
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { state, detail } = await withServer(dead, (first) =>
      withServer(silent, (second) =>
        withServer(silent, (third) =>
          withServer(silent, (fourth) =>
            fetchZone("example.com", { deadlineMs, servers: [first, second, third, fourth] }),
          ),
        ),
      ),
    );
    assert.equal(state, "Completed");
    assert.equal(detail, "No name server allowed a zone transfer: the top and 8 common names were queried.");
    assert.equal(transfers, 2, "after 25 % of the time for the dead server, two transfers end the 60 %");
  } finally {
    mock.timers.reset();
  }
});

test("a transfer with too many records is cancelled", async () => {
  let sent = 0;
  const transfer = (socket: Socket, query: Packet): void => {
    const send = (): void => {
      const answers = Array.from({ length: 1000 }, () => ({
        name: `h${sent++}.example.com`,
        type: "A",
        data: "10.0.0.1",
      }));
      const bytes = codec.encode({
        ...query,
        type: "response",
        flags: 0,
        answers: sent === 1000 ? [soa, ...answers] : answers,
      });
      // The client lives in this process: it must get its turn, and hanging up must end this.
      socket.write(Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 255), bytes]), (error) => {
        if (!error && !socket.destroyed) setImmediate(send);
      });
    };
    send();
  };
  const { records } = await fetchFrom({ answer: names, transfer });
  assert.equal(records.length, found.length);
  assert.ok(sent > 0);
});

test("an unreachable server is a result, not an exception", async () => {
  const refused = await fetchFrom({ answer: () => ({ rcode: 5 }) });
  assert.deepEqual([refused.state, refused.records.length], ["Failed", 0]);
  assert.equal(refused.detail, "No name server of example.com responded for it.");
  /** No answer; with the first query the time of the fetch passes. */
  const createSilence = () => {
    let isOver = false;
    return (): null => {
      if (!isOver) setImmediate(() => mock.timers.tick(deadlineMs));
      isOver = true;
      return null;
    };
  };
  assert.equal((await fetchFrom({ answer: createSilence() })).state, "Failed");
  const silence = createSilence();
  const half = await fetchFrom({ answer: (_, type) => (type === "SOA" ? { answers: [soa] } : silence()) });
  assert.equal(
    half.detail,
    "The name servers of example.com refused the transfer and did not respond to queries in time.",
  );
  const silent = new Promise<never>(() => {});
  const fails = () => Promise.reject(new Error("ENOTFOUND"));
  for (const resolver of [
    { resolveNs: fails, resolve4: fails, resolve6: fails },
    { resolveNs: () => silent, resolve4: fails, resolve6: fails },
    { resolveNs: async () => ["ns.example.net"], resolve4: () => silent, resolve6: fails },
  ]) {
    const { state, detail } = await fetchZone("example.com", { deadlineMs: 50, resolver });
    assert.deepEqual([state, detail], ["Failed", "No name servers were found for example.com."]);
  }
});

test("property: no bytes cause an exception", () => {
  const query = writeQuery(7, "www.example.com", 1);
  const real = codec.encode({
    id: 7,
    type: "response",
    flags: 0,
    questions: [{ name: "www.example.com", type: "A" }],
    answers: [
      { name: "www.example.com", type: "MX", data: { preference: 1, exchange: "a.b" } },
      { name: "www.example.com", type: "TXT", data: ["abc"] },
      { name: "www.example.com", type: "SRV", data: { port: 1, target: "x.y" } },
      { name: "www.example.com", type: "AAAA", data: "::1" },
    ],
  });
  const changed = fc
    .array(fc.tuple(fc.nat(real.length - 1), fc.oneof(fc.nat(255), fc.constant(0xc0))), { maxLength: 8 })
    .map((changes) => {
      const bytes = Buffer.from(real);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
  const random = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.concat([query.subarray(0, 12), bytes]));
  let read = 0;
  fc.assert(
    fc.property(fc.oneof(changed, random), (bytes) => {
      const message = readMessage(bytes);
      if (message === null) return;
      for (const { start, end } of message.answers)
        for (const type of ["A", "AAAA", "CNAME", "MX", "NS", "SRV", "TXT"] as const) {
          read++;
          const value = decodeData(type, bytes, start, end);
          assert.ok(typeof value === "string" || value.reason !== "");
        }
    }),
    { numRuns: 5000 },
  );
  assert.ok(read > 0);
});

test("a name of compression pointers only is rejected", () => {
  const bytes = Buffer.alloc(12 + 2 + 400 + 6);
  bytes.writeUInt16BE(0x8000, 2);
  bytes.writeUInt16BE(1, 4);
  for (let at = 14; at < 414; at += 2) bytes.writeUInt16BE(0xc000 + at - 2, at);
  bytes.writeUInt16BE(0xc000 + 412, 12);
  assert.equal(readMessage(bytes), null);
  const loop = Buffer.from(bytes);
  loop.writeUInt16BE(0xc00c, 12);
  assert.equal(readMessage(loop), null);
});
