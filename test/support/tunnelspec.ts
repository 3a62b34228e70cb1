/** Specs and status of tunnels for tests, with fields that the test replaces. Networks are in `networkspec.ts`. */
import type { IpsecTunnel, TunnelStatus, WireguardTunnel } from "../../service/src/drivers/router/interface.ts";

/** Returns an IPsec tunnel between 10.24.1.0/24 behind 192.0.2.1 and 10.24.2.0/24 behind 192.0.2.2. */
export const ipsecTunnel = (spec: Partial<IpsecTunnel> = {}): IpsecTunnel => ({
  type: "ipsec",
  id: 7,
  enabled: true,
  mtu: 1400,
  localSubnets: ["10.24.1.0/24"],
  peerSubnets: ["10.24.2.0/24"],
  ikeVersion: 2,
  encryption: "aes256",
  digest: "sha256",
  dhGroup: 14,
  perfectForwardSecrecy: true,
  sharedKey: "Very-Secret-Key-0123456789-abcdef",
  localIdentity: "192.0.2.1",
  peer: "192.0.2.2",
  peerIdentity: "192.0.2.2",
  ...spec,
});

/** Returns a WireGuard tunnel between the same networks; its peer has the key of 32 bytes `1` and no endpoint. */
export const wireguardTunnel = (spec: Partial<WireguardTunnel> = {}): WireguardTunnel => ({
  type: "wireguard",
  id: 3,
  enabled: true,
  mtu: 1420,
  localSubnets: ["10.24.1.0/24"],
  peerSubnets: ["10.24.2.0/24"],
  peerPublicKey: Buffer.alloc(32, 1).toString("base64"),
  presharedKey: null,
  endpoint: null,
  keepAlive: 25,
  ...spec,
});

/** The ends of the tunnel in the examples of the API: a network of Brume at 10.64.255.2, and an office at 203.0.113.50. */
export const officeTunnel = {
  localSubnets: ["10.64.0.8/29"],
  localIdentity: "10.64.255.2",
  sharedKey: "Vw3kQ8zR1tYb6NcX2mHs7PdJ4gLf9aEu",
  peer: "203.0.113.50",
  peerIdentity: "203.0.113.50",
} as const satisfies Partial<IpsecTunnel>;

/** Returns the status of a tunnel that is up, as in the example of the API. */
export const tunnelUp = (id: number): TunnelStatus => ({
  id,
  state: "up",
  reason: null,
  establishedAt: Date.UTC(2026, 10, 20, 9, 20, 11, 7),
  bytesIn: 104_857,
  bytesOut: 98_112,
  lastSeen: Date.UTC(2026, 10, 20, 9, 20, 12, 450),
  localSubnets: ["10.64.0.8/29"],
  peerSubnets: ["10.0.0.0/24"],
  peerAddress: "203.0.113.50",
  proposal: "AES_CBC_256/HMAC_SHA2_256_128/MODP_2048",
});
