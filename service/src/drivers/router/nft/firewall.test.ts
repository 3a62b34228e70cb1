import assert from "node:assert/strict";
import { test } from "node:test";
import { rule } from "../../../../../test/support/networkspec.ts";
import type { NetworkSpec } from "../interface.ts";
import { guardText } from "../linux/guard.ts";
import { lockText } from "../linux/sourcelock.ts";
import { flowsText } from "./connectionlimits.ts";
import { digestOf, firewallText, firstText } from "./firewall.ts";
import { natRemoval, natText } from "./nat.ts";

const plain = (text: string): string => text.replace(/d_[0-9a-f]{16}/g, "d_DIGEST").replace(/0x[0-9a-f]{8}\b/g, "MARK");
const at = (...ports: number[]) => ports.map((port) => ({ first: port, last: port }));

const spec: NetworkSpec = {
  id: 7,
  generation: 1,
  kind: "public",
  v4: { cidr: "10.64.0.8/29", gateway: "10.64.0.9" },
  v6: null,
  edgeAddress: "10.64.255.2",
  nat: "always",
  mtu: 1500,
  bandwidth: 100,
  firewall: { enabled: true, allow: false, rules: [] },
  tunnels: [],
  wireguard: null,
  ports: [{ id: 38, device: "t38", mac: "02:42:00:00:00:20", addresses: ["10.64.0.10"], bandwidth: null, name: "a" }],
  dhcp: { enabled: true, router: "10.64.0.9", dns: [] },
  dnsForwarders: [],
  closed: [],
};

test("a few rules are tried one by one", () => {
  const text = firewallText(
    {
      enabled: true,
      allow: false,
      rules: [
        rule({
          protocol: "tcp",
          source: "external",
          destination: ["10.64.0.10"],
          destinationPort: [
            { first: 80, last: 80 },
            { first: 8000, last: 8100 },
          ],
        }),
        rule({ allow: false, protocol: "tcp-udp", sourcePort: at(1, 3, 5, 7, 9) }),
        rule({ protocol: "icmp", source: ["198.51.100.0/24", "198.51.101.5-198.51.101.9"] }),
        rule({ source: "internal" }),
      ],
    },
    ["10.64.0.8/29"],
  );
  assert.equal(
    plain(text),
    `add table inet edge
delete table inet edge
table inet edge {
  counter d_DIGEST { }
  counter rest { }
  chain ok {
    ct mark set MARK accept
  }
  set s1 { type inet_service; flags interval; elements = { 1, 3, 5, 7, 9 }; }
  chain v4 {
    meta l4proto 6 ct original ip daddr 10.64.0.10 ct original ip saddr != 10.64.0.8/29 ct original proto-dst 80 counter goto ok comment "r1"
    meta l4proto 6 ct original ip daddr 10.64.0.10 ct original ip saddr != 10.64.0.8/29 ct original proto-dst 8000-8100 counter goto ok comment "r1"
    meta l4proto 6 ct original proto-src @s1 counter drop comment "r2"
    meta l4proto 17 ct original proto-src @s1 counter drop comment "r2"
    meta l4proto 1 ct original ip saddr 198.51.100.0/24 counter goto ok comment "r3"
    meta l4proto 1 ct original ip saddr 198.51.101.5-198.51.101.9 counter goto ok comment "r3"
    ct original ip saddr 10.64.0.8/29 counter goto ok comment "r4"
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname "br0" oifname "br0" accept
    ct state invalid drop
    ct state established,related ct mark MARK accept
    ct state related drop
    meta nfproto ipv4 jump v4
    counter name rest drop
  }
}
`,
  );
});

test("many rules are looked up, and branches that end alike are one chain", () => {
  const many = Array.from({ length: 8 }, (_, index) =>
    rule({ protocol: "tcp", destination: [`10.64.0.${8 + index}`] }),
  );
  const text = firewallText({ enabled: true, allow: true, rules: [...many, rule({ protocol: "udp", allow: false })] }, [
    "10.64.0.8/29",
  ]);
  const lines = plain(text).split("\n");
  const chains = lines.slice(
    lines.findIndex((line) => line.includes("chain v4_1 ")),
    lines.findIndex((line) => line.includes("chain forward")),
  );
  assert.equal(
    chains.join("\n"),
    `${many.map((_, index) => `  chain v4_${index + 1} {\n    counter goto ok comment "r${index + 1}"\n  }`).join("\n")}
  chain v4_9 {
    ct original ip daddr vmap {
${many.map((_, index) => `      10.64.0.${8 + index} : goto v4_${index + 1},`).join("\n")}
    }
  }
  chain v4_10 {
    counter drop comment "r9"
  }
  chain v4 {
    meta l4proto vmap {
      6 : goto v4_9,
      17 : goto v4_10,
    }
  }`,
  );
});

