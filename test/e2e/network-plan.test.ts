/**
 * Addresses of public networks (docs/spec.md#public-network, #defaults-and-limits, #ipv6): sizes in every form, disjoint blocks, and an
 * exhausted pool.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PublicNetwork } from "@brume/api/network.ts";
import { parseAddress, parseAddresses } from "../../service/src/base/address.ts";
import { onSqlite, refused } from "../support/harness.ts";
import {
  createMovableClock,
  createNetworkFixture,
  outside,
  ping,
  tcp,
  useNetworkFixture,
} from "../support/networkfixture.ts";

const clock = createMovableClock();
const path = ({ Id }: PublicNetwork) => ({ id: Id });
const within = (address: string, block: string): boolean => {
  const { value } = parseAddress(address);
  const { first, last } = parseAddresses(block);
  return first <= value && value <= last;
};

/** Asserts that no address is used twice and that each network is in the pool. */
function assertDisjoint(networks: readonly PublicNetwork[], pool: string): void {
  const claims = networks.flatMap(({ CIDR, EdgeExternalIp }) => [CIDR, EdgeExternalIp].map(parseAddresses));
  const poolRange = parseAddresses(pool);
  claims.sort((a, b) => (a.first < b.first ? -1 : 1));
  for (const [index, { first, last }] of claims.entries()) {
    assert.ok(poolRange.first <= first && last <= poolRange.last, "outside the pool");
    const next = claims[index + 1];
    assert.ok(next === undefined || last < next.first, "in two places");
  }
  for (const { CIDR, Gateway, Mask, NetworkCapacity } of networks) {
    const { first, last } = parseAddresses(CIDR);
    const size = last - first + 1n;
    assert.equal(first % size, 0n, "a block begins at a multiple of its size");
    assert.equal(parseAddress(Gateway).value, first + 1n);
    assert.equal(parseAddress(Mask).value, (1n << 32n) - size);
    assert.equal(CIDR.split("/")[1], NetworkCapacity);
  }
}

onSqlite(
  "addresses of public networks",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const order = (NetworkCapacity: unknown) =>
      harness.request("POST /publicnetwork", { Name: "sized", NetworkCapacity });

    test("a size is a prefix length or a number of addresses", async () => {
      const sizes: [unknown, string][] = [
        [undefined, "29"],
        [null, "29"],
        ["", "29"],
        [" 28 ", "28"],
        [29, "29"],
        ["/30", "30"],
        [30.0, "30"],
        [24, "24"],
        ["/24", "24"],
        [8, "29"],
        ["16", "28"],
        [32, "27"],
        [64, "26"],
        ["128", "25"],
        [256, "24"],
      ];
      const made: PublicNetwork[] = [];
      for (const [wanted, prefix] of sizes) {
        const network = (await order(wanted)).json as PublicNetwork;
        assert.equal(network.NetworkCapacity, prefix, String(wanted));
        made.push(network);
      }
      assertDisjoint(made, "10.64.0.0/16");
      for (const wrong of [0, 4, 7, 23, 31, 33, 512, "/8", "/256", "29/", "-29", "x", 28.5, "1e1", "//29", "٢٩"]) {
        const response = await order(wrong);
        assert.equal(response.code, "validation_failed", String(wrong));
        assert.match(response.text, /"\/NetworkCapacity","code":"value_not_allowed"/);
      }
      assert.match((await order([])).text, /type_mismatch/);
    });

    test("concurrent requests get disjoint blocks", async () => {
      const capacities = [30, 28, 29, 25, 30, 24, 27, 29, 26, 30, 28, 29];
      await Promise.all(capacities.map(order));
      const all = await harness.client.listPublicNetworks();
      assertDisjoint(all, "10.64.0.0/16");
      const edges = all.map(({ EdgeExternalIp }) => EdgeExternalIp);
      assert.ok(
        edges.every((edge) => within(edge, "10.64.255.0/24")),
        "edge addresses are adjacent",
      );
      const shared = await harness.brume.store.read
        .selectFrom("network")
        .select("edge")
        .where("kind", "=", "shared")
        .execute();
      assert.ok(
        shared.every(
          ({ edge }) => !edges.some((one) => parseAddress(one).value.toString(16).padStart(8, "0") === edge),
        ),
      );
    });

    test("servers get the lowest free address until the network is full", async () => {
      const { Id, Gateway } = await fixture.network({ NetworkCapacity: "29" });
      const addresses: string[] = [];
      for (let n = 0; n < 5; n++) addresses.push((await fixture.server(Id)).address);
      const base = Gateway.split(".").slice(0, 3).join(".");
      const gateway = Number(Gateway.split(".")[3]);
      assert.deepEqual(
        addresses,
        [1, 2, 3, 4, 5].map((n) => `${base}.${gateway + n}`),
      );
      await assert.rejects(fixture.server(Id), /Addresses in network \d+ \(\S+\): requested 1, free 0, limit 5/);
    });
  },
  { clock },
);

