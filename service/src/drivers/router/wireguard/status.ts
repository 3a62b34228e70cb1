/**
 * What a WireGuard device says of a peer, as the status of a tunnel. WireGuard never says why a peer is silent, so the reason is a
 * list of what it may be.
 */
import type { TunnelStatus, WireguardTunnel } from "../interface.ts";
import type { PeerState } from "./uapi.ts";

/** A session is renewed every two minutes; who is not heard of for three is gone. */
const aliveFor = 180_000;
/** The first handshake to a peer that was not there is repeated after five seconds. */
const patience = 15_000;

/** What is remembered of one tunnel: since when (ms of the steady clock) it is set up as it is. */
export interface PeerHistory {
  readonly since: number;
  wasUp: boolean;
}

/** A peer's last handshake. The device tells it by the clock of the machine, which may have been set since. */
export interface Handshake {
  /** As the device tells it: milliseconds since 1970; null: never. */
  readonly reported: number | null;
  /** When it was, and when the device was read last, by the steady clock. */
  readonly at: number;
  readonly read: number;
}

/**
 * What is known of a peer's handshake after the device was read at `steady`, when the clock of the machine said `now`. A handshake that is
 * new since the reading before was in between, whatever the clock says; without one before only the clock can say how old it is.
 */
export function noteHandshake(
  before: Handshake | undefined,
  reported: number | null,
  now: number,
  steady: number,
): Handshake {
  if (before !== undefined && before.reported === reported) return { ...before, read: steady };
  const unread = before === undefined ? Number.POSITIVE_INFINITY : steady - before.read;
  const age = Math.min(Math.max(now - (reported ?? now), 0), unread);
  return { reported, at: steady - age, read: steady };
}

export const isAlive = (handshake: Handshake | undefined, steady: number): boolean =>
  handshake !== undefined && handshake.reported !== null && steady - handshake.at <= aliveFor;

/** The date of the handshake, by the clock as it is now where that was set since. */
function dateOf({ reported, at }: Handshake, now: number, steady: number): number | null {
  const seen = now - (steady - at);
  // The device tells whole seconds.
  return reported === null || Math.abs(seen - reported) < 2000 ? reported : seen;
}

/** Of `host:port`. */
export function splitEndpoint(endpoint: string): { readonly host: string; readonly port: string } {
  const at = endpoint.lastIndexOf(":");
  return { host: endpoint.slice(0, at), port: endpoint.slice(at + 1) };
}

/** What the device says of a peer under its present key, and when its handshake was. */
export interface PeerReading {
  readonly peer: PeerState;
  readonly handshake: Handshake;
}

/**
 * `heard` is the device's word on the peer, or a sentence that says why there is none. Brings `memory` up to it. `now` is the time by the
 * clock of the machine, `steady` by the one that nothing sets.
 */
export function statusOf(
  tunnel: WireguardTunnel,
  reading: PeerReading | string,
  history: PeerHistory,
  now: number,
  steady: number,
): TunnelStatus {
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
  if (typeof reading === "string")
    return { ...base, state: "unknown", reason: { fault: "engine_unavailable", detail: reading } };
  const { peer, handshake } = reading;
  const seen = { bytesIn: peer.received, bytesOut: peer.sent, lastSeen: dateOf(handshake, now, steady) };
  const peerAddress = peer.endpoint === null ? base.peerAddress : splitEndpoint(peer.endpoint).host;
  if (isAlive(handshake, steady)) {
    history.wasUp = true;
    const { localSubnets, peerSubnets } = tunnel;
    const proposal = "CHACHA20_POLY1305/CURVE25519";
    return { ...base, ...seen, state: "up", reason: null, localSubnets, peerSubnets, peerAddress, proposal };
  }
  // WireGuard does not say why: a wrong key, a closed port and a peer that is off are all silence.
  const detail =
    endpoint === null
      ? "The peer has not called, or with other keys than are set here."
      : `${endpoint} does not answer, or the keys set there and here differ.`;
  const waiting = handshake.reported === null && (endpoint === null || steady - history.since < patience);
  const reason = waiting ? null : ({ fault: "peer_unreachable", detail } as const);
  return { ...base, ...seen, state: history.wasUp ? "down" : "connecting", reason, peerAddress };
}