test("words match both families, a list only its own", () => {
  const text = firewallText(
    { enabled: true, allow: false, rules: [rule({ source: "internal" }), rule({ destination: ["fd24:1::a"] })] },
    ["10.64.0.8/29", "fd24:1::/64"],
  );
  const [, four = "", six = ""] = /chain v4 \{\n([^}]*)\}\n  chain v6 \{\n([^}]*)\}/.exec(text) ?? [];
  assert.equal(four.trim(), 'ct original ip saddr 10.64.0.8/29 counter goto ok comment "r1"');
  assert.deepEqual(six.trim().split(/\n\s*/), [
    'ct original ip6 saddr fd24:1::/64 counter goto ok comment "r1"',
    'ct original ip6 daddr fd24:1::a counter goto ok comment "r2"',
  ]);
});

test("a disabled firewall tracks connections and allows everything", () => {
  const text = plain(firewallText({ enabled: false, allow: false, rules: [rule({})] }, ["10.64.0.8/29"]));
  assert.match(text, /policy accept;\n    ct state established accept\n  \}\n\}\n$/);
  assert.doesNotMatch(text, /drop|"r1"/);
});

test("an invalid address or port is never written to a text", () => {
  for (const wrong of [
    rule({ source: ["10.0.0.1 accept"] }),
    rule({ destination: ["$(id)"] }),
    rule({ protocol: "tcp", destinationPort: [{ first: 1, last: 70_000 }] }),
    rule({ protocol: "udp", sourcePort: [{ first: 1.5, last: 2 }] }),
  ])
    assert.throws(() => firewallText({ enabled: true, allow: false, rules: [wrong] }, ["10.64.0.8/29"]));
  assert.throws(() => lockText({ ...spec, ports: spec.ports.map((port) => ({ ...port, mac: "x" })) }));
  assert.throws(() => lockText({ ...spec, ports: spec.ports.map((port) => ({ ...port, addresses: ["x"] })) }));
});

test("no chain has the policy drop, which would apply while its rules are replaced", () => {
  const flows = flowsText({ network: 160, server: 64, packets: 100 }, "10.64.0.8/29", true);
  const texts = [firewallText(spec.firewall, ["10.64.0.8/29"]), guardText(spec, false), lockText(spec), flows].join("");
  assert.equal(texts.match(/policy accept;/g)?.length, 10);
  assert.doesNotMatch(texts, /policy drop/);
});

test("a server has one number in both blocks of any size, and the text of limits does not grow with it", () => {
  const limits = { network: 160, server: 64, packets: 100 };
  const [small, large] = ["10.64.0.8/29", "10.63.0.0/16"].map((cidr) => flowsText(limits, cidr, true));
  const masks = (text = "") => [...text.matchAll(/@nh,(\d+),32 & (0x\w+)/g)].map(([, bit, mask]) => `${bit} ${mask}`);
  assert.deepEqual(masks(small), ["96 0x00000007", "128 0x00000007", "160 0x00000007", "288 0x00000007"]);
  assert.deepEqual(masks(large), ["96 0x0000ffff", "128 0x0000ffff", "160 0x0000ffff", "288 0x0000ffff"]);
  assert.equal(small?.length, large?.length);
  assert.doesNotMatch(flowsText(limits, "10.64.0.8/29", false), /ipv6|ip6/);
  // The lists that the kernel walks are short, and together have the server's limit.
  assert.match(flowsText({ ...limits, server: 16_384 }, "10.63.0.0/16", true), /random mod 256 ct count over 64 /);
});

test("the digest depends on the rules, and a first text deletes nothing", () => {
  const text = (allow: boolean) => firewallText({ enabled: true, allow, rules: [] }, ["10.64.0.8/29"]);
  assert.match(digestOf(text(true)), /^[0-9a-f]{16}$/);
  assert.equal(digestOf(text(true)), digestOf(text(true)));
  assert.notEqual(digestOf(text(true)), digestOf(text(false)));
  assert.equal(text(true), `add table inet edge\ndelete table inet edge\n${firstText(text(true))}`);
});

test("firewalls have equal digests if their texts are equal", () => {
  const rule = {
    allow: true,
    protocol: "tcp" as const,
    source: "any" as const,
    sourcePort: "any" as const,
    destination: "any" as const,
    destinationPort: [{ first: 80, last: 80 }],
  };
  const others = [
    { ...rule, allow: false },
    { ...rule, source: ["192.0.2.1"] },
    { ...rule, protocol: "udp" as const },
  ];
  const lists = [[], [rule], [rule, rule], ...others.map((other) => [rule, other])];
  const texts = lists.flatMap((rules) =>
    [true, false].flatMap((allow) =>
      [["10.64.0.8/29"], ["10.64.0.8/29", "fd00::/64"]].flatMap((internal) =>
        [true, false].map((enabled) => firewallText({ enabled, allow, rules }, internal)),
      ),
    ),
  );
  const bodyOf = (text: string) => text.replace(/^ {2}counter d_.*\n/m, "");
  assert.equal(new Set(texts.map(digestOf)).size, new Set(texts.map(bodyOf)).size);
});

