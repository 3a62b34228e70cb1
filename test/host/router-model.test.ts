/**
 * The model of the firewall agrees with real packets: for random rules every packet passes exactly if the model allows it, and the
 * model's rule is the one whose counter grew. The rule sets are large enough that the rendered search trees are used.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AddressMatch, Firewall, Ports, Rule } from "../../service/src/drivers/router/interface.ts";
import { createJudge, type Packet } from "../../service/src/drivers/router/model/verdict.ts";
import { createLab, hindrance, keyOf } from "../support/netnslab.ts";
import { image, port } from "../support/networkspec.ts";
import { runsOf } from "../support/random.ts";

if (hindrance !== null) console.log(`firewall against packets: not tried, ${hindrance}`);

const v4 = { cidr: "10.64.0.8/29", gateway: "10.64.0.9" };
const v6 = { cidr: "fd24:1::/64", gateway: "fd24:1::1" };
const blocks = [v4.cidr, v6.cidr];
const inside = ["10.64.0.10", "10.64.0.11"];
const inside6 = "fd24:1::a";
const outside = ["198.51.100.1", "198.51.100.2", "198.51.100.77", "203.0.113.9"];
const outside6 = ["fd51::1", "fd51::2"];
const servicePorts = [22, 53, 80, 443, 8080];

const listed: fc.Arbitrary<AddressMatch> = fc
  .uniqueArray(
    fc.constantFrom(
      ...inside,
      ...outside,
      inside6,
      ...outside6,
      "198.51.100.0/24",
      "198.51.100.1-198.51.100.50",
      "203.0.113.8/30",
      "10.64.0.10-10.64.0.11",
      "fd51::/64",
      "0.0.0.0/1",
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((list) => list);
const place: fc.Arbitrary<AddressMatch> = fc.oneof(
  fc.constantFrom<AddressMatch>("any", "internal", "external"),
  listed,
);
const ports: fc.Arbitrary<Ports> = fc.oneof(
  fc.constant<Ports>("any"),
  fc.array(
    fc.tuple(fc.constantFrom(...servicePorts), fc.constantFrom(0, 0, 1, 100, 5000)).map(([first, more]) => ({
      first,
      last: first + more,
    })),
    { minLength: 1, maxLength: 4 },
  ),
);
const rule: fc.Arbitrary<Rule> = fc
  .record({
    allow: fc.boolean(),
    protocol: fc.constantFrom("any", "tcp", "udp", "tcp-udp", "icmp"),
    source: place,
    destination: place,
    sourcePort: fc.oneof(
      { weight: 4, arbitrary: fc.constant<Ports>("any") },
      { weight: 1, arbitrary: fc.constant<Ports>([{ first: 20_000, last: 40_000 }]) },
    ),
    destinationPort: ports,
  })
  .map((spec) =>
    spec.protocol === "any" || spec.protocol === "icmp" ? { ...spec, sourcePort: "any", destinationPort: "any" } : spec,
  );
const firewall: fc.Arbitrary<Firewall> = fc.record({
  enabled: fc.constant(true),
  allow: fc.boolean(),
  rules: fc.array(rule, { maxLength: 40 }),
});

let nextPort = 10_000;
/** Packets between all pairs of addresses, in both directions. */
function packets(): { readonly inward: Packet[]; readonly outward: Packet[] } {
  const pairs = [
    ...inside.flatMap((near) => outside.map((far) => [near, far] as const)),
    ...outside6.map((far) => [inside6, far] as const),
  ];
  const of = (source: string, destination: string): Packet[] => [
    ...servicePorts.flatMap((destinationPort) =>
      [6, 17].map((protocol) => ({
        protocol,
        source,
        sourcePort: 10_000 + (nextPort++ % 50_000),
        destination,
        destinationPort,
      })),
    ),
    ...(source.includes(":") ? [] : [{ protocol: 1, source, sourcePort: 0, destination, destinationPort: 0 }]),
  ];
  return {
    inward: pairs.flatMap(([near, far]) => of(far, near)),
    outward: pairs.filter(([near]) => near !== inside[1]).flatMap(([near, far]) => of(near, far)),
  };
}

test("random rules have the same effect on packets as in the model", { skip: hindrance ?? false }, async () => {
  const lab = await createLab();
  try {
    const router = lab.open();
    const one = { ...port(1, "10.64.0.10"), addresses: ["10.64.0.10", inside6] };
    const two = port(2, "10.64.0.11");
    let generation = 0;
    const apply = (spec: Firewall) =>
      router.apply(image({ generation: ++generation, v4, v6, ports: [one, two], firewall: spec }));
    await apply({ enabled: false, allow: true, rules: [] });
    const guests = [await lab.guest(image({ v4, v6 }), one), await lab.guest(image({ v4, v6 }), two)] as const;
    await apply({ enabled: false, allow: true, rules: [] });
    // Resolve neighbours first, so that nothing below waits for it.
    for (const [space, target] of [
      [guests[0].space, "198.18.0.2"],
      [guests[1].space, "198.18.0.2"],
      [guests[0].space, "fd18::2"],
    ] as const)
      await lab.run(space, ["ping", "-c", "1", "-W", "60", target]);

    const runs = runsOf(20, 8);
    let judged = 0;
    await fc.assert(
      fc.asyncProperty(firewall, async (spec) => {
        // The same rules would keep their counters; here each run starts at 0.
        await apply({ enabled: false, allow: true, rules: [] });
        await apply(spec);
        await Promise.all([lab.internet, guests[0].space, guests[1].space].map(lab.seen));
        const { inward, outward } = packets();
        await Promise.all([lab.send(lab.internet, inward), lab.send(guests[0].space, outward)]);
        const [world, first, second] = await Promise.all(
          [lab.internet, guests[0].space, guests[1].space].map(lab.seen),
        );
        const judge = createJudge(spec, blocks);
        const counts = new Map<number | null, number>();
        for (const packet of [...inward, ...outward]) {
          const { allow, rule } = judge(packet);
          counts.set(rule, (counts.get(rule) ?? 0) + 1);
          const target = packet.destination === inside[1] ? second : outward.includes(packet) ? world : first;
          assert.equal(target?.has(keyOf(packet)), allow, `${keyOf(packet)}: rule ${rule}`);
          judged++;
        }
        const status = (await router.observe()).networks[0];
        assert.deepEqual(
          status?.rules.map(({ packets }) => packets),
          spec.rules.map((_, index) => counts.get(index) ?? 0),
        );
        assert.equal(status?.rest.packets, counts.get(null) ?? 0);
      }),
      { numRuns: runs, endOnFailure: true },
    );
    assert.ok(judged > 50 * runs, `${judged} packets in ${runs} runs`);
  } finally {
    await lab.close();
  }
});
