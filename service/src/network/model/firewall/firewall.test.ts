/** Parsing and showing firewalls: canonical texts, errors, and that a response can be sent back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FirewallInput, type FirewallRuleInput, ruleActions, ruleProtocols } from "@brume/api/firewall.ts";
import fc from "fast-check";
import { anyText } from "../../../../../test/support/texts.ts";
import { ApiError } from "../../../base/error.ts";
import { createJudge } from "../../../drivers/router/model/verdict.ts";
import { decodeBody } from "../../../http/read/body.ts";
import { readFields } from "../../../http/read/fields.ts";
import { abridge, checkFirewall, defaultFirewall, normalise, showFirewall } from "./firewall.ts";
import { toRouterFirewall } from "./routerform.ts";

const both = { family6: true };
const only4 = { family6: false };

const rule = (input: Partial<FirewallRuleInput>): FirewallRuleInput => ({ Action: "Allow", Protocol: "Tcp", ...input });
const errorsOf = (input: Partial<FirewallRuleInput>, families = only4) =>
  checkFirewall({ Rules: [rule(input)] }, families).map(({ pointer, code }) => `${pointer} ${code}`);
const detailOf = (input: Partial<FirewallRuleInput>, families = only4) =>
  checkFirewall({ Rules: [rule(input)] }, families)[0]?.detail;

/** A body as the HTTP pipeline passes it. */
function read(body: unknown, families = only4) {
  const raw = decodeBody(new TextEncoder().encode(JSON.stringify(body)), {}, false);
  const { value, errors } = readFields(FirewallInput, raw, { strict: false });
  return { value, errors: [...errors, ...checkFirewall(value, families)] };
}

