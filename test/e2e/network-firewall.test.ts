/**
 * The firewall of a public network (docs/spec.md#firewall, #public-network-endpoints, #put-what-get-shows-changes-nothing,
 * #firewall-replacement-is-atomic, #firewall-model-equals-packets, #allowed-connections-survive-changes): accepted forms, verdicts of
 * packets, and counters.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FirewallInput } from "@brume/api/firewall.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { onSqlite, refused } from "../support/harness.ts";
import {
  createMovableClock,
  errorsOf,
  allowOut as open,
  outside,
  ping,
  replyTo,
  tcp,
  udp,
  useNetworkFixture,
  allowWeb as web,
} from "../support/networkfixture.ts";

const clock = createMovableClock();

onSqlite(
  "firewalls",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const set = fixture.configureFirewall;
    describe("are written", () => {
      test("in several forms and shown in one", async () => {
        const { Id: id, CIDR } = await fixture.network();
        const body: FirewallInput = {
          Enabled: true,
          DefaultRuleAction: "Deny",
          Rules: [
            { Action: "Allow", Source: "ANY", SourcePort: "", Destination: " Internal ", Protocol: "TcpAndUdp" },
            { Action: "Deny", Source: "10.0.0.77/24, 192.0.2.1/32 ,10.0.0.5 - 10.0.0.9" },
            { Action: "Allow", Protocol: "Udp", SourcePort: "53", DestinationPort: " 8000-8100 , 22" },
          ],
        };
        const first = await set(id, body);
        assert.deepEqual(
          first.Firewall.Rules.map((rule) => Object.values(rule).slice(0, 8)),
          [
            [1, "", "Allow", "TcpAndUdp", "any", "any", "internal", "any"],
            [2, "", "Deny", "Any", "10.0.0.0/24,192.0.2.1,10.0.0.5-10.0.0.9", "any", "any", "any"],
            [3, "", "Allow", "Udp", "any", "53", "any", "8000-8100,22"],
          ],
        );
        assert.deepEqual([first.Generation, first.AppliedGeneration, first.Firewall.ConfirmBy], [2, 2, null]);
        const form = [
          "enabled=yes&DEFAULTRULEACTION=deny",
          "Rules[0].Action=allow&Rules[0].Protocol=tcpandudp&Rules[0].Destination=internal",
          "Rules[1][Action]=Deny&Rules[1][Source]=10.0.0.0%2F24%2C192.0.2.1%2C10.0.0.5-10.0.0.9",
          "rules[2].action=ALLOW&rules[2].protocol=udp&rules[2].sourceport=53&rules[2].destinationport=8000-8100,22",
        ].join("&");
        const relaxed =
          "{'Enabled': 'on', 'DefaultRuleAction': 'Deny', 'Rules': [{'Action': 'Allow', 'Protocol': 'TcpAndUdp', 'Destination': 'internal', 'Name': None}," +
          "{'Action': 'Deny', 'Source': '10.0.0.0/24,192.0.2.1,10.0.0.5-10.0.0.9'}," +
          "{'Action': 'Allow', 'Protocol': 'Udp', 'SourcePort': 53, 'DestinationPort': '8000-8100,22'}]}";
        for (const text of [form, relaxed]) {
          const response = await harness.request(`PUT /publicnetwork/${id}/firewall`, text);
          assert.deepEqual(response.json, first, text);
        }
        assert.equal(CIDR, first.CIDR);
      });

      test("and change nothing if sent back as shown", async () => {
        const { id, one, send } = await fixture.networkWithServers();
        await set(id, { DefaultRuleAction: "Allow", Rules: [open, { ...web, Destination: one.address }] });
        send(tcp(outside, one.address));
        const shown = await harness.client.raw.readPublicNetwork({ path: { id } });
        await fixture.newEvents();
        const response = await harness.request(`PUT /publicnetwork/${id}/firewall`, shown.answer.Firewall);
        assert.deepEqual([response.json, response.headers.get("etag")], [shown.answer, shown.etag]);
        assert.deepEqual(await fixture.newEvents(), []);
        assert.equal(shown.answer.Firewall.Rules[1]?.Packets, 1);
      });

      test("completely: absent fields get their defaults", async () => {
        const { Id: id } = await fixture.network();
        await set(id, { Enabled: false, DefaultRuleAction: "Allow", Rules: [open] });
        const { Firewall } = await set(id, {});
        assert.deepEqual(Firewall, { Enabled: true, DefaultRuleAction: "Deny", Rules: [], ConfirmBy: null });
      });

      test("with all errors reported at once, each with its rule", async () => {
        const { Id: id } = await fixture.network();
        const response = await harness.request(`PUT /publicnetwork/${id}/firewall`, {
          Enabled: "perhaps",
          ConfirmWithin: 9,
          Rules: [
            { Action: "Allow" },
            { Action: "Allow", Protocol: "Icmp", DestinationPort: "80" },
            { Source: "10.0.0.9-10.0.0.5", Destination: "10.0.0.1/33" },
            { Action: "Allow", Source: "internal,10.0.0.1", Protocol: "Sctp" },
            { Action: "Reject", SourcePort: "1", Name: "a".repeat(65) },
            { Action: "Deny", Protocol: "Tcp", SourcePort: "0", DestinationPort: "9-8" },
            {
              Action: "Deny",
              Source: Array.from({ length: 65 }, (_, i) => `10.0.0.${i}`).join(),
              Destination: "2001:db8::1",
            },
            { Action: "Deny", Protocol: "Udp", DestinationPort: "65536", SourcePort: "http" },
          ],
        });
        assert.equal(response.code, "validation_failed");
        assert.deepEqual(errorsOf(response.text), [
          ["/ConfirmWithin", "out_of_range"],
          ["/Enabled", "type_mismatch"],
          ["/Rules/1/DestinationPort", "port_not_allowed"],
          ["/Rules/2/Action", "field_required"],
          ["/Rules/2/Destination", "format_invalid"],
          ["/Rules/2/Source", "format_invalid"],
          ["/Rules/3/Protocol", "value_not_allowed"],
          ["/Rules/3/Source", "format_invalid"],
          ["/Rules/4/Action", "value_not_allowed"],
          ["/Rules/4/Name", "too_long"],
          ["/Rules/4/SourcePort", "port_not_allowed"],
          ["/Rules/5/DestinationPort", "format_invalid"],
          ["/Rules/5/SourcePort", "out_of_range"],
          ["/Rules/6/Destination", "format_invalid"],
          ["/Rules/6/Source", "too_long"],
          ["/Rules/7/DestinationPort", "out_of_range"],
          ["/Rules/7/SourcePort", "format_invalid"],
        ]);
        const { ModelState } = response.json as { ModelState: Record<string, string[]> };
        assert.match(ModelState["Rules[2].Source"]?.[0] ?? "", /^Source must have the lower address/);
        assert.match(ModelState["Rules[1].DestinationPort"]?.[0] ?? "", /Icmp/);
        assert.equal((await fixture.read(id)).Generation, 1);
      });

      test("with at most as many rules as the quota allows", async () => {
        const other = await harness.neighbour({ FirewallRules: 3 });
        const { Id: id } = await other.client.createPublicNetwork({ body: { Name: "few" } });
        const many = (count: number) => ({ Rules: Array.from({ length: count }, () => web) });
        const of = (count: number) => other.client.configureFirewall({ path: { id }, body: many(count) });
        assert.equal((await of(3)).Firewall.Rules.length, 3);
        await refused(of(4), "quota_exceeded");
        const mine = await fixture.network();
        assert.equal((await set(mine.Id, many(500), { wait: 60 })).Firewall.Rules.at(-1)?.Number, 500);
        const error = await refused(set(mine.Id, many(501)), "quota_exceeded");
        assert.equal(error.detail, "FirewallRules: wanted 501, free 500, limit 500.");
        await refused(set(mine.Id, many(10_001)), "validation_failed", { "/Rules": "too_long" });
      });
    });

    describe("decide", () => {
      test("by the first rule that matches, else by the default", async () => {
        const { id, one, two, send } = await fixture.networkWithServers();
        await set(id, {
          Rules: [
            { Action: "Deny", Source: "198.51.100.66" },
            { ...web, Destination: one.address },
            { Action: "Allow", Protocol: "Icmp", Source: "198.51.100.0/24", Destination: "internal" },
            {
              Action: "Allow",
              Protocol: "Udp",
              SourcePort: "1024-65535",
              Destination: two.address,
              DestinationPort: "53",
            },
          ],
        });
        const expectations: [Packet, boolean][] = [
          [tcp(outside, one.address, 80), true],
          [tcp(outside, one.address, 443), true],
          [tcp(outside, one.address, 22), false],
          [tcp(outside, two.address, 80), false],
          [tcp("198.51.100.66", one.address, 80), false],
          [ping(outside, two.address), true],
          [ping("203.0.113.1", two.address), false],
          [udp(outside, two.address), true],
          [{ ...udp(outside, two.address), sourcePort: 1023 }, false],
          [tcp(one.address, outside), false],
          [tcp(one.address, two.address), true],
        ];
        for (const [packet, arrives] of expectations) assert.equal(send(packet), arrives, JSON.stringify(packet));
        await set(id, { DefaultRuleAction: "Allow", Rules: [{ Action: "Deny", Source: "198.51.100.66" }] });
        assert.deepEqual(
          [tcp(one.address, outside), tcp(outside, two.address, 22), tcp("198.51.100.66", one.address)].map(send),
          [true, true, false],
        );
      });

      test("on the first packet of a connection, and all others get the same verdict", async () => {
        const { id, one, send } = await fixture.networkWithServers();
        await set(id, { Rules: [open] });
        const packet = tcp(one.address, outside, 443);
        assert.equal(send(replyTo(packet)), false, "no packet requested it");
        assert.deepEqual([send(packet), send(replyTo(packet)), send(packet)], [true, true, true]);
        const other = udp(one.address, outside);
        assert.equal(send(other), true);
        await set(id, { Rules: [{ ...open, Protocol: "Tcp" }] });
        assert.deepEqual([send(replyTo(packet)), send(replyTo(other)), send(other)], [true, false, false]);
        await harness.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 7, Name: "other" } });
        assert.equal(send(replyTo(packet)), true);
        await set(id, {});
        assert.deepEqual([send(packet), send(replyTo(packet))], [false, false]);
      });

      test("nothing while disabled, but are stored and validated", async () => {
        const { id, one, send } = await fixture.networkWithServers();
        const off = await set(id, { Enabled: false, Rules: [{ Action: "Deny" }] });
        assert.equal(off.Firewall.Rules.length, 1);
        assert.deepEqual([send(tcp(outside, one.address)), send(tcp(one.address, outside))], [true, true]);
        await refused(set(id, { Enabled: false, Rules: [{ Action: "Deny", Source: "x" }] }), "validation_failed", {
          "/Rules/0/Source": "format_invalid",
        });
        await set(id, { Rules: off.Firewall.Rules });
        assert.equal(send(tcp(outside, one.address)), false);
      });

      test("and count their packets since they were applied", async () => {
        const { id, one, send } = await fixture.networkWithServers();
        const rules = { Rules: [web, { Action: "Deny" as const, Source: outside }] };
        const counts = async () =>
          (await fixture.read(id)).Firewall.Rules.map(({ Packets, Bytes, LastHit }) => [
            Packets,
            Bytes !== 0,
            LastHit !== null,
          ]);
        const replaced = await set(id, rules);
        assert.deepEqual(
          replaced.Firewall.Rules.map(({ Packets, Bytes, LastHit }) => [Packets, Bytes, LastHit]),
          [
            [0, 0, null],
            [0, 0, null],
          ],
        );
        for (let n = 0; n < 3; n++) send(tcp(outside, one.address));
        send(tcp(outside, one.address, 22));
        const seen = [
          [3, true, true],
          [1, true, true],
        ];
        assert.deepEqual(await counts(), seen);
        await harness.client.updatePublicNetwork({ path: { id }, body: { Bandwidth: 3 } });
        await set(id, rules);
        assert.deepEqual(await counts(), seen);
        const listed = (await harness.client.listPublicNetworks()).find(({ Id }) => Id === id);
        assert.ok(
          listed?.Firewall.Rules.every(({ Packets, Bytes, LastHit }) => (Packets ?? Bytes ?? LastHit) === null),
        );
        await set(id, { Rules: [...rules.Rules, open] });
        assert.deepEqual((await counts())[0], [0, false, false]);
        harness.brume.router.broken = true;
        await set(id, { Rules: [] }, { wait: 0 });
        await set(id, rules, { wait: 0 });
        const late = await fixture.read(id);
        assert.ok(late.AppliedGeneration < late.Generation);
        assert.deepEqual(late.Firewall.Rules[0]?.Packets, null, "it is not in force and counts nothing");
      });
    });

    test("that the router rejects leave the old ones in force, show the error, and are applied later", async () => {
      const { id, one, send } = await fixture.networkWithServers();
      const before = await set(id, { Rules: [web] });
      await fixture.untilApplied(id);
      await fixture.newEvents();
      harness.brume.router.broken = true;
      const refusedOne = await set(id, { Rules: [{ ...web, DestinationPort: "22" }] }, { wait: 1 });
      assert.deepEqual(
        [refusedOne.Generation, refusedOne.AppliedGeneration],
        [before.Generation + 1, before.Generation],
      );
      const failing = await fixture.read(id, ({ Error }) => Error !== null);
      assert.deepEqual([failing.Error?.code, failing.State], ["apply_failed", "Active"]);
      assert.match(failing.Error?.detail ?? "", new RegExp(`Generation ${failing.Generation} `));
      assert.deepEqual([send(tcp(outside, one.address)), send(tcp(outside, one.address, 22))], [true, false]);
      const status = harness.client.waitFor(
        "readReadiness",
        {},
        { until: ({ Status }) => Status === "failing", timeout: 120_000 },
      );
      assert.match(JSON.stringify(await status), /"router","Ok":false/);
      harness.brume.router.broken = false;
      const repaired = await fixture.untilApplied(id);
      assert.equal(repaired.AppliedGeneration, failing.Generation);
      assert.deepEqual([send(tcp(outside, one.address)), send(tcp(outside, one.address, 22))], [false, true]);
      // Networks of other tests are applied, too.
      const own = (await fixture.newEvents()).filter(({ ResourceID }) => ResourceID === id);
      const events = own.map(({ Type, Data }) => [Type, (Data as PublicNetwork).Error?.code]);
      assert.deepEqual(events, [
        ["publicnetwork.changed", undefined],
        ["publicnetwork.changed", "apply_failed"],
        ["publicnetwork.applied", undefined],
      ]);
    });

    test("10,000 rules are accepted, with texts of any length", async () => {
      await harness.client.updateProject({ path: { id: 1 }, body: { Quotas: { FirewallRules: 10_000 } } });
      const { Id: id } = await harness.client.createPublicNetwork({ body: { Name: "large" } });
      const Rules = Array.from({ length: 10_000 }, (_, index) => ({
        Name: `rule ${index} `.padEnd(60, "."),
        Action: "Allow" as const,
        Protocol: "Tcp" as const,
        Source: `198.51.${index >> 8}.${index & 255}`,
        DestinationPort: "443",
      }));
      assert.ok(JSON.stringify({ Rules }).length > 2 ** 20);
      const replace = (rules: typeof Rules) =>
        harness.client.configureFirewall({ path: { id }, body: { Rules: rules } }, { wait: 60 });
      const { Firewall } = await replace(Rules);
      assert.equal(Firewall.Rules.length, 10_000);
      await refused(replace([...Rules, ...Rules.slice(0, 1)]), "validation_failed");
      /** Returns how often the stored rules are parsed during the work. */
      const countParsed = async (work: () => Promise<void>): Promise<number> => {
        const { parse } = JSON;
        let count = 0;
        JSON.parse = (text: string, ...more: []) => {
          if (text.startsWith('{"Enabled"') && text.includes("rule 0 ...")) count++;
          return parse(text, ...more) as unknown;
        };
        try {
          await work();
        } finally {
          JSON.parse = parse;
        }
        return count;
      };
      // The request parses the rules and keeps them until they are applied: it takes long to parse the stored text.
      const replaced = await countParsed(async () => {
        const changed = await replace(Rules.map((rule) => ({ ...rule, DestinationPort: "80" })));
        assert.equal(changed.AppliedGeneration, changed.Generation);
      });
      assert.equal(replaced, 0);
      // A new process has only the stored text.
      const started = await countParsed(async () => {
        await harness.brume.restart();
        await harness.client.readPublicNetwork({ path: { id } });
      });
      assert.notEqual(started, 0);
      // With a key, the response is created while the rules are applied, and stored once.
      const send = (extra: Readonly<Record<string, string>>) =>
        harness.request(`PUT /publicnetwork/${id}/firewall`, { Rules }, { "Idempotency-Key": "large", ...extra });
      const first = await send({ Prefer: "wait=30" });
      assert.equal(first.status, 200);
      assert.equal((await send({})).text, first.text);
      const present = await harness.request(`GET /publicnetwork/${id}`);
      assert.equal(present.text, first.text);
      const large = await harness.request(`PUT /publicnetwork/${id}/firewall`, " ".repeat(16 * 2 ** 20 + 1));
      assert.deepEqual([large.status, large.code], [413, "body_too_large"]);
    });
  },
  { clock },
);
