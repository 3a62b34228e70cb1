/** The map of networks: what it contains, and that no two nodes overlap. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import type { Server } from "@brume/api/server.ts";
import { layOut, mapOf, rateOfNetwork, strengthOf } from "./networkmap.ts";

const links = (...servers: number[]) => servers.map((ServerID) => ({ ServerID, IP: `10.0.0.${ServerID}` }));
const publicNetwork = (Id: number, servers: number[], tunnels: number[] = []) =>
  ({
    Id,
    Name: `public ${Id}`,
    LinkedServers: links(...servers),
    Vpn: { Tunnels: tunnels.map((id) => ({ Id: id })) },
  }) as unknown as PublicNetwork;
const privateNetwork = (ID: number, servers: number[]) =>
  ({ ID, Name: `private ${ID}`, LinkedServers: links(...servers) }) as unknown as Network;
const server = (ID: number, ...shared: number[]) =>
  ({
    ID,
    LinkedNetworks: shared.map((NetworkID) => ({ NetworkType: "PublicShared", NetworkID, NetworkName: "shared" })),
  }) as unknown as Server;

const many = Array.from({ length: 20 }, (_, index) => index + 10);
const { networks: map } = mapOf(
  [publicNetwork(1, [1, 2], [5, 6, 7]), publicNetwork(2, many)],
  [privateNetwork(3, [2, 3]), privateNetwork(4, [])],
  [server(1), server(2), server(3), server(4, 9)],
);

test("a server is shown once, at its first network, and linked to all of its networks", () => {
  assert.deepEqual(
    map.map(({ id, kind, servers, more }) => [id, kind, servers.map((one) => one.id).slice(0, 2), more]),
    [
      [1, "public", [1, 2], 0],
      [2, "public", [10, 11], 8],
      [9, "shared", [4], 0],
      [3, "private", [3], 0],
      [4, "private", [], 0],
    ],
  );
  const { edges } = layOut(map, 1000);
  const of = (id: string) => edges.filter(({ to }) => to === id).map(({ from }) => from);
  assert.deepEqual(of("server-2"), ["network-1", "network-3"]);
  assert.deepEqual(of("network-3"), []);
  assert.deepEqual(of("network-9"), ["outside"]);
  assert.deepEqual(of("network-1"), ["tunnel-5", "tunnel-6", "tunnel-7", "outside"]);
});

test("no two nodes overlap, and all are inside, at any width", () => {
  for (const width of [600, 1000, 1600]) {
    const { boxes, height } = layOut(map, width);
    const all = [...boxes.values()];
    for (const [index, one] of all.entries()) {
      assert.ok(one.x >= 0 && one.x + one.width <= width && one.y >= 0 && one.y + one.height <= height);
      for (const other of all.slice(index + 1))
        assert.ok(
          one.x + one.width <= other.x ||
            other.x + other.width <= one.x ||
            one.y + one.height <= other.y ||
            other.y + other.height <= one.y,
        );
    }
  }
});

test("the traffic of a network is that of the servers that have no other network", () => {
  const rates = new Map([
    [1, { received: 1000, sent: 500 }],
    [2, { received: 9000, sent: 9000 }],
  ]);
  const [first, second] = map;
  assert.ok(first && second);
  assert.deepEqual(rateOfNetwork(first, rates), { received: 1000, sent: 500 });
  assert.equal(rateOfNetwork(second, rates), undefined);
  // Not all servers are shown, or the traffic of one is not known.
  assert.equal(rateOfNetwork({ ...first, more: 1 }, rates), undefined);
  const [one] = first.servers;
  assert.ok(one);
  const unknown = { ...one, id: 8 };
  assert.equal(rateOfNetwork({ ...first, servers: [one, unknown] }, rates), undefined);
  const off = { ...unknown, server: { ...server(8), IsPowerOn: false } };
  assert.deepEqual(rateOfNetwork({ ...first, servers: [one, off] }, rates), { received: 1000, sent: 500 });
  assert.deepEqual([undefined, ...rates.values()].map(strengthOf), [0, 1, 2]);
});

test("networks that are not shown are counted", () => {
  const privates = Array.from({ length: 50 }, (_, index) => privateNetwork(index + 10, []));
  const { networks, more } = mapOf([publicNetwork(1, [])], privates, []);
  assert.deepEqual([networks.length, more], [40, 11]);
});
