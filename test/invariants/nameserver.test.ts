/**
 * Conformance suite of the name server driver interface: results of `publish` and what is served. Every driver runs it; the real server is
 * queried by UDP, the simulated one directly.
 */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { recordSpecs } from "@brume/api/record/types.ts";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver, RecordSet, ZoneChange } from "../../service/src/drivers/nameserver/interface.ts";
import { createSim } from "../../service/src/drivers/nameserver/sim/sim.ts";
import { decode, openDnsClient, query } from "../support/dnsclient.ts";
import { serveInThisThread } from "../support/nameserverthread.ts";
import { image, SOA, set } from "../support/zone.ts";

interface Subject {
  readonly server: Nameserver;
  exchange(packet: Uint8Array): Promise<Buffer | null>;
  close(): Promise<void>;
}

const builtin = (host: string, start?: Parameters<typeof createBuiltin>[1]) => async (): Promise<Subject> => {
  const transfer = { addresses: [], keys: [], notify: [] };
  const server = await createBuiltin({ host, port: 0, rateLimit: 0, transfer, log: () => {} }, start);
  const dnsClient = await openDnsClient((await server.observe()).address);
  return {
    server,
    exchange: dnsClient.exchange,
    async close() {
      dnsClient.close();
      await server.close();
    },
  };
};

const drivers: Record<string, () => Promise<Subject>> = {
  "built-in server, IPv4": builtin("127.0.0.1"),
  "built-in server, IPv6": builtin("::1", serveInThisThread),
  "simulated server": async () => {
    const server = createSim(Date.now);
    return { server, exchange: async (packet) => server.answer(packet), close: () => server.close() };
  },
};

const A = 1;
const SOA_TYPE = 6;
const TXT = 16;

function step(zone: string, base: number, serial: number, sets: readonly RecordSet[]): ZoneChange {
  return { zone, base, serial, soa: SOA, sets };
}

