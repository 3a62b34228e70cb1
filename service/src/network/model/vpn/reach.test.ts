import assert from "node:assert/strict";
import { test } from "node:test";
import { explainReach, type Reach } from "./reach.ts";
import type { TunnelSettings } from "./tunnel.ts";

const reach: Reach = {
  edge: "10.64.255.2",
  address: "198.51.100.7",
  port: 51_821,
  leadsTo: "edge",
  isNeighbour: false,
};
const ipsec = (PeerEndpoint: string) => ({ Type: "IPsec", PeerEndpoint }) as TunnelSettings;
const wireguard = (PeerEndpoint: string) => ({ Type: "WireGuard", PeerEndpoint }) as TunnelSettings;
const causeOf = (tunnel: TunnelSettings, change: Partial<Reach> = {}) => explainReach(tunnel, { ...reach, ...change });

test("explains where a peer reaches an edge behind NAT", () => {
  const cause = causeOf(ipsec("203.0.113.50"));
  assert.equal(cause?.isCertain, false);
  assert.match(cause.detail, /reaches it at 198\.51\.100\.7 \(UDP 500 and 4500\), not at 10\.64\.255\.2/);
  assert.match(causeOf(wireguard("203.0.113.50:51820"))?.detail ?? "", /198\.51\.100\.7 \(UDP 51821\)/);
});

test("ports that lead elsewhere are certain to fail only if the peer initiates", () => {
  for (const leadsTo of ["another edge", "a program"] as const) {
    for (const tunnel of [ipsec("any"), wireguard("")]) assert.equal(causeOf(tunnel, { leadsTo })?.isCertain, true);
    for (const tunnel of [ipsec("203.0.113.50"), wireguard("203.0.113.50:51820")])
      assert.equal(causeOf(tunnel, { leadsTo })?.isCertain, false);
  }
  assert.match(causeOf(ipsec("any"), { leadsTo: "another edge" })?.detail ?? "", /lead to another network/);
  assert.match(causeOf(ipsec("any"), { leadsTo: "a program" })?.detail ?? "", /another program of the host/);
});

test("a host behind another router is explained if the peer initiates", () => {
  assert.match(causeOf(ipsec("any"), { address: "192.168.1.5" })?.detail ?? "", /BRUME_PUBLIC_ADDRESS/);
  assert.doesNotMatch(causeOf(ipsec("any"))?.detail ?? "", /BRUME_PUBLIC_ADDRESS/);
});

test("without NAT only a private edge is explained, and nothing between two networks of one installation", () => {
  assert.match(causeOf(ipsec("any"), { address: reach.edge })?.detail ?? "", /needs a route to it/);
  assert.equal(causeOf(ipsec("any"), { edge: "198.19.255.2", address: "198.19.255.2" }), null);
  assert.equal(causeOf(ipsec("10.64.255.9"), { address: reach.edge, isNeighbour: true }), null);
});