test("addresses have one canonical text", () => {
  const rows: [string, string][] = [
    ["", "any"],
    ["ANY", "any"],
    ["Internal", "internal"],
    [" external ", "external"],
    ["10.64.0.10", "10.64.0.10"],
    ["10.64.0.10/32", "10.64.0.10"],
    ["10.0.0.77/24", "10.0.0.0/24"],
    ["192.0.2.1/0", "0.0.0.0/0"],
    ["10.0.0.5-10.0.0.9", "10.0.0.5-10.0.0.9"],
    ["10.0.0.5 - 10.0.0.5", "10.0.0.5-10.0.0.5"],
    ["10.0.0.1, 10.0.0.77/24 ,10.0.0.5-10.0.0.9", "10.0.0.1,10.0.0.0/24,10.0.0.5-10.0.0.9"],
    ["255.255.255.255", "255.255.255.255"],
    ["2001:DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["2001:db8::1/128", "2001:db8::1"],
    ["2001:db8:0:1:2:3:4:5/64,10.0.0.1", "2001:db8:0:1::/64,10.0.0.1"],
    ["2001:db8::9-2001:0db8::00a0", "2001:db8::9-2001:db8::a0"],
    ["::/0", "::/0"],
  ];
  for (const [given, shown] of rows) {
    const { Rules } = normalise({ Rules: [rule({ Source: given, Destination: given })] }, both);
    assert.deepEqual([Rules[0]?.Source, Rules[0]?.Destination], [shown, shown], given);
  }
});

test("ports have one canonical text", () => {
  const rows: [string, string][] = [
    ["", "any"],
    ["Any", "any"],
    ["80", "80"],
    ["0080", "80"],
    ["80, 443", "80,443"],
    ["8000 - 8100,1", "8000-8100,1"],
    ["1-65535", "1-65535"],
    ["80-80", "80-80"],
  ];
  for (const [given, shown] of rows) {
    const { Rules } = normalise({ Rules: [rule({ SourcePort: given, DestinationPort: given })] }, only4);
    assert.deepEqual([Rules[0]?.SourcePort, Rules[0]?.DestinationPort], [shown, shown], given);
  }
});

test("an invalid address is rejected, and the error contains it", () => {
  const odd = [
    "x",
    ",",
    "10.0.0.1,",
    "10.0.0",
    "010.0.0.1",
    "10.0.0.300",
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/",
    "10.0.0.0/24/24",
    "10.0.0.0/255.255.255.0",
    "10.0.0.9-10.0.0.5",
    "10.0.0.1-",
    "10.0.0.1-10.0.0.2-10.0.0.3",
    "10.0.0.0/24-10.0.1.0",
    "10.0.0.1-10.0.1.0/24",
    "any,10.0.0.1",
    "10.0.0.1,internal",
    "fe80::1%eth0",
    "10.0.0.1-2001:db8::1",
    "10.0.0.1 10.0.0.2",
    "$(reboot)",
    "{ } ;",
  ];
  for (const Source of odd) assert.deepEqual(errorsOf({ Source }, both), ["/Rules/0/Source format_invalid"], Source);
  assert.equal(
    detailOf({ Source: "10.0.0.1,10.0.0.300" }),
    'Source must be an address, a block, a range or a keyword, not "10.0.0.300".',
  );
  assert.equal(detailOf({ Destination: "any,10.0.0.1" }), 'Destination must not combine "any" with other items.');
});

test("IPv6 needs a network that has it", () => {
  for (const Source of ["2001:db8::1", "::/0", "10.0.0.1,2001:db8::1-2001:db8::2"]) {
    assert.deepEqual(errorsOf({ Source }), ["/Rules/0/Source format_invalid"]);
    assert.deepEqual(errorsOf({ Source }, both), []);
  }
  assert.equal(
    detailOf({ Source: "2001:db8::1" }),
    'Source must be IPv4, because the network has no IPv6, not "2001:db8::1".',
  );
});

test("ports out of range, malformed, or with a protocol without ports are rejected", () => {
  const rows: [Partial<FirewallRuleInput>, string][] = [
    [{ DestinationPort: "0" }, "out_of_range"],
    [{ DestinationPort: "65536" }, "out_of_range"],
    [{ DestinationPort: "99999999999999999999" }, "out_of_range"],
    [{ DestinationPort: "80,70000" }, "out_of_range"],
    [{ DestinationPort: "http" }, "format_invalid"],
    [{ DestinationPort: "-1" }, "format_invalid"],
    [{ DestinationPort: "80-" }, "format_invalid"],
    [{ DestinationPort: "81-80" }, "format_invalid"],
    [{ DestinationPort: "80,,81" }, "format_invalid"],
    [{ DestinationPort: "80,any" }, "format_invalid"],
    [{ DestinationPort: "80.5" }, "format_invalid"],
    [{ DestinationPort: "1,".repeat(64) }, "too_long"],
    [{ Protocol: "Any", DestinationPort: "80" }, "port_not_allowed"],
    [{ Protocol: "Icmp", DestinationPort: "80" }, "port_not_allowed"],
  ];
  for (const [input, code] of rows)
    assert.deepEqual(errorsOf(input), [`/Rules/0/DestinationPort ${code}`], JSON.stringify(input));
  for (const Protocol of ["Any", "Icmp"] as const)
    for (const SourcePort of ["any", "ANY", "", undefined])
      assert.deepEqual(errorsOf({ Protocol, ...(SourcePort !== undefined && { SourcePort }) }), []);
  assert.equal(
    detailOf({ Protocol: "Icmp", SourcePort: "80" }),
    'SourcePort must be any with the protocol Icmp, not "80".',
  );
});

test("64 items are accepted, 65 are not", () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `10.0.0.${i}`).join(",");
  assert.deepEqual(errorsOf({ Source: many(64) }), []);
  assert.deepEqual(errorsOf({ Source: many(65) }), ["/Rules/0/Source too_long"]);
  assert.equal(detailOf({ Source: many(65) }), "Source must have at most 64 items, not 65.");
  const widest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe - ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
  const text = Array.from({ length: 64 }, () => widest).join(" , ");
  assert.deepEqual(read({ Rules: [{ Action: "Deny", Source: text }] }, both).errors, []);
});