for (const [driver, open] of Object.entries(drivers)) {
  describe(driver, () => {
    let subject: Subject;
    let server: Nameserver;

    const answer = async (name: string, type = A) => {
      const bytes = await subject.exchange(query(name, type));
      assert.notEqual(bytes, null, `no answer to ${name}`);
      return decode(bytes as Buffer);
    };
    /** Returns rcode and data of the response as one line. */
    const lookUp = async (name: string, type = A): Promise<string> => {
      const { rcode, answers } = await answer(name, type);
      return [rcode, ...answers.map(({ data }) => String(data))].join(" ");
    };
    const serialOf = async (zone: string): Promise<number> => {
      const { answers } = await answer(zone, SOA_TYPE);
      const data = answers[0]?.data as { serial: number } | undefined;
      return data?.serial ?? 0;
    };

    beforeEach(async () => {
      subject = await open();
      server = subject.server;
    });
    afterEach(() => subject.close());

    test("a published zone is served when publish resolves, and only it", async () => {
      const served = await server.publish([image("example.com", 5, [set("www.example.com", "A", "192.0.2.1")])]);
      assert.deepEqual(served, [5]);
      assert.equal(await lookUp("www.example.com"), "NOERROR 192.0.2.1");
      assert.equal(await lookUp("nothing.example.com"), "NXDOMAIN");
      assert.equal(await lookUp("www.example.org"), "REFUSED");
      assert.equal(await lookUp("com"), "REFUSED");
      assert.equal(await serialOf("example.com"), 5);
    });

    test("publishing nothing serves nothing", async () => {
      assert.deepEqual(await server.publish([]), []);
    });

    test("an amendment replaces its sets and nothing else", async () => {
      await server.publish([
        image("example.com", 1, [
          set("a.example.com", "A", "192.0.2.1", "192.0.2.2"),
          set("a.example.com", "TXT", "stays"),
          set("b.example.com", "A", "192.0.2.3"),
        ]),
      ]);
      const sets = [
        set("a.example.com", "A", "192.0.2.9"),
        set("b.example.com", "A"),
        set("c.example.com", "A", "192.0.2.4"),
      ];
      assert.deepEqual(await server.publish([step("example.com", 1, 2, sets)]), [2]);
      assert.equal(await lookUp("a.example.com"), "NOERROR 192.0.2.9");
      assert.equal(await lookUp("a.example.com", TXT), "NOERROR stays");
      assert.equal(await lookUp("b.example.com"), "NXDOMAIN");
      assert.equal(await lookUp("c.example.com"), "NOERROR 192.0.2.4");
      assert.equal(await serialOf("example.com"), 2);
    });

    test("names are sent as they are spelled and found in any letter case", async () => {
      await server.publish([
        image("example.com", 1, [
          set("Alias.example.com", "CNAME", "WWW.Example.COM"),
          set("wWw.example.com", "TXT", "text"),
          set("wWw.example.com", "A", "192.0.2.1"),
        ]),
      ]);
      const { answers } = await answer("aLIAS.example.com");
      assert.deepEqual(
        answers.map(({ name, data }) => `${name} ${String(data)}`),
        ["Alias.example.com WWW.Example.COM", "wWw.example.com 192.0.2.1"],
      );
      // The latest spelling applies to all sets of the name, until the name is deleted.
      await server.publish([step("example.com", 1, 2, [set("WWW.example.com", "A", "192.0.2.2")])]);
      assert.equal((await answer("www.example.com", TXT)).answers[0]?.name, "WWW.example.com");
      await server.publish([step("example.com", 2, 3, [set("www.example.com", "A"), set("www.example.com", "TXT")])]);
      await server.publish([step("example.com", 3, 4, [set("www.example.com", "A", "192.0.2.3")])]);
      assert.equal((await answer("www.example.com")).answers[0]?.name, "www.example.com");
    });

    test("a name can contain any byte", async () => {
      await server.publish([
        image("0/25.2.0.192.in-addr.arpa", 1, [
          set("1.0/25.2.0.192.in-addr.arpa", "CNAME", "a\\046b\\032c\\092.example.com"),
          set("\\000\\255\\046.0/25.2.0.192.in-addr.arpa", "A", "192.0.2.1"),
        ]),
      ]);
      assert.equal(await lookUp("1.0/25.2.0.192.in-addr.arpa"), "NOERROR a.b c\\.example.com");
      assert.equal(await lookUp("\\000\\255\\046.0/25.2.0.192.in-addr.arpa"), "NOERROR 192.0.2.1");
      assert.equal((await server.observe()).zones[0]?.zone, "0/25.2.0.192.in-addr.arpa");
    });

    test("removing an absent set changes only the serial", async () => {
      await server.publish([image("example.com", 1, [set("a.example.com", "A", "192.0.2.1")])]);
      const sets = [set("b.example.com", "A"), set("a.example.com", "TXT")];
      assert.deepEqual(await server.publish([step("example.com", 1, 2, sets)]), [2]);
      assert.equal(await lookUp("a.example.com"), "NOERROR 192.0.2.1");
      assert.equal(await lookUp("b.example.com"), "NXDOMAIN");
    });

    test("an image replaces the whole zone", async () => {
      await server.publish([image("example.com", 1, [set("old.example.com", "A", "192.0.2.1")])]);
      await server.publish([image("example.com", 2, [set("new.example.com", "A", "192.0.2.2")])]);
      assert.equal(await lookUp("old.example.com"), "NXDOMAIN");
      assert.equal(await lookUp("new.example.com"), "NOERROR 192.0.2.2");
    });

    test("a change on another base, or not newer, is not applied, and the served serial is returned", async () => {
      const other = [set("a.example.com", "A", "192.0.2.99")];
      assert.deepEqual(await server.publish([step("example.com", 1, 2, other)]), [0], "no zone to amend");
      assert.equal(await lookUp("a.example.com"), "REFUSED");
      await server.publish([image("example.com", 10, [set("a.example.com", "A", "192.0.2.1")])]);
      for (const change of [
        step("example.com", 9, 11, other),
        step("example.com", 11, 12, other),
        step("example.com", 10, 10, other),
        step("example.com", 10, 9, other),
        image("example.com", 10, other),
        image("example.com", 9, other),
      ]) {
        assert.deepEqual(await server.publish([change]), [10]);
      }
      assert.equal(await lookUp("a.example.com"), "NOERROR 192.0.2.1");
      assert.equal(await serialOf("example.com"), 10);
    });

    test("serials are compared in serial arithmetic (RFC 1982)", async () => {
      await server.publish([image("example.com", 0xfffffffe, [set("a.example.com", "A", "192.0.2.1")])]);
      assert.deepEqual(
        await server.publish([step("example.com", 0xfffffffe, 3, [set("a.example.com", "A", "192.0.2.2")])]),
        [3],
      );
      assert.equal(await lookUp("a.example.com"), "NOERROR 192.0.2.2");
      assert.deepEqual(await server.publish([image("example.com", 0xffffffff, [])]), [3]);
    });

    test("changes apply in order, within a call and over calls of one turn", async () => {
      const steps = (from: number, to: number): ZoneChange[] =>
        Array.from({ length: to - from }, (_, i) =>
          step("example.com", from + i, from + i + 1, [set("a.example.com", "TXT", `at ${from + i + 1}`)]),
        );
      const calls = [
        server.publish([image("example.com", 1, []), ...steps(1, 10)]),
        server.publish(steps(10, 20)),
        server.publish(steps(20, 30)),
      ];
      const served = await Promise.all(calls);
      assert.deepEqual(
        served.flat(),
        Array.from({ length: 30 }, (_, i) => i + 1),
      );
      assert.equal(await lookUp("a.example.com", TXT), "NOERROR at 30");
    });

    test("a thousand changes, each seen by the query right after it", async () => {
      await server.publish([image("example.com", 1, [])]);
      for (let i = 1; i <= 1000; i++) {
        await server.publish([step("example.com", i, i + 1, [set("a.example.com", "TXT", `v${i}`)])]);
        assert.equal(await lookUp("a.example.com", TXT), `NOERROR v${i}`);
      }
    });

    test("a response comes from one serial, also during changes", async () => {
      const pair = (n: number): RecordSet[] => [
        set("a.example.com", "CNAME", `b${n % 2}.example.com`),
        set(`b${n % 2}.example.com`, "TXT", `v${n}`),
        set(`b${(n + 1) % 2}.example.com`, "TXT"),
      ];
      await server.publish([image("example.com", 1, pair(1))]);
      let done = false;
      const queries = (async () => {
        let count = 0;
        for (; !done || count < 50; count++) {
          const { rcode, answers } = await answer("a.example.com", TXT);
          assert.equal(rcode, "NOERROR");
          assert.equal(answers.length, 2);
          const n = Number(String(answers[1]?.data).slice(1));
          assert.equal(answers[0]?.data, `b${n % 2}.example.com`);
        }
      })();
      for (let n = 2; n <= 500; n++) await server.publish([step("example.com", n - 1, n, pair(n))]);
      done = true;
      await queries;
    });

    test("a withdrawn zone is refused, and only that one", async () => {
      await server.publish([image("example.com", 4, []), image("example.org", 4, []), image("sub.example.org", 4, [])]);
      await server.withdraw("example.com", 4);
      await server.withdraw("sub.example.org", 9);
      assert.equal(await lookUp("example.com"), "REFUSED");
      assert.equal(await lookUp("sub.example.org"), "NXDOMAIN", "the zone above answers for it again");
      await server.withdraw("never.example", 1);
    });

    test("a zone newer than the withdrawal stays", async () => {
      await server.publish([image("example.com", 5, [])]);
      await server.withdraw("example.com", 4);
      assert.equal(await serialOf("example.com"), 5);
    });

    test("publish and withdraw keep their order without being waited for", async () => {
      await Promise.all([
        server.publish([image("example.com", 1, [])]),
        server.withdraw("example.com", 1),
        server.publish([image("example.com", 2, [set("a.example.com", "A", "192.0.2.2")])]),
      ]);
      assert.equal(await lookUp("a.example.com"), "NOERROR 192.0.2.2");
    });

    test("a set that cannot be encoded rejects its call, and other calls succeed", async () => {
      const broken: RecordSet[] = [
        set("a.example.com", "A", "192.0.2.256"),
        set("a.example.com", "A", "::1"),
        set("a.example.com", "AAAA", "fe80::1%eth0"),
        set("a.example.com", "CNAME", "x..example.com"),
        set("a.example.com", "CNAME", "b.example.com", "c.example.com"),
        set(`${"a".repeat(64)}.example.com`, "A", "192.0.2.1"),
        set(`${`${"a".repeat(60)}.`.repeat(4)}example.com`, "A", "192.0.2.1"),
        set("a.example.org", "A", "192.0.2.1"),
        set("xexample.com", "A", "192.0.2.1"),
        set("ü.example.com", "A", "192.0.2.1"),
        set("a b.example.com", "A", "192.0.2.1"),
        set("a.example.com", "MX", "65536 b.example.com"),
        set("a.example.com", "SRV", "0 0 -1 b.example.com"),
        { owner: "a.example.com", type: recordSpecs.TXT, ttl: 60, data: [[["ü".repeat(128)]]] },
        { owner: "a.example.com", type: recordSpecs.TXT, ttl: 60, data: [[[]]] },
        { owner: "a.example.com", type: recordSpecs.A, ttl: -1, data: [["192.0.2.1"]] },
        { owner: "a.example.com", type: recordSpecs.A, ttl: 2 ** 31, data: [["192.0.2.1"]] },
        { owner: "a.example.com", type: recordSpecs.A, ttl: 60, data: [[1]] },
      ];
      for (const [i, error] of broken.entries()) {
        const good = image(`good${i}.example`, 1, [set(`a.good${i}.example`, "A", "192.0.2.1")]);
        const bad = image("example.com", 1, [set("ok.example.com", "A", "192.0.2.1"), error]);
        const [before, between, after] = await Promise.allSettled([
          server.publish([good]),
          server.publish([image(`never${i}.example`, 1, []), bad]),
          server.publish([step(`good${i}.example`, 1, 2, [])]),
        ]);
        assert.deepEqual(before, { status: "fulfilled", value: [1] });
        assert.equal(between?.status, "rejected", `${error.owner} ${error.type.name} ${JSON.stringify(error.data)}`);
        assert.deepEqual(after, { status: "fulfilled", value: [2] });
        assert.equal(await lookUp(`a.good${i}.example`), "NOERROR 192.0.2.1");
        assert.equal(await lookUp(`never${i}.example`), "REFUSED");
        assert.equal(await lookUp("ok.example.com"), "REFUSED");
      }
    });

    test("every type is served as it was published", async () => {
      await server.publish([
        image("example.com", 1, [
          set("all.example.com", "A", "192.0.2.1"),
          set("all.example.com", "AAAA", "2001:db8::ff:0:1"),
          set("mapped.example.com", "AAAA", "::ffff:192.0.2.1"),
          set("all.example.com", "MX", "10 mail.example.net", "0 "),
          set("all.example.com", "NS", "ns.example.net"),
          set("_a._tcp.example.com", "SRV", "1 2 3 target.example.net"),
          set("txt.example.com", "TXT", "plain", `${"x".repeat(255)}rest`, "grüße ☃"),
          set("alias.example.com", "CNAME", "www.example.net"),
        ]),
      ]);
      const data = async (name: string, type: number) =>
        (await answer(name, type)).answers.map((record) => record.data);
      assert.deepEqual(await data("mapped.example.com", 28), ["::ffff:c000:201"]);
      assert.deepEqual(await data("_a._tcp.example.com", 33), [
        { priority: 1, weight: 2, port: 3, target: "target.example.net" },
      ]);
      assert.deepEqual(
        (await data("txt.example.com", TXT)).map((strings) => (strings as Buffer[]).map(String)),
        [["plain"], ["x".repeat(255), "rest"], ["grüße ☃"]],
      );
      assert.deepEqual(await data("alias.example.com", A), ["www.example.net"]);
      const referral = await answer("all.example.com", A);
      assert.equal(referral.flag_aa, false);
      assert.deepEqual(
        referral.authorities.map((record) => record.data),
        ["ns.example.net"],
      );
    });

    test("the SOA of negative answers has the smaller of its TTL and minimum (RFC 2308)", async () => {
      const soa = { ...SOA, ttl: 30, minimum: 60 };
      await server.publish([
        { zone: "low.example", base: null, serial: 1, soa, sets: [] },
        { zone: "high.example", base: null, serial: 1, soa: SOA, sets: [] },
      ]);
      assert.equal((await answer("x.low.example")).authorities[0]?.ttl, 30);
      assert.equal((await answer("x.high.example")).authorities[0]?.ttl, 60);
      assert.equal((await answer("high.example", SOA_TYPE)).answers[0]?.ttl, 3600);
    });

    test("observe shows every zone with its serial and counters", async () => {
      assert.deepEqual((await server.observe()).zones, []);
      await server.publish([
        image("example.com", 3, [set("a.example.com", "A", "192.0.2.1")]),
        image("example.org", 4, []),
      ]);
      for (let i = 0; i < 3; i++) await lookUp("a.example.com");
      await lookUp("b.example.com");
      await lookUp("elsewhere.test");
      const status = await server.observe();
      assert.equal(status.ready, true);
      assert.match(status.address, /:\d+$/);
      assert.notEqual(status.detail, "");
      assert.deepEqual(
        [...status.zones].sort((a, b) => a.zone.localeCompare(b.zone)),
        [
          { zone: "example.com", serial: 3, queries: 4, rcodes: { NOERROR: 3, NXDOMAIN: 1 } },
          { zone: "example.org", serial: 4, queries: 0, rcodes: {} },
        ],
      );
      await server.publish([image("example.com", 4, [])]);
      await lookUp("b.example.com");
      const replaced = (await server.observe()).zones.find(({ zone }) => zone === "example.com");
      assert.deepEqual(replaced, { zone: "example.com", serial: 4, queries: 5, rcodes: { NOERROR: 3, NXDOMAIN: 2 } });
    });

    test("onStart requests all zones if none has been published", async () => {
      await new Promise<void>((resolve) => server.onStart(resolve));
    });

    test("after close nothing is accepted, and observe reports it", async () => {
      await server.publish([image("example.com", 1, [])]);
      await server.close();
      await assert.rejects(server.publish([image("example.com", 2, [])]), /not running/);
      await assert.rejects(server.withdraw("example.com", 2), /not running/);
      const status = await server.observe();
      assert.deepEqual([status.ready, status.zones], [false, []]);
      await server.close();
    });
  });
}

test("the simulated server reports that it is simulated", async () => {
  assert.equal((await createSim(Date.now).observe()).detail, "simulated");
});
