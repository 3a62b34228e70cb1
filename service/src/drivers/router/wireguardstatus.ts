/**
 * What a WireGuard device says of a peer, as the status of a tunnel. WireGuard never says why a peer is silent, so the reason is a
 * list of what it may be.
 */
import type { TunnelStatus, WireguardTunnel } from "./port.ts";
import type { PeerState } from "./uapi.ts";

/** A session is renewed every two minutes; who is not heard of for three is gone. */
const aliveFor = 180_000;
/** The first handshake to a peer that was not there is repeated after five seconds. */
const patience = 15_000;

/** What is remembered of one tunnel: since when (ms) it is set up as it is. */
export interface Memory {
  readonly since: number;
  wasUp: boolean;
}

export const isAlive = (peer: PeerState | undefined, now: number): boolean =>
  peer !== undefined && peer.lastHandshake !== null && now - peer.lastHandshake <= aliveFor;

/** Of `host:port`. */
export function splitEndpoint(endpoint: string): { readonly host: string; readonly port: string } {
  const at = endpoint.lastIndexOf(":");
  return { host: endpoint.slice(0, at), port: endpoint.slice(at + 1) };
}

/** `peer` is the device's word on it, or a sentence that says why there is none. Brings `memory` up to it. */
export function statusOf(tunnel: WireguardTunnel, peer: PeerState | string, memory: Memory, now: number): TunnelStatus {
  const { id, endpoint } = tunnel;
  const base = {
    id,
    establishedAt: null,
    bytesIn: 0,
    bytesOut: 0,
    lastSeen: null,
    localSubnets: [],
    peerSubnets: [],
    peerAddress: endpoint === null ? "" : splitEndpoint(endpoint).host,
    proposal: "",
  };
  if (!tunnel.enabled) return { ...base, state: "disabled", reason: null };
  if (typeof peer === "string")
    return { ...base, state: "unknown", reason: { fault: "engine_unavailable", detail: peer } };
  const seen = { bytesIn: peer.received, bytesOut: peer.sent, lastSeen: peer.lastHandshake };
  const peerAddress = peer.endpoint === null ? base.peerAddress : splitEndpoint(peer.endpoint).host;
  if (isAlive(peer, now)) {
    memory.wasUp = true;
    const { localSubnets, peerSubnets } = tunnel;
    const proposal = "CHACHA20_POLY1305/CURVE25519";
    return { ...base, ...seen, state: "up", reason: null, localSubnets, peerSubnets, peerAddress, proposal };
  }
  // WireGuard does not say why: a wrong key, a closed port and a peer that is off are all silence.
  const detail =
    endpoint === null
      ? "The peer has not called, or with other keys than are set here."
      : `${endpoint} does not answer, or the keys set there and here differ.`;
  const waiting = peer.lastHandshake === null && (endpoint === null || now - memory.since < patience);
  const reason = waiting ? null : ({ fault: "peer_unreachable", detail } as const);
  return { ...base, ...seen, state: memory.wasUp ? "down" : "connecting", reason, peerAddress };
}