test("the guard of an edge with tunnels", () => {
  const tunnel = {
    id: 1,
    type: "wireguard",
    enabled: true,
    mtu: 1400,
    localSubnets: ["10.64.0.8/29"],
    peerSubnets: ["10.0.0.0/24", "10.0.1.0/24"],
    peerPublicKey: "",
    presharedKey: null,
    endpoint: null,
    keepAlive: 0,
  } as const;
  const tunnelled: NetworkSpec = {
    ...spec,
    tunnels: [tunnel],
    wireguard: { privateKey: "", listenPort: 51_820 },
    dnsForwarders: ["9.9.9.9"],
  };
  assert.equal(
    plain(guardText(tunnelled, false)),
    `add table inet guard
delete table inet guard
table inet guard {
  counter d_DIGEST { }
  set peers { type ipv4_addr; flags interval; elements = { 10.0.0.0/23 }; }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname "lo" accept
    ct state invalid drop
    ct state established,related accept
    meta l4proto icmp accept
    meta l4proto ipv6-icmp accept
    iifname "br0" udp dport 67 accept
    iifname "br0" udp dport 53 accept
    iifname "br0" tcp dport 53 accept
    iifname "up0" udp dport 51820 accept
    drop
  }
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    iifname != "br0" oifname != "br0" drop
    meta nfproto ipv6 drop
    iifname "up0" ip saddr 10.64.0.8/29 drop
    iifname "up0" ip saddr @peers drop
    oifname "up0" ip daddr @peers drop
    tcp flags syn tcp option maxseg size set rt mtu
  }
  set servers4 { type ipv4_addr; elements = { 10.64.0.10 }; }
  set servers6 { type ipv6_addr; }
  chain there {
    type filter hook forward priority filter + 10; policy accept;
    oifname "br0" ip daddr @servers4 accept
    oifname "br0" ip6 daddr @servers6 accept
    oifname "br0" drop
  }
  chain output {
    type filter hook output priority filter; policy accept;
    oifname "up0" ip saddr 10.64.0.8/29 ip daddr @peers drop
  }
}
`,
  );
  assert.match(guardText(tunnelled, true), /oifname "up0" ip daddr @peers rt ipsec missing drop/);
  assert.doesNotMatch(guardText({ ...tunnelled, tunnels: [{ ...tunnel, enabled: false }] }, false), /peers/);
});

test("the guard of a private network forwards nothing", () => {
  const text = guardText({ ...spec, kind: "private", edgeAddress: null }, false);
  assert.match(text, /filter - 10; policy accept;\n    drop\n/);
  assert.doesNotMatch(text, /icmp/);
});

test("the lock knows each port by its name in base 36", () => {
  const text = lockText({
    ...spec,
    v6: { cidr: "fd24:1::/64", gateway: "fd24:1::1" },
    ports: spec.ports.map((port) => ({ ...port, addresses: ["10.64.0.10", "fd24:1::a"] })),
  });
  assert.match(text, /set l2 \{ type ifname \. ether_addr; elements = \{ "p12" \. 02:42:00:00:00:20 \}; \}/);
  assert.match(text, /set v4 \{ .* elements = \{ "p12" \. 02:42:00:00:00:20 \. 10\.64\.0\.10 \}; \}/);
  assert.match(text, /@th,64,128 0xfd24000100000000000000000000000a return/);
  assert.match(text, /map by_port \{ type ifname : verdict; elements = \{ "p12" : goto ap12 \}; \}/);
  assert.match(lockText({ ...spec, ports: [] }), /set l2 \{ type ifname \. ether_addr; \}/);
});

test("translation is done by the host, and only if it is configured", () => {
  assert.equal(
    plain(natText(spec, "x1y") ?? ""),
    `add table inet brume_x1y_7
delete table inet brume_x1y_7
table inet brume_x1y_7 {
  counter d_DIGEST { }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr { 10.64.0.8/29, 10.64.255.2 } oifname != { "lo", "bx1yu*" } masquerade
  }
}
`,
  );
  assert.equal(natText({ ...spec, nat: "never" }, "x1y"), null);
  assert.match(
    natText({ ...spec, nat: "outside-private" }, "x1y") ?? "",
    /10\.64\.255\.2 \} ip daddr != \{ 10\.0\.0\.0\/8, .* 192\.168\.0\.0\/16 \} oifname != /,
  );
  assert.equal(natRemoval("x1y", 7), "add table inet brume_x1y_7\ndelete table inet brume_x1y_7\n");
});
