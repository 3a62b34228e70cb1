/** The peer configuration: which formats each type of tunnel has, and the QR code. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { peerDialectNames, peerDialects, TunnelPeer } from "@brume/api/vpn.ts";
import { Check } from "typebox/value";
import { ipsecTunnel, officeTunnel, wireguardTunnel } from "../../../../../test/support/tunnelspec.ts";
import { ipsecDialects, wireguardDialects } from "../../../drivers/router/model/peerconfig.ts";
import { describePeer, renderConfig } from "./peer.ts";

const ends = { id: 3, mtu: 1400, localSubnets: ["10.64.0.8/29"], peerSubnets: ["10.0.0.0/24"] };
const ipsec = ipsecTunnel({ ...officeTunnel, ...ends });
const wireguard = wireguardTunnel(ends);
const near = {
  address: "10.64.255.2",
  wireguard: { publicKey: Buffer.alloc(32, 2).toString("base64"), listenPort: 51_820 },
};

test("the API lists exactly the supported formats", () => {
  assert.deepEqual(peerDialects.IPsec, Object.keys(ipsecDialects));
  assert.deepEqual(peerDialects.WireGuard, Object.keys(wireguardDialects));
  assert.deepEqual(new Set([...peerDialects.IPsec, ...peerDialects.WireGuard]), new Set(peerDialectNames));
});

test("each tunnel has a configuration in each format of its type, and rejects the others", () => {
  for (const [spec, dialects] of [
    [ipsec, peerDialects.IPsec],
    [wireguard, peerDialects.WireGuard],
  ] as const)
    for (const peer of peerDialectNames) {
      if (!(dialects as readonly string[]).includes(peer)) {
        assert.throws(
          () => describePeer(spec, near, peer),
          (error: { errors: object[] }) => {
            assert.partialDeepStrictEqual(error.errors, [{ pointer: "?peer", code: "query_invalid" }]);
            return true;
          },
        );
        assert.equal(renderConfig(spec, near, peer), renderConfig(spec, near));
        continue;
      }
      const shown = describePeer(spec, near, peer);
      assert.ok(Check(TunnelPeer, shown));
      assert.deepEqual([shown.Peer, shown.Config], [peer, renderConfig(spec, near, peer)]);
      assert.equal(shown.Qr !== "", peer === "wg-quick");
    }
  assert.equal(describePeer(ipsec, near).Peer, "strongswan");
  assert.equal(describePeer(wireguard, near).Peer, "wg-quick");
});

test("the largest configuration fits into a QR code", () => {
  const blocks = Array.from({ length: 16 }, (_, i) => `100.100.${100 + i}.100/32`);
  const { Qr, Config } = describePeer({ ...wireguard, localSubnets: blocks, peerSubnets: blocks }, near);
  assert.match(Qr, /^<svg [^>]*viewBox=/);
  assert.ok(Config.includes(blocks.join(", ")));
});
