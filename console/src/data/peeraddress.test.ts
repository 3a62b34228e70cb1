/** The address that a new device gets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Tunnel } from "@brume/api/vpn.ts";
import { freePeerAddress } from "./peeraddress.ts";

test("a new device gets an address that is in no network of the tunnels", () => {
  const free = (CIDR: string, ...networks: string[]) =>
    freePeerAddress({ CIDR, Vpn: { Tunnels: networks.map((PeerNetwork) => ({ PeerNetwork }) as Tunnel) } });
  assert.equal(free("10.64.0.0/28"), "10.9.0.2/32");
  assert.equal(free("10.64.0.0/28", "10.9.0.2/32", "10.20.0.0/16, 10.9.0.3/32"), "10.9.0.4/32");
  assert.equal(free("10.9.0.0/28"), "10.9.0.16/32");
  assert.equal(free("10.64.0.0/28", "10.0.0.0/8"), "");
});
