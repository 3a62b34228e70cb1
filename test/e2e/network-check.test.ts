/**
 * The firewall test of a packet (docs/spec.md#firewall-check, #firewall-model-equals-packets): its verdict, errors of the request, and that
 * real packets get the same verdict.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { FirewallRuleInput } from "@brume/api/firewall.ts";
import fc from "fast-check";
import { onSqlite, refused } from "../support/harness.ts";
import {
  createMovableClock,
  errorsOf,
  allowOut as open,
  outside,
  ping,
  tcp,
  udp,
  useNetworkFixture,
  allowWeb as web,
} from "../support/networkfixture.ts";

const clock = createMovableClock();

onSqlite(
  "a firewall",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const set = fixture.configureFirewall;

    describe("tests a packet", () => {
      test("and returns the verdict and its reason", async () => {
        const { id, one, two } = await fixture.networkWithServers();
        await set(id, { Rules: [{ ...web, Destination: one.address }, open] });
        const check = async (body: object) =>
          (await harness.request(`POST /publicnetwork/${id}/firewall/check`, body)).json;
        const packet = { Protocol: "Tcp", Source: outside, Destination: one.address, DestinationPort: 443 };
        assert.deepEqual(await check(packet), {
          Verdict: "Allow",
          Rule: 1,
          Reason: "Rule 1 (web) is the first that matches, and its Action is Allow.",
        });
        assert.deepEqual(await check({ ...packet, DestinationPort: "22", protocol: "tcp" }), {
          Verdict: "Deny",
          Rule: null,
          Reason: "No rule matches, and DefaultRuleAction is Deny.",
        });
        const inner = (await check({ Protocol: "Icmp", Source: one.address, Destination: two.address })) as {
          Rule: null;
        };
        assert.equal(inner.Rule, null);
        const given = (await check({
          ...packet,
          Rules: [{ Action: "Deny", Name: "none" }],
          DefaultRuleAction: "Allow",
        })) as object;
        assert.deepEqual({ ...given, Reason: "" }, { Verdict: "Deny", Rule: 1, Reason: "" });
        await set(id, { Enabled: false });
        assert.match(JSON.stringify(await check(packet)), /"Allow","Rule":null,"Reason":"The firewall is not enabled/);
      });

      test("by at most as many rules as the quota allows", async () => {
        const { Id: id } = await fixture.network();
        const packet = { Protocol: "Icmp", Source: outside, Destination: outside } as const;
        const rules = (length: number) =>
          Array.from({ length }, (_, index) => ({
            Action: "Deny" as const,
            Source: `192.0.${index >> 8}.${index & 255}`,
          }));
        const judge = (length: number) =>
          harness.client.checkFirewall({ path: { id }, body: { ...packet, Rules: rules(length) } });
        assert.deepEqual((await judge(500)).Rule, null);
        await refused(judge(501), "quota_exceeded");
      });

      test("for tokens that can read, also in a blocked project, without effect", async () => {
        const { Id: id } = await fixture.network();
        const reader = await harness.as(["network:read"]);
        await fixture.newEvents();
        const body = { Protocol: "Icmp", Source: outside, Destination: outside } as const;
        assert.equal((await reader.client.checkFirewall({ path: { id }, body })).Verdict, "Allow");
        assert.deepEqual(await fixture.newEvents(), []);
        const audit = await harness.client.listAudit({ query: { operation: "checkFirewall" } });
        assert.deepEqual(audit, [], "the check changes nothing");
      });

      test("and reports all errors at once", async () => {
        const { Id: id } = await fixture.network();
        const response = await harness.request(`POST /publicnetwork/${id}/firewall/check`, {
          Protocol: "Tcp",
          Source: "10.0.0.0/24",
          Destination: "2001:db8::1",
          SourcePort: 70_000,
          Rules: [{ Action: "Allow", Source: "x" }],
        });
        assert.deepEqual(errorsOf(response.text), [
          ["/Destination", "format_invalid"],
          ["/DestinationPort", "field_required"],
          ["/Rules/0/Source", "format_invalid"],
          ["/Source", "format_invalid"],
          ["/SourcePort", "out_of_range"],
        ]);
        const icmp = {
          Protocol: "Icmp",
          Source: outside,
          Destination: outside,
          DestinationPort: 1,
          DefaultRuleAction: "Deny",
        };
        const odd = await harness.request(`POST /publicnetwork/${id}/firewall/check`, icmp);
        assert.deepEqual(errorsOf(odd.text), [
          ["/DefaultRuleAction", "fields_conflict"],
          ["/DestinationPort", "port_not_allowed"],
        ]);
      });

      test("and packets get the same verdict", async () => {
        const { id, one, two, send } = await fixture.networkWithServers();
        const { Gateway, EdgeExternalIp } = await fixture.read(id);
        const word = (...words: string[]) => fc.constantFrom(...words);
        const spot = word(
          "any",
          "internal",
          "external",
          one.address,
          two.address,
          outside,
          "198.51.100.0/28",
          "203.0.113.1-203.0.113.9",
        );
        const ports = word("any", "80", "80,443", "1024-65535", "53");
        const rule = fc
          .record({
            Action: word("Allow", "Deny"),
            Protocol: word("Any", "Tcp", "Udp", "TcpAndUdp", "Icmp"),
            Source: spot,
            Destination: spot,
            SourcePort: ports,
            DestinationPort: ports,
          })
          .map((spec) =>
            /Any|Icmp/.test(spec.Protocol) ? { ...spec, SourcePort: "any", DestinationPort: "any" } : spec,
          ) as fc.Arbitrary<FirewallRuleInput>;
        // An echo and its reply between two hosts are one connection, so each pair is tested once.
        const packets = [outside, "203.0.113.5", "192.0.2.9"].flatMap((far) => [
          ...[one, two].flatMap(({ address }) =>
            [80, 53, 9000].flatMap((port) => [() => tcp(far, address, port), () => udp(address, far, port)]),
          ),
          () => ping(far, one.address),
          () => ping(two.address, far),
          ...[Gateway, EdgeExternalIp].flatMap((own) => [
            () => tcp(far, own, 22),
            () => udp(one.address, own, 67),
            () => udp(far, own, 500),
            () => ping(far, own),
          ]),
        ]);
        await fc.assert(
          fc.asyncProperty(fc.array(rule, { maxLength: 6 }), word("Allow", "Deny"), async (Rules, action) => {
            const DefaultRuleAction = action as "Allow" | "Deny";
            await set(id, { DefaultRuleAction: "Deny" }, { wait: 60 });
            await set(id, { DefaultRuleAction, Rules }, { wait: 60 });
            for (const make of packets) {
              const packet = make();
              const Protocol = packet.protocol === 6 ? "Tcp" : packet.protocol === 17 ? "Udp" : "Icmp";
              const body = {
                Protocol,
                Source: packet.source,
                Destination: packet.destination,
                ...(Protocol !== "Icmp" && { SourcePort: packet.sourcePort, DestinationPort: packet.destinationPort }),
              } as const;
              const { Verdict, Rule } = await harness.client.checkFirewall({ path: { id }, body });
              assert.equal(Verdict === "Allow", send(packet), JSON.stringify([Rules, body]));
              if ([Gateway, EdgeExternalIp].includes(packet.destination)) assert.equal(Rule, null);
              else assert.equal(Rule === null ? DefaultRuleAction : Rules[Rule - 1]?.Action, Verdict);
            }
          }),
          { numRuns: 8, endOnFailure: true },
        );
      });
    });
  },
  { clock },
);
