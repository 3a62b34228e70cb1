import assert from "node:assert/strict";
import { test } from "node:test";
import { describeMissing, describeNetworks, type Found } from "./startlines.ts";

const all: Found = {
  capabilities: { bandwidth: true, nat: true, dhcp: true, kernelEsp: true },
  hasIpsec: true,
  wireguard: "kernel",
  hasPrivateRoots: true,
  hasFilter: true,
  rights: "root",
};

test("a host with everything needs no command", () => {
  assert.deepEqual(describeNetworks(all), [
    "networks  real, with a firewall in each",
    "IPsec     tunnels work",
    "WireGuard tunnels work",
  ]);
});

test("each line of what is missing has its consequence and the command that brings it, and names no engine", () => {
  const capabilities = { bandwidth: false, nat: false, dhcp: false, kernelEsp: false };
  const cases: readonly Found[] = [
    { ...all, capabilities, hasIpsec: false, wireguard: null, hasFilter: false },
    { ...all, capabilities, wireguard: "userspace" },
  ];
  for (const found of cases) {
    const lines = describeNetworks(found).slice(1);
    assert.ok(lines.length >= 5);
    for (const line of lines) {
      assert.match(line, /Run as root: (?:modprobe|apt-get install) \S/);
      const [text = ""] = line.split("Run as root:");
      assert.doesNotMatch(text, /strongSwan|charon|dnsmasq|nftables|wireguard-go|\btc\b|\bESP\b|perl/);
    }
  }
  const [, ...rest] = describeNetworks({ ...all, hasPrivateRoots: false, hasFilter: null });
  assert.match(rest.join("\n"), /see the files of this host.*\n.*no filter of system calls: there is none/);
  for (const [rights, text] of [
    ["rights", /configure networks see the files of this host/],
    ["all", /configure networks have all rights of root/],
  ] as const)
    assert.match(describeNetworks({ ...all, rights }).join("\n"), text);
  assert.equal(
    describeMissing(["ip", "tc", "nft"]),
    "the packages iproute2, nftables are not installed. Run as root: apt-get install iproute2 nftables",
  );
});
