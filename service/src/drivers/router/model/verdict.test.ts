import assert from "node:assert/strict";
import { test } from "node:test";
import { rule } from "../../../../../test/support/networkspec.ts";
import type { Firewall, Rule } from "../interface.ts";
import { createJudge, flatten, type Packet, staysInside } from "./verdict.ts";

const internal = ["10.64.0.8/29", "fd24:1::/64"];
const packet = (spec: Partial<Packet> = {}): Packet => ({
  protocol: 6,
  source: "198.51.100.5",
  sourcePort: 40_000,
  destination: "10.64.0.10",
  destinationPort: 80,
  ...spec,
});
const judge = (firewall: Partial<Firewall>, spec: Partial<Packet> = {}) =>
  createJudge({ enabled: true, allow: false, rules: [], ...firewall }, internal)(packet(spec));

test("off: everything passes; no rule: the default action", () => {
  assert.deepEqual(judge({ enabled: false, rules: [rule({ allow: false })] }), { allow: true, rule: null });
  assert.deepEqual(judge({}), { allow: false, rule: null });
  assert.deepEqual(judge({ allow: true }), { allow: true, rule: null });
});

test("the first matching rule decides", () => {
  const rules = [rule({ protocol: "udp" }), rule({ allow: false, source: ["198.51.100.0/24"] }), rule({})];
  assert.deepEqual(judge({ rules }), { allow: false, rule: 1 });
  assert.deepEqual(judge({ rules }, { source: "203.0.113.1" }), { allow: true, rule: 2 });
});

test("each field matches its values", () => {
  const fits = (spec: Partial<Rule>, sent: Partial<Packet> = {}) => judge({ rules: [rule(spec)] }, sent).rule === 0;
  assert.ok(fits({ source: "external", destination: "internal" }));
  assert.ok(!fits({ source: "internal" }));
  assert.ok(fits({ destination: ["10.64.0.9-10.64.0.10"] }) && !fits({ destination: ["10.64.0.11"] }));
  assert.ok(
    fits({ protocol: "tcp-udp" }) &&
      fits({ protocol: "tcp-udp" }, { protocol: 17 }) &&
      !fits({ protocol: "tcp-udp" }, { protocol: 1 }),
  );
  assert.ok(fits({ protocol: "icmp" }, { protocol: 1 }) && !fits({ protocol: "icmp" }));
  assert.ok(fits({}, { protocol: 47, sourcePort: 0, destinationPort: 0 }));
  const web = [
    { first: 80, last: 80 },
    { first: 8000, last: 8100 },
  ];
  assert.ok(
    fits({ protocol: "tcp", destinationPort: web }) &&
      fits({ protocol: "tcp", destinationPort: web }, { destinationPort: 8100 }),
  );
  assert.ok(
    !fits({ protocol: "tcp", destinationPort: web }, { destinationPort: 81 }) &&
      !fits({ protocol: "tcp", sourcePort: web }),
  );
});

test("words match both families, lists their own, ICMP has a number in each", () => {
  const six = { source: "fd51::1", destination: "fd24:1::a" };
  assert.equal(judge({ rules: [rule({ destination: "internal" })] }, six).rule, 0);
  assert.equal(judge({ rules: [rule({ destination: ["0.0.0.0/0"] })] }, six).rule, null);
  assert.equal(judge({ rules: [rule({ protocol: "icmp" })] }, { ...six, protocol: 58 }).rule, 0);
  assert.equal(judge({ rules: [rule({ protocol: "icmp" })] }, { ...six, protocol: 1 }).rule, null);
});

test("a rule that cannot match is ignored, and others keep their numbers", () => {
  const rules = [
    rule({ destination: ["fd24:1::a"] }),
    rule({ source: [] }),
    rule({ protocol: "tcp", destinationPort: [] }),
    rule({}),
  ];
  assert.deepEqual(
    flatten(rules, 4, internal).map(({ index }) => index),
    [3],
  );
  assert.deepEqual(judge({ rules }), { allow: true, rule: 3 });
});

test("packets inside a network are not filtered by rules", () => {
  assert.ok(staysInside(packet({ source: "10.64.0.11" }), internal));
  assert.ok(!staysInside(packet(), internal));
  assert.ok(staysInside(packet({ source: "fd24:1::1", destination: "fd24:1::2" }), internal));
});