onSqlite(
  "a small pool",
  (harness) => {
    test("is exhausted in the end, and a released block is reserved for a minute", async () => {
      const fixture = createNetworkFixture(harness, clock);
      const order = (NetworkCapacity: string, options = {}) =>
        harness.client.createPublicNetwork({ body: { Name: "big", NetworkCapacity } }, options);
      const half = await order("25");
      const response = await harness.request("POST /publicnetwork", { Name: "big", NetworkCapacity: "25" });
      assert.deepEqual([response.code, response.headers.get("retry-after")], ["pool_exhausted", "60"]);
      assert.match(response.text, /\/25/);
      await refused(order("24"), "pool_exhausted");
      await refused(order("25", { dryRun: true }), "pool_exhausted");
      const rest = [half, await order("26"), await order("27")];
      assertDisjoint(rest, "10.64.0.0/24");
      await refused(order("26"), "pool_exhausted");
      await harness.client.deletePublicNetwork({ path: path(half) }, { wait: 60 });
      await refused(order("25"), "pool_exhausted");
      const small = await order("29");
      assert.ok(!within(small.EdgeExternalIp, half.CIDR) && small.EdgeExternalIp !== half.EdgeExternalIp);
      assert.ok(!within(small.Gateway, half.CIDR));
      await harness.brume.restart();
      await fixture.pass(50);
      await refused(order("25"), "pool_exhausted");
      await fixture.pass(11);
      const again = await order("25");
      assert.deepEqual([again.CIDR, again.EdgeExternalIp], [half.CIDR, half.EdgeExternalIp]);
      assert.ok(again.Id > small.Id, "ids are never used again");
    });
  },
  { clock, publicPool: "10.64.0.0/24" },
);

