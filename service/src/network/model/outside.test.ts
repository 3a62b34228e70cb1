import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAddresses } from "../../base/address.ts";
import type { NetworkRow } from "../table.ts";
import { combineOutside, findOutside, type OutsideSettings, peersOf, reachableAddress } from "./outside.ts";
import { pack, storedBlock } from "./plan.ts";
import type { TunnelSettings } from "./vpn/tunnel.ts";

const row = (cidr: string, edge: string): NetworkRow =>
  ({
    kind: "public",
    ...storedBlock(4, parseAddresses(cidr)),
    edge: pack(4, parseAddresses(edge).first),
  }) as NetworkRow;
const network = row("10.64.0.8/29", "10.64.255.2");
const settings: OutsideSettings = { nat: "always", publicAddress: null, pools: [parseAddresses("10.64.0.0/16")] };
const ipsec = (PeerEndpoint: string) => ({ Type: "IPsec", PeerEndpoint }) as TunnelSettings;
const wireguard = (PeerEndpoint: string) => ({ Type: "WireGuard", PeerEndpoint }) as TunnelSettings;
const tunnels = [ipsec("any"), ipsec("203.0.113.50"), ipsec("10.7.0.1"), ipsec("10.64.255.9"), wireguard("")];
/** The routes of a host with two uplinks. */
const sourceTo = async (peer: string | null) => (peer?.startsWith("10.") ? "10.7.0.254" : "198.51.100.7");
const find = async (change: Partial<OutsideSettings> = {}, of = network): Promise<string[]> => {
  const peers = peersOf(tunnels.map((tunnel) => ({ spec: JSON.stringify(tunnel) })));
  const outside = await findOutside(of, peers, { ...settings, ...change }, sourceTo);
  return tunnels.map((tunnel) => reachableAddress({ ...of, outside }, tunnel));
};

test("a peer reaches the edge at the host's address on the route to it", async () => {
  const [edge, machine] = ["10.64.255.2", "198.51.100.7"];
  assert.deepEqual(await find(), [machine, machine, "10.7.0.254", edge, machine]);
  assert.deepEqual(await find({ publicAddress: "192.0.2.9" }), [
    "192.0.2.9",
    "192.0.2.9",
    "192.0.2.9",
    edge,
    "192.0.2.9",
  ]);
  assert.deepEqual(await find({ nat: "outside-private" }), [machine, machine, edge, edge, machine]);
});

test("without NAT it is the edge's own address", async () => {
  assert.deepEqual(new Set(await find({ nat: "never" })), new Set(["10.64.255.2"]));
  assert.deepEqual(new Set(await find({}, row("198.19.0.8/29", "198.19.255.2"))), new Set(["198.19.255.2"]));
  assert.equal(await findOutside(network, [], settings, sourceTo), null);
});

test("without a route it is the edge's own address", async () => {
  for (const none of [async () => null, () => Promise.reject(new Error("silent"))]) {
    const outside = await findOutside(network, ["203.0.113.50"], settings, none);
    assert.equal(reachableAddress({ ...network, outside }, ipsec("203.0.113.50")), "10.64.255.2");
  }
});

test("known addresses of peers are combined as a look-up returns them", async () => {
  const find = (...peers: string[]) => findOutside(network, peers, settings, sourceTo);
  const texts = [await find("10.7.0.1"), await find("203.0.113.50")];
  const peers = ["203.0.113.50", "10.7.0.1", ""];
  assert.equal(combineOutside(peers, texts), await find(...peers));
  assert.equal(combineOutside(["192.0.2.1"], [null, texts[0] ?? null]), await find(""));
  assert.equal(combineOutside([], texts), null);
  assert.equal(combineOutside(peers, [null, null]), null);
  assert.equal(
    combineOutside(["10.7.0.1"], ['{"10.7.0.1":"192.0.2.1"}', texts[0] ?? null]),
    '{"":"198.51.100.7","10.7.0.1":"192.0.2.1"}',
  );
});
