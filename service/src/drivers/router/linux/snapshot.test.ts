import assert from "node:assert/strict";
import { test } from "node:test";
import type { NetworkSpec } from "../interface.ts";
import { activeOf } from "../nft/swap.ts";
import { dnsmasqArguments, filterLeases, hostLines } from "./dhcp.ts";
import {
  addElements,
  countVerdicts,
  elementLines,
  markText,
  readMark,
  readSnapshot,
  snapshotLines,
} from "./snapshot.ts";

/** As iproute2 6.1 and nftables 1.0.6 print it, shortened. */
const output = `[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"link_type":"loopback","address":"00:00:00:00:00:00","ifalias":"brume 7 5","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}],"stats64":{"rx":{"bytes":0,"packets":0},"tx":{"bytes":0,"packets":0}}},{"ifindex":3,"ifname":"p12","flags":["BROADCAST","UP"],"mtu":1500,"master":"br0","link_type":"ether","address":"0e:71:74:c9:b9:95","linkinfo":{"info_kind":"veth","info_slave_kind":"bridge","info_slave_data":{"isolated":true}},"addr_info":[],"stats64":{"rx":{"bytes":90,"packets":1},"tx":{"bytes":42,"packets":2}}}]
[{"dst":"default","gateway":"169.254.1.1","dev":"up0","prefsrc":"10.64.255.2","flags":["onlink"]},{"dst":"10.64.0.8/29","dev":"br0","protocol":"kernel","flags":[]}]
[]
[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"options":{}},{"kind":"tbf","handle":"8002:","dev":"up0","root":true,"options":{"rate":12500000,"burst":19998,"lat":50000}}]
net.ipv4.ip_forward = 1
table inet edge1 {
	counter d_00aa {
		packets 0 bytes 0
	}

	counter r1 {
		packets 3 bytes 180
	}

	set s1 {
		type ipv4_addr
		flags interval
	}

	chain v4_1 {
		meta l4proto tcp ct original proto-dst 80 counter packets 2 bytes 120 goto ok comment "r2"
		meta l4proto udp ct original proto-dst 80 counter packets 1 bytes 60 goto ok comment "r2"
		counter packets 4 bytes 240 drop comment "r3"
	}

	chain forward {
		counter packets 7 bytes 80 drop
	}
}
table inet flows0 {
	counter crowded {
		packets 1 bytes 2
	}

	set whole {
		typeof ct id
		size 65535
		flags dynamic,timeout
	}
}
Cannot open network namespace "brume-x1y-8": No such file or directory
[{"ifname":"lo","flags":[],"link_type":"loopback"}]
`;

test("each namespace is parsed by the form of its lines, and a missing part shifts nothing", () => {
  const [one, two, ...more] = readSnapshot(output);
  assert.ok(one && two);
  assert.deepEqual(more, []);
  assert.deepEqual(readMark(one), { network: 7, generation: 5 });
  assert.deepEqual(readMark(two), { network: null, generation: 0 });
  assert.deepEqual(one.links.get("p12"), {
    name: "p12",
    kind: "veth",
    master: "br0",
    up: true,
    carrier: false,
    isolated: true,
    mtu: 1500,
    mac: "0e:71:74:c9:b9:95",
    alias: "",
    addresses: [],
    sent: { packets: 2, bytes: 42 },
    received: { packets: 1, bytes: 90 },
  });
  assert.deepEqual(one.links.get("lo")?.addresses, ["127.0.0.1/8"]);
  assert.deepEqual([...one.routes], ["default via 169.254.1.1 dev up0", "10.64.0.8/29 dev br0"]);
  assert.deepEqual([...one.rates], [["up0", 100]]);
  // The named counter is of an earlier release.
  assert.deepEqual(
    ["r1", "r2", "r3"].map((name) => one.counters.get("edge1")?.get(name)),
    [
      { packets: 3, bytes: 180 },
      { packets: 3, bytes: 180 },
      { packets: 4, bytes: 240 },
    ],
  );
  assert.deepEqual([activeOf(one, "edge"), activeOf(one, "lock")], [{ name: "edge1", digest: "00aa" }, null]);
  assert.deepEqual([...one.settings], [["net.ipv4.ip_forward", "1"]]);
  assert.match(one.rules, /^table inet edge1/);
  assert.equal(two.rules, "");
});

test("the mark is parsed as it was written", () => {
  const lo = { ...(readSnapshot(output)[0]?.links.get("lo") as object), alias: markText(71, 12) } as never;
  assert.deepEqual(readMark({ ...(readSnapshot(output)[0] as object), links: new Map([["lo", lo]]) } as never), {
    network: 71,
    generation: 12,
  });
});