test("all errors of all rules are reported, with those of the schema", () => {
  const { errors } = read({
    Rules: [
      { Name: "a<b", Source: "x" },
      { Action: "Allow", Protocol: "Gre", DestinationPort: "80" },
      { Action: "allow", protocol: "icmp", SourcePort: 80, Destination: "any,any" },
      { Action: "Allow" },
      { Action: "Maybe", DestinationPort: "0", Protocol: "TCP" },
    ],
  });
  assert.deepEqual(errors.map(({ pointer, code }) => `${pointer} ${code}`).sort(), [
    "/Rules/0/Action field_required",
    "/Rules/0/Name format_invalid",
    "/Rules/0/Source format_invalid",
    "/Rules/1/Protocol value_not_allowed",
    "/Rules/2/Destination format_invalid",
    "/Rules/2/SourcePort port_not_allowed",
    "/Rules/4/Action value_not_allowed",
    "/Rules/4/DestinationPort out_of_range",
  ]);
});

test("at most a thousand errors are reported", () => {
  const Rules = Array.from({ length: 10_000 }, () => rule({ Source: "x", Destination: "x" }));
  assert.equal(checkFirewall({ Rules }, only4).length, 1000);
});

test("Confirm must be the only field", () => {
  assert.deepEqual(checkFirewall({ Confirm: true }, only4), []);
  assert.deepEqual(checkFirewall({ Confirm: false, Rules: [], Enabled: true }, only4), []);
  assert.deepEqual(
    checkFirewall({ Confirm: false }, only4).map(({ pointer, code }) => [pointer, code]),
    [["/Confirm", "value_not_allowed"]],
    "it would replace all rules by none",
  );
  const [error, ...more] = checkFirewall({ Confirm: true, Enabled: true, Rules: [] }, only4);
  assert.deepEqual([error?.pointer, error?.code, more], ["/Confirm", "fields_conflict", []]);
  assert.equal(error?.detail, "Confirm must be the only field of the body, without Enabled, Rules.");
});

test("absent fields have the documented defaults", () => {
  assert.deepEqual(normalise({}, only4), { Enabled: true, DefaultRuleAction: "Deny", Rules: [] });
  assert.deepEqual(normalise(read({ Rules: [{ Action: "deny" }] }).value, only4).Rules, [
    {
      Name: "",
      Action: "Deny",
      Protocol: "Any",
      Source: "any",
      SourcePort: "any",
      Destination: "any",
      DestinationPort: "any",
    },
  ]);
  assert.deepEqual(defaultFirewall, { Enabled: false, DefaultRuleAction: "Deny", Rules: [] });
});

test("an invalid firewall is not normalised", () => {
  const isInvalid = (error: unknown) =>
    error instanceof ApiError && error.code === "validation_failed" && error.errors.length === 2;
  const wrong = { Rules: [rule({ Source: "x", Destination: "2001:db8::1" })] };
  assert.throws(() => normalise(wrong, only4), isInvalid);
  // The default protocol is Any, which has no ports.
  const implicit = { Rules: [{ Action: "Allow", SourcePort: "1", DestinationPort: "80" } as const] };
  assert.throws(() => normalise(implicit, only4), isInvalid);
});