onSqlite(
  "networks with IPv6",
  (harness) => {
    const fixture = useNetworkFixture(harness, clock);
    const send = (id: number, from: number | null, ...[packet]: [ReturnType<typeof tcp>]) =>
      harness.brume.router.send(id, from, packet);

    describe("have a /64 each", () => {
      test("from which servers get addresses", async () => {
        const one = await fixture.network();
        const other = await fixture.network();
        for (const { CIDR6, Gateway6 } of [one, other]) {
          assert.match(CIDR6 ?? "", /^fd24:b:[0-9a-f:]*\/64$/);
          assert.ok(within(Gateway6 ?? "", CIDR6 ?? ""));
        }
        assert.notEqual(one.CIDR6, other.CIDR6);
        await fixture.server(one.Id);
        const [link] = (await fixture.read(one.Id)).LinkedServers;
        assert.ok(link && within(link.IP6, one.CIDR6 ?? "") && link.IP6 !== one.Gateway6);
        await harness.client.deletePublicNetwork({ path: path(other) }, { wait: 60 });
        assert.notEqual((await fixture.network()).CIDR6, other.CIDR6);
        await fixture.pass(61);
        assert.equal((await fixture.network()).CIDR6, other.CIDR6);
      });

      test("and rules for both families", async () => {
        const { Id, CIDR6 } = await fixture.network();
        const { port, address } = await fixture.server(Id);
        const [link] = (await fixture.read(Id)).LinkedServers;
        const inner = link?.IP6 ?? "";
        const far = "2001:db8::5";
        const rules = (...Rules: { Action: "Allow" | "Deny"; Source?: string; Destination?: string }[]) =>
          harness.client.configureFirewall({ path: { id: Id }, body: { Rules } });
        await rules({ Action: "Allow", Source: "external", Destination: "internal" });
        assert.deepEqual([send(Id, null, tcp(far, inner)), send(Id, null, tcp(outside, address))], [true, true]);
        assert.deepEqual([send(Id, port, tcp(inner, far)), send(Id, port, ping(address, outside))], [false, false]);
        const shown = await rules({ Action: "Allow", Source: "2001:0DB8::5/48, 198.51.100.0/24", Destination: inner });
        assert.equal(shown.Firewall.Rules[0]?.Source, "2001:db8::/48,198.51.100.0/24");
        assert.equal(shown.Firewall.Rules[0]?.Destination, inner);
        assert.deepEqual([send(Id, null, tcp(far, inner)), send(Id, null, tcp(outside, address))], [true, false]);
        const check = (Source: string, Destination: string) =>
          harness.client.checkFirewall({ path: { id: Id }, body: { Protocol: "Icmp", Source, Destination } });
        assert.deepEqual(
          [(await check(far, inner)).Verdict, (await check("2001:db9::1", inner)).Verdict],
          ["Allow", "Deny"],
        );
        assert.equal((await check(inner, (CIDR6 ?? "").replace("/64", "77"))).Verdict, "Allow");
        await refused(check(far, address), "validation_failed", { "/Destination": "fields_conflict" });
        await refused(rules({ Action: "Deny", Source: "2001:db8::/129" }), "validation_failed", {
          "/Rules/0/Source": "format_invalid",
        });
        await refused(rules({ Action: "Deny", Source: "2001:db8::1-198.51.100.1" }), "validation_failed", {
          "/Rules/0/Source": "format_invalid",
        });
      });
    });
  },
  { clock, ipv6: true },
);

let brume = { clock, ipv6: false };
onSqlite(
  "networks that are older than the IPv6 pool",
  (harness) => {
    test("get a /64 at the start that adds the pool, and keep it", async () => {
      const fixture = createNetworkFixture(harness, clock);
      const { id, one } = await fixture.networkWithServers();
      const inner = await harness.client.createNetwork({ body: { Name: "inner", CIDR: "10.77.0.0/24" } }, { wait: 60 });
      const before = await fixture.untilApplied(id);
      assert.deepEqual([before.CIDR6, before.LinkedServers[0]?.IP6], [null, ""]);
      await fixture.newEvents();

      brume.ipv6 = true;
      await harness.brume.restart();
      const after = await fixture.untilApplied(id);
      assert.match(after.CIDR6 ?? "", /^fd24:b:[0-9a-f:]*\/64$/);
      assert.equal(after.Generation, before.Generation + 1);
      const [link] = after.LinkedServers;
      assert.ok(link && within(link.IP6, after.CIDR6 ?? ""));
      assert.equal(harness.brume.router.send(id, null, ping("2001:db8::5", link.IP6)), true);
      assert.equal(harness.brume.router.send(id, one.port, ping(link.IP6, "2001:db8::5")), true);
      assert.deepEqual(
        (await fixture.newEvents()).map(({ Type, ResourceID }) => [Type, ResourceID]),
        [
          ["publicnetwork.changed", id],
          ["publicnetwork.applied", id],
        ],
      );
      const rows = await harness.brume.store.read.selectFrom("network").select(["id", "kind", "first6"]).execute();
      const lacking = rows.filter(({ first6 }) => first6 === null);
      assert.deepEqual(
        lacking.map((row) => row.id),
        [inner.ID],
      );
      assert.equal(new Set(rows.map(({ first6 }) => first6)).size, rows.length);

      await harness.brume.restart();
      const again = await fixture.untilApplied(id);
      assert.deepEqual([again.CIDR6, again.Generation], [after.CIDR6, after.Generation]);
      brume.ipv6 = false;
      await harness.brume.restart();
      assert.equal((await fixture.untilApplied(id)).CIDR6, after.CIDR6);
    });
  },
  async () => {
    brume = { clock, ipv6: false };
    return brume;
  },
);
