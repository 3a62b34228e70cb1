/** The firewall check: invalid packets, and the verdict and reason of valid ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FirewallRuleInput, PacketInput } from "@brume/api/firewall.ts";
import fc from "fast-check";
import { anyText } from "../../../../../test/support/texts.ts";
import { ApiError } from "../../../base/error.ts";
import { runAtOnce } from "../../../base/turn.ts";
import { openingsOf } from "../../../drivers/router/model/openings.ts";
import { checkPacket, judgePacket, type PacketContext } from "./check.ts";
import { createRuleReader, normalise } from "./firewall.ts";

const rules: FirewallRuleInput[] = [
  { Name: "web", Action: "Allow", Protocol: "Tcp", Destination: "10.64.0.10", DestinationPort: "80,443" },
  { Action: "Deny", Protocol: "Udp", Destination: "internal", SourcePort: "53" },
  { Name: "out", Action: "Allow", Source: "internal", Destination: "external" },
  { Action: "Allow", Protocol: "Icmp", Source: "fd99::/16" },
];
const network: PacketContext = {
  family6: true,
  firewall: normalise({ Rules: rules }, { family6: true }),
  internal: ["10.64.0.8/29", "fd24:1::/64"],
  edge: ["10.64.0.9", "fd24:1::1", "10.64.255.2"],
  openings: openingsOf({
    edgeAddress: "10.64.255.2",
    dhcp: { enabled: true, router: null, dns: [] },
    dnsForwarders: [],
    wireguard: null,
    tunnels: [{ type: "ipsec", enabled: true }],
  }),
  closed: ["169.254.0.0/16", "fe80::/10"],
};
const packet = (input: Partial<PacketInput> = {}): PacketInput => ({
  Protocol: "Tcp",
  Source: "203.0.113.5",
  Destination: "10.64.0.10",
  DestinationPort: 80,
  ...input,
});
const ping = (Source: string, Destination: string): PacketInput => ({ Protocol: "Icmp", Source, Destination });
const judge = (input: Partial<PacketInput>, asked: Partial<PacketContext> = {}) =>
  runAtOnce(judgePacket(packet(input), { ...network, ...asked }));

test("rules do not open closed addresses", () => {
  const off = normalise({ Enabled: false, Rules: [] }, { family6: true });
  const closed = (input: Partial<PacketInput>) => {
    const { Verdict, Rule, Reason } = judge(input, { firewall: off });
    assert.deepEqual([Verdict, Rule], ["Deny", null]);
    assert.match(Reason, /is closed to servers/);
  };
  closed({ Source: "10.64.0.10", Destination: "169.254.169.254" });
  closed({ Source: "fd24:1::5", Destination: "fe80::1" });
  closed({ Source: "169.254.7.7" });
  // The host itself uses these addresses.
  assert.equal(judge({ Source: "169.254.1.1" }).Rule, 1);
  assert.equal(judge({ Source: "10.64.0.10", Destination: "169.253.255.255" }, { firewall: off }).Verdict, "Allow");
});

test("the first matching rule decides, else the default", () => {
  assert.deepEqual(judge({}), {
    Verdict: "Allow",
    Rule: 1,
    Reason: "Rule 1 (web) is the first that matches, and its Action is Allow.",
  });
  assert.deepEqual(judge({ Protocol: "Udp", SourcePort: 53 }), {
    Verdict: "Deny",
    Rule: 2,
    Reason: "Rule 2 is the first that matches, and its Action is Deny.",
  });
  assert.deepEqual(judge({ SourcePort: 40_000, DestinationPort: 22 }), {
    Verdict: "Deny",
    Rule: null,
    Reason: "No rule matches, and DefaultRuleAction is Deny.",
  });
  assert.equal(judge({ Source: "10.64.0.11", Destination: "198.51.100.1" }).Rule, 3);
  assert.equal(runAtOnce(judgePacket(ping("fd99::1", "fd24:1::5"), network)).Rule, 4);
  assert.equal(runAtOnce(judgePacket(ping("203.0.113.5", "10.64.0.10"), network)).Verdict, "Deny");
});

test("an assumed source port is reported if rules depend on it", () => {
  assert.equal(
    judge({ DestinationPort: 22 }).Reason,
    "No rule matches, and DefaultRuleAction is Deny. SourcePort was assumed to be 49152.",
  );
});

test("rules of the request replace the stored ones", () => {
  const Rules: FirewallRuleInput[] = [{ Action: "Deny", Protocol: "Tcp", Source: "203.0.113.0/24" }];
  const off = { firewall: { ...network.firewall, Enabled: false } };
  assert.deepEqual([judge({ Rules }).Verdict, judge({ Rules }).Rule], ["Deny", 1]);
  assert.equal(judge({ Rules }, off).Verdict, "Deny");
  assert.equal(judge({ Rules: [] }).Verdict, "Deny");
  assert.equal(judge({ Rules: [], DefaultRuleAction: "Allow" }).Verdict, "Allow");
});

test("thousands of rules are judged with yields, and parsed once", () => {
  let parsed = 0;
  const Rules = Array.from(
    { length: 3000 },
    (_, index): FirewallRuleInput => ({
      Action: "Allow",
      Protocol: "Tcp",
      Destination: "10.64.0.10",
      get Source() {
        parsed += 1;
        return `10.0.${index >> 8}.${index & 255}`;
      },
    }),
  );
  const countYields = (work: Generator<void, unknown>): number => {
    let yields = 0;
    while (work.next().done !== true) yields += 1;
    return yields;
  };
  const reader = createRuleReader();
  assert.ok(countYields(reader.prepare(Rules, { family6: true })) >= 3000);
  assert.deepEqual(checkPacket(packet({ Rules }), { family6: true }, reader.read), []);
  // Converted, and brought into the form of one family.
  const yields = countYields(judgePacket(packet({ Rules }), network, reader));
  assert.ok(yields >= 6000 && yields < 9000, `${yields} yields`);
  assert.equal(parsed, 3000);
  const other = judgePacket(packet({ Rules }), { ...network, family6: false }, reader);
  assert.ok(countYields(other) >= 9000, "other families need another parse");
});

test("unfiltered traffic is allowed", () => {
  const off = judge({}, { firewall: { ...network.firewall, Enabled: false } });
  assert.deepEqual(off, { Verdict: "Allow", Rule: null, Reason: "The firewall is not enabled: everything passes." });
  const inside = judge({ Source: "10.64.0.11", DestinationPort: 22 });
  assert.deepEqual([inside.Verdict, inside.Rule], ["Allow", null]);
  assert.match(inside.Reason, /does not cross its router/);
});

test("the edge itself accepts only what its guard allows", () => {
  for (const [Protocol, Source, Destination, port, verdict] of [
    ["Icmp", "203.0.113.5", "10.64.255.2", 0, "Allow"],
    ["Icmp", "203.0.113.5", "10.64.0.9", 0, "Allow"],
    ["Icmp", "fd24:1::5", "fd24:1::1", 0, "Allow"],
    ["Icmp", "10.64.0.10", "10.64.255.2", 0, "Allow"],
    ["Icmp", "10.64.255.2", "203.0.113.5", 0, "Allow"],
    ["Tcp", "10.64.0.9", "10.64.0.10", 22, "Allow"],
    ["Tcp", "203.0.113.5", "10.64.255.2", 22, "Deny"],
    ["Tcp", "10.64.0.10", "10.64.0.9", 22, "Deny"],
    ["Udp", "203.0.113.5", "10.64.255.2", 500, "Allow"],
    ["Udp", "203.0.113.5", "10.64.255.2", 4500, "Allow"],
    ["Tcp", "203.0.113.5", "10.64.255.2", 500, "Deny"],
    ["Udp", "10.64.0.10", "10.64.255.2", 500, "Deny"],
    ["Udp", "203.0.113.5", "10.64.255.2", 51_820, "Deny"],
    ["Udp", "10.64.0.10", "10.64.0.9", 67, "Allow"],
    ["Udp", "203.0.113.5", "10.64.0.9", 67, "Deny"],
    ["Udp", "10.64.0.10", "10.64.0.9", 53, "Deny"],
  ] as const) {
    const question = { Protocol, Source, Destination, ...(port > 0 && { DestinationPort: port }) };
    const { Verdict, Rule } = runAtOnce(judgePacket(question, network));
    assert.deepEqual([Verdict, Rule], [verdict, null], JSON.stringify(question));
  }
  const reasonOf = (Source: string) => judge({ Source, Destination: "10.64.0.9", DestinationPort: 22 }).Reason;
  assert.equal(
    reasonOf("203.0.113.5"),
    "10.64.0.9 is the router of the network, which rules do not filter: from outside it accepts only echo, UDP 500 (IKE), UDP 4500 (IKE), ESP.",
  );
  assert.match(reasonOf("10.64.0.10"), /: from the network it accepts only echo, UDP 67 \(DHCP\)\.$/);
});

test("a packet outside of the network is judged by the rules, and the reason states it", () => {
  const { Verdict, Reason } = judge({ Destination: "198.51.100.1", SourcePort: 1 });
  assert.equal(Verdict, "Deny");
  assert.match(Reason, /Neither address is in 10\.64\.0\.8\/29 or fd24:1::\/64/);
});

test("invalid packets are rejected", () => {
  const errors = (input: Partial<PacketInput>, family6 = true) =>
    checkPacket(input, { family6 }).map(({ pointer, code }) => `${pointer} ${code}`);
  assert.deepEqual(errors(packet()), []);
  assert.deepEqual(errors(ping("10.64.0.10", "203.0.113.5")), []);
  assert.deepEqual(errors({}), []);
  assert.deepEqual(errors(packet({ Source: "10.0.0.0/8", Destination: "any" })), [
    "/Source format_invalid",
    "/Destination format_invalid",
  ]);
  assert.deepEqual(errors(packet({ Destination: "2001:db8::1" })), ["/Destination fields_conflict"]);
  assert.deepEqual(errors(ping("2001:db8::1", "2001:db8::2"), false), [
    "/Source format_invalid",
    "/Destination format_invalid",
  ]);
  assert.deepEqual(errors({ ...ping("10.0.0.1", "10.0.0.2"), SourcePort: 1, DestinationPort: 2 }), [
    "/SourcePort port_not_allowed",
    "/DestinationPort port_not_allowed",
  ]);
  assert.deepEqual(errors({ Protocol: "Udp", Source: "10.0.0.1", Destination: "10.0.0.2" }), [
    "/DestinationPort field_required",
  ]);
  assert.deepEqual(errors(packet({ DefaultRuleAction: "Allow" })), ["/DefaultRuleAction fields_conflict"]);
  assert.deepEqual(errors(packet({ Rules: [{ Action: "Deny", Protocol: "Tcp", Source: "x", SourcePort: "0" }] })), [
    "/Rules/0/Source format_invalid",
    "/Rules/0/SourcePort out_of_range",
  ]);
});

test("a network without IPv6 rejects IPv6 packets", () => {
  const isInvalid = (error: unknown) => error instanceof ApiError && error.code === "validation_failed";
  assert.throws(
    () => runAtOnce(judgePacket(ping("2001:db8::1", "2001:db8::2"), { ...network, family6: false })),
    isInvalid,
  );
});

test("every error contains the received value", () => {
  const [error] = checkPacket(packet({ Source: "10.0.0.0/8" }), { family6: true });
  assert.equal(error?.detail, 'Source must be one address such as 10.64.0.10, not "10.0.0.0/8".');
});

test("no text causes an unexpected error, and every valid packet has a verdict", () => {
  const text = fc.oneof(anyText(64), fc.ipV4(), fc.ipV6());
  fc.assert(
    fc.property(text, text, fc.constantFrom("Tcp", "Udp", "Icmp"), (Source, Destination, Protocol) => {
      const question: PacketInput = {
        Protocol,
        Source,
        Destination,
        ...(Protocol !== "Icmp" && { DestinationPort: 1 }),
      };
      if (checkPacket(question, { family6: true }).length > 0) return;
      assert.ok(runAtOnce(judgePacket(question, network)).Reason.endsWith("."));
    }),
    { numRuns: 500 },
  );
});
