import assert from "node:assert/strict";
import { test } from "node:test";
import { ipsecTunnel, officeTunnel, wireguardTunnel } from "../../../../../test/support/tunnelspec.ts";
import type { NetworkSpec } from "../interface.ts";
import { forwardsOf, natText } from "./nat.ts";
import { readListening } from "./translation.ts";

const ends = { id: 1, mtu: 1400, localSubnets: ["10.64.0.8/29"], peerSubnets: ["10.0.0.0/24"] };
const called = ipsecTunnel({ ...officeTunnel, ...ends, sharedKey: "", peer: null, peerIdentity: "a.example" });
const wireguard = wireguardTunnel({ ...ends, peerPublicKey: "", endpoint: "203.0.113.50:51820" });
const spec = (change: Partial<NetworkSpec>): NetworkSpec => ({
  id: 7,
  generation: 1,
  kind: "public",
  v4: { cidr: "10.64.0.8/29", gateway: "10.64.0.9" },
  v6: null,
  edgeAddress: "10.64.255.2",
  nat: "always",
  mtu: 1500,
  bandwidth: null,
  firewall: { enabled: false, allow: false, rules: [] },
  tunnels: [],
  wireguard: { privateKey: "", listenPort: 51_823 },
  ports: [],
  dhcp: { enabled: false, router: null, dns: [] },
  dnsForwarders: [],
  closed: [],
  ...change,
});

test("ports are forwarded to an edge that peers contact, and to no other", () => {
  assert.deepEqual(forwardsOf(spec({})), []);
  assert.deepEqual(forwardsOf(spec({ tunnels: [called, wireguard] })), [500, 4500, 51_823]);
  assert.deepEqual(forwardsOf(spec({ tunnels: [{ ...called, peer: "203.0.113.50" }] })), []);
  assert.deepEqual(forwardsOf(spec({ tunnels: [{ ...wireguard, enabled: false }] })), []);
  assert.deepEqual(forwardsOf(spec({ tunnels: [called], nat: "never" })), []);
});

test("the first of two networks gets a port, and a port of a program stays with it", () => {
  const text = natText(spec({ tunnels: [called, wireguard] }), "x1y", [500, 4500]) ?? "";
  assert.match(
    text,
    /hook prerouting priority -93; policy accept;\n.* udp dport \{ 51823 \} dnat ip to 10\.64\.255\.2\n/,
  );
  assert.ok((natText(spec({ id: 8, tunnels: [called] }), "x1y") ?? "").includes("priority -92;"));
  assert.doesNotMatch(natText(spec({ tunnels: [called] }), "x1y", [500, 4500]) ?? "", /prerouting/);
});

test("a port is used by the program that listens on it", () => {
  const head = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
  const row = (local: string, remote: string) =>
    `  123: ${local} ${remote} 07 00000000:00000000 00:00000000 00000000     0\n`;
  const table = [
    row("00000000:01F4", "00000000:0000"),
    row("0100007F:1194", "00000000:0000"),
    row("0200000A:D431", "08080808:0035"),
    row("00000000000000000000000000000000:CA6C", "00000000000000000000000000000000:0000"),
  ];
  assert.deepEqual([...readListening(head + table.join(""))], [500, 51_820]);
});