test("only elements that packets do not add are listed, and counts of packets do not change the rules", () => {
  const rules = readSnapshot(output)[0]?.rules ?? "";
  assert.deepEqual(elementLines("x", rules), ["netns exec x nft -s list table inet edge1"]);
  const listed = `table inet edge1 {
	set s1 {
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/24 }
	}

	set seen {
		type ipv4_addr
		flags dynamic
		elements = { 10.0.0.9 }
	}
}
`;
  const complete = addElements(rules, listed);
  assert.match(complete, /elements = \{ 10\.0\.0\.0\/24 \}/);
  assert.match(complete, /^table inet flows0/m);
  assert.doesNotMatch(complete, /10\.0\.0\.9/);
  const later = output
    .replace("packets 3 bytes 180", "packets 4 bytes 240")
    .replace("packets 7 bytes", "packets 8 bytes");
  assert.equal(readSnapshot(later)[0]?.rules, rules);
  assert.deepEqual(readSnapshot(later)[0]?.counters.get("flows0")?.get("crowded"), { packets: 1, bytes: 2 });
});

test("a shallow observation reads less", () => {
  assert.equal(snapshotLines("x", false).length, 2);
  assert.ok(snapshotLines("x", true, ["a", "b"]).includes("netns exec x sysctl -e a b"));
});

test("a removed or added rule is detected, another spelling is ignored", () => {
  const ownTable =
    "ct state vmap { established : accept, invalid : drop }\nmeta l4proto 6 counter name r1 accept\nip daddr vmap { 1.1.1.1 : goto v4_1, }";
  const otherTable =
    'ip daddr vmap { 1.1.1.1 : goto v4_1 }\nct state vmap { invalid : drop, established : accept }\n\tmeta l4proto tcp counter name "r1" accept';
  assert.equal(countVerdicts(ownTable), countVerdicts(otherTable));
  assert.notEqual(countVerdicts(ownTable), countVerdicts(otherTable.replace(" accept", "")));
  assert.notEqual(countVerdicts(ownTable), countVerdicts(`${otherTable}\ndrop`));
});

const spec = {
  id: 7,
  v4: { cidr: "10.64.0.8/29", gateway: "10.64.0.9" },
  v6: null,
  edgeAddress: "10.64.255.2",
  mtu: 1400,
  ports: [
    { id: 38, mac: "02:42:00:00:00:20", addresses: ["fd24:1::a", "10.64.0.10"], name: "web-1" },
    { id: 39, mac: "02:42:00:00:00:21", addresses: ["10.64.0.11"], name: "no good, name" },
  ],
  dhcp: { enabled: true, router: "10.64.0.9", dns: ["9.9.9.9"] },
  dnsForwarders: [],
  closed: [],
} as unknown as NetworkSpec;

test("dnsmasq gets exactly the settings of the spec", () => {
  assert.deepEqual(
    dnsmasqArguments(spec, "/run/x/7")?.slice(-9),
    [
      "--dhcp-range=10.64.0.8,static,255.255.255.248,1h",
      "--dhcp-hostsfile=/run/x/7/ports",
      "--dhcp-leasefile=/run/x/7/leases",
      "--dhcp-lease-max=8",
      "--dhcp-option=option:router,10.64.0.9",
      "--dhcp-option=option:dns-server,9.9.9.9",
      "--dhcp-option=option:mtu,1400",
      "--dhcp-authoritative",
    ].toSpliced(0, 0, "--port=0"),
  );
  const forwarding = dnsmasqArguments({ ...spec, dnsForwarders: ["1.1.1.1", "8.8.8.8"] }, "/run/x/7") ?? [];
  for (const argument of [
    "--port=53",
    "--dns-forward-max=2000",
    "--server=1.1.1.1",
    "--server=8.8.8.8",
    "--dhcp-option=option:dns-server,10.64.0.9",
  ])
    assert.ok(forwarding.includes(argument), argument);
  assert.ok(
    dnsmasqArguments({ ...spec, dhcp: { ...spec.dhcp, router: null } }, "/x")?.includes("--dhcp-option=option:router"),
  );
  assert.ok(
    dnsmasqArguments({ ...spec, v4: { cidr: "10.63.0.0/16", gateway: null } }, "/x")?.includes(
      "--dhcp-lease-max=65536",
    ),
  );
  assert.equal(dnsmasqArguments({ ...spec, dhcp: { ...spec.dhcp, enabled: false } }, "/x"), null);
  assert.throws(() => dnsmasqArguments({ ...spec, dnsForwarders: ["1.1.1.1#53"] }, "/x"));
});

test("each port has its lease, and only a plain name goes with it", () => {
  assert.deepEqual(hostLines(spec), [
    "02:42:00:00:00:20,10.64.0.10,web-1,infinite",
    "02:42:00:00:00:21,10.64.0.11,infinite",
  ]);
});

test("a lease of a port that is gone, or of its address elsewhere, is not kept", () => {
  const leaseLine = "0 02:42:00:00:00:20 10.64.0.10 web-1 01:02:42:00:00:00:20\n";
  const gone = "0 02:42:00:00:00:1f 10.64.0.11 * *\n";
  const moved = "0 02:42:00:00:00:21 10.64.0.1 * *\n";
  assert.equal(filterLeases(gone + leaseLine + moved, hostLines(spec)), leaseLine);
  assert.equal(filterLeases(leaseLine, hostLines(spec)), leaseLine);
  assert.equal(filterLeases("", []), "");
});