test("the response is exactly that of the specification", () => {
  const body = {
    Enabled: true,
    DefaultRuleAction: "Deny",
    Rules: [
      {
        Name: "web",
        Action: "Allow",
        Protocol: "Tcp",
        Source: "any",
        SourcePort: "any",
        Destination: "10.64.0.10",
        DestinationPort: "80,443",
      },
      { Name: "out", Action: "Allow", Protocol: "Any", Source: "internal", Destination: "external" },
    ],
  };
  const stored = normalise(read(body).value, only4);
  const lastHit = Date.parse("2026-11-20T09:15:00.120Z");
  const shown = showFirewall(stored, { confirmBy: null, counts: [{ packets: 812, bytes: 70_231, lastHit }] });
  assert.equal(
    JSON.stringify(shown),
    '{"Enabled":true,"DefaultRuleAction":"Deny","Rules":[{"Number":1,"Name":"web","Action":"Allow","Protocol":"Tcp","Source":"any","SourcePort":"any","Destination":"10.64.0.10","DestinationPort":"80,443","Packets":812,"Bytes":70231,"LastHit":"2026-11-20T09:15:00.120Z"},{"Number":2,"Name":"out","Action":"Allow","Protocol":"Any","Source":"internal","SourcePort":"any","Destination":"external","DestinationPort":"any","Packets":0,"Bytes":0,"LastHit":null}],"ConfirmBy":null}',
  );
  const listed = showFirewall(stored, { confirmBy: lastHit, counts: null });
  assert.equal(listed.ConfirmBy, "2026-11-20T09:15:00.120Z");
  assert.deepEqual(
    listed.Rules.map(({ Packets, Bytes, LastHit }) => [Packets, Bytes, LastHit]),
    [
      [null, null, null],
      [null, null, null],
    ],
  );
});

test("the router driver gets ports as numbers and addresses as lists", () => {
  const stored = normalise(
    {
      Enabled: false,
      DefaultRuleAction: "Allow",
      Rules: [
        rule({ Action: "Deny", Protocol: "TcpAndUdp", Source: "10.0.0.9/24,10.1.0.1", DestinationPort: "80,90-99" }),
        rule({ Protocol: "Icmp", Source: "internal", Destination: "external" }),
      ],
    },
    only4,
  );
  const none = { sourcePort: "any", destinationPort: "any" };
  assert.deepEqual(toRouterFirewall(stored), {
    enabled: false,
    allow: true,
    rules: [
      {
        ...none,
        allow: false,
        protocol: "tcp-udp",
        source: ["10.0.0.0/24", "10.1.0.1"],
        destination: "any",
        destinationPort: [
          { first: 80, last: 80 },
          { first: 90, last: 99 },
        ],
      },
      { ...none, allow: true, protocol: "icmp", source: "internal", destination: "external" },
    ],
  });
});

const address = fc.oneof(fc.ipV4(), fc.ipV6());
const block = fc.oneof(
  fc.tuple(fc.ipV4(), fc.nat(32)).map(([start, length]) => `${start}/${length}`),
  fc.tuple(fc.ipV6(), fc.nat(128)).map(([start, length]) => `${start}/${length}`),
);
const range = fc.tuple(fc.nat(255), fc.nat(255)).map(([a, b]) => `10.0.${Math.min(a, b)}.1-10.0.${Math.max(a, b)}.1`);
const listOf = (item: fc.Arbitrary<string>) =>
  fc.array(item, { minLength: 1, maxLength: 5 }).map((items) => items.join(" , "));
const place = fc.oneof(fc.constantFrom("any", "Internal", "EXTERNAL", ""), listOf(fc.oneof(address, block, range)));
const port = fc.integer({ min: 1, max: 65_535 });
const ports = fc.oneof(
  fc.constantFrom("any", ""),
  listOf(
    fc.oneof(
      port.map(String),
      fc.tuple(port, port).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    ),
  ),
);
const goodRule: fc.Arbitrary<FirewallRuleInput> = fc
  .record({
    Name: fc.stringMatching(/^(?:[a-z][a-z ]{0,62}[a-z])?$/),
    Action: fc.constantFrom(...ruleActions),
    Protocol: fc.constantFrom(...ruleProtocols),
    Source: place,
    SourcePort: ports,
    Destination: place,
    DestinationPort: ports,
  })
  .map((input) =>
    input.Protocol === "Any" || input.Protocol === "Icmp"
      ? { ...input, SourcePort: "any", DestinationPort: "" }
      : input,
  );
