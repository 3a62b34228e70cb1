/** The delegation of a domain comes from the parent's name servers: two real Knots, queried without recursion. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findDelegation } from "../../service/src/dns/delegation.ts";
import { image, set } from "../support/zone.ts";
import { freePort, type Knot, startKnot } from "./knot.ts";

let knots: Knot[];
let port: number;
const hosts = ["127.0.0.1", "127.0.0.2"];
const ours = ["ns1.brume.test", "ns2.brume.test"];

const top = [
  set("test", "NS", "a.test", "b.test"),
  set("a.test", "A", hosts[0] as string),
  set("b.test", "A", hosts[1] as string),
  set("whole.test", "NS", "ns1.brume.test", "ns2.brume.test"),
  set("one.test", "NS", "ns2.brume.test"),
  set("mixed.test", "NS", "ns1.brume.test", "ns.other.example"),
  set("foreign.test", "NS", "ns.other.example"),
  set("brume.test", "NS", "ns1.brume.test", "ns2.brume.test"),
  set("ns1.brume.test", "A", "192.0.2.1"),
  set("ns2.brume.test", "A", "192.0.2.2"),
  set("half.test", "NS", "ns1.half.test", "ns2.half.test"),
  set("ns1.half.test", "A", "192.0.2.1"),
  set("deep.test", "NS", "a.test"),
];
const deep = image("deep.test", 1, [set("deep.test", "NS", "a.test"), set("x.deep.test", "NS", "ns1.brume.test")]);

before(async () => {
  port = await freePort();
  const differing = [...top, set("moved.test", "NS", "ns1.brume.test")];
  knots = await Promise.all([
    startKnot([image("test", 1, differing), deep], [], { host: hosts[0] as string, port, config: "" }),
    startKnot([image("test", 1, top), deep], [], { host: hosts[1] as string, port, config: "" }),
  ]);
});

after(() => Promise.all(knots.map((knot) => knot.close())));

const find = (domain: string, more: object = {}) =>
  findDelegation(domain, {
    nameServers: [...ours, "ns1.half.test", "ns2.half.test"],
    resolvers: [`${hosts[0]}:${port}`],
    signal: new AbortController().signal,
    port,
    ...more,
  });

for (const [domain, wanted, why] of [
  ["whole.test", "Delegated", "all name servers are ours"],
  ["one.test", "Delegated", "some of our name servers and no others"],
  ["mixed.test", "Partial", "ours and another name server"],
  ["moved.test", "Partial", "one server of the parent does not have it"],
  ["half.test", "Partial", "one of our name servers inside the domain has no glue"],
  ["brume.test", "Delegated", "our name servers inside the domain have glue"],
  ["foreign.test", "NotDelegated", "only other name servers"],
  ["nothing.test", "NotDelegated", "the parent has no such name"],
  ["x.deep.test", "Delegated", "the parent is the closest zone above"],
] as const)
  test(`${domain} is ${wanted}: ${why}`, async () => assert.equal(await find(domain), wanted));

test("the delegation is unknown if no name server of the parent responds, or there is no resolver", async () => {
  assert.equal(await find("whole.test", { port: await freePort() }), "Unknown");
  assert.equal(await find("whole.test", { resolvers: [] }), "Unknown");
});