const goodSet: fc.Arbitrary<FirewallInput> = fc.record({
  Enabled: fc.boolean(),
  DefaultRuleAction: fc.constantFrom(...ruleActions),
  Rules: fc.array(goodRule, { maxLength: 8 }),
});

test("a valid firewall has no errors, is canonical after one pass, and the router's model accepts it", () => {
  fc.assert(
    fc.property(goodSet, (input) => {
      assert.deepEqual(checkFirewall(input, both), []);
      const once = normalise(input, both);
      assert.deepEqual(normalise(once as FirewallInput, both), once);
      createJudge(toRouterFirewall(once), ["10.64.0.8/29", "fd24:1::/64"]);
    }),
  );
});

test("sending back a response changes nothing", () => {
  fc.assert(
    fc.property(goodSet, (input) => {
      const stored = normalise(input, both);
      const { value, errors } = read(showFirewall(stored, { confirmBy: 1, counts: null }), both);
      assert.deepEqual([errors, JSON.stringify(normalise(value, both))], [[], JSON.stringify(stored)]);
    }),
  );
});

const hostile = fc.oneof(
  anyText(200),
  fc.stringMatching(/^[0-9a-fA-F.:/,\- ]{0,80}$/),
  fc
    .array(fc.constantFrom("10.0.0.1", "::", "/", "-", ",", ":", "99", "any", " ", "%", "1e9"), { maxLength: 20 })
    .map((parts) => parts.join("")),
);

test("no text causes an unexpected error, and an accepted firewall is canonical", () => {
  const input = fc.record({
    Action: fc.constantFrom(...ruleActions),
    Protocol: fc.constantFrom(...ruleProtocols),
    Source: hostile,
    SourcePort: hostile,
    Destination: hostile,
    DestinationPort: hostile,
  });
  fc.assert(
    fc.property(input, fc.boolean(), (one, family6) => {
      const errors = checkFirewall({ Rules: [one] }, { family6 });
      for (const { pointer, detail } of errors) {
        assert.match(pointer, /^\/Rules\/0\/(Source|Destination)(Port)?$/);
        assert.ok(detail.endsWith(".") && detail.length < 600, detail);
      }
      if (errors.length > 0) return;
      const once = normalise({ Rules: [one] }, { family6 });
      assert.deepEqual(normalise(once as FirewallInput, { family6 }), once);
      createJudge(toRouterFirewall(once), ["10.64.0.8/29"]);
    }),
    { numRuns: 1000 },
  );
});

test("an event with a large firewall has only the rules that differ, and the number of the others", () => {
  const of = (...names: string[]) => normalise({ Rules: names.map((Name) => rule({ Name })) }, only4);
  const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
  const abridged = (mine: string[], other: string[] | null) => {
    const { Rules, Omitted } = abridge(of(...mine), other && of(...other), null);
    return [Omitted, Rules.length, ...Rules.slice(0, 3).map(({ Number, Name }) => `${Number} ${Name}`)];
  };
  assert.deepEqual(abridged(names(500), null), [undefined, 500, "1 n0", "2 n1", "3 n2"]);
  const many = names(501);
  assert.deepEqual(abridged(many, many), [501, 0]);
  assert.deepEqual(abridged(many, null), [1, 500, "1 n0", "2 n1", "3 n2"]);
  assert.deepEqual(abridged(many.with(100, "x"), many), [500, 1, "101 x"]);
  assert.deepEqual(abridged(many.with(100, "x").with(102, "y"), many), [498, 3, "101 x", "102 n101", "103 y"]);
  assert.deepEqual(abridged(["x", ...many], many), [501, 1, "1 x"]);
  assert.deepEqual(abridged(many, ["x", ...many]), [501, 0]);
  assert.deepEqual(abridged(["n0", ...many], many), [501, 1, "2 n0"]);
});
