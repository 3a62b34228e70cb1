/**
 * Derives the status of a tunnel from the state of its WireGuard peer. WireGuard reports no reason when a peer does not respond, so the
 * reason lists the possible ones.
 */
import type { TunnelStatus, WireguardTunnel } from "../interface.ts";
import type { PeerState } from "./uapi.ts";

/** Milliseconds. A session is renewed every two minutes; after three minutes without handshake the peer is gone. */
const aliveFor = 180_000;
/** Milliseconds before a reason is reported. The first handshake to an absent peer is repeated after five seconds. */
const patience = 15_000;

/** What is kept about one tunnel: since when (ms of the steady clock) it has its present configuration, and whether it was up. */
export interface PeerHistory {
  readonly since: number;
  wasUp: boolean;
}

/** The last handshake of a peer. The device reports it by the clock of the host, which may have been set since. */
export interface Handshake {
  /** Milliseconds since 1970 as the device reports it; null: never. */
  readonly reported: number | null;
  /** Time of the handshake, and of the last reading of the device, by the steady clock. */
  readonly at: number;
  readonly read: number;
}

/**
 * Updates the record of a handshake after the device was read at `steady`, at time `now` of the host's clock. A new handshake was after the
 * last reading, also if the clock was set; without a last reading only the clock gives its age.
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

/** Returns whether the session is alive: its handshake is at most three minutes old. */
export const isAlive = (handshake: Handshake | undefined, steady: number): boolean =>
  handshake !== undefined && handshake.reported !== null && steady - handshake.at <= aliveFor;

/** Returns the date of the handshake, by the present clock if the clock was set since. */
function dateOf({ reported, at }: Handshake, now: number, steady: number): number | null {
  const seen = now - (steady - at);
  // The device reports whole seconds.
  return reported === null || Math.abs(seen - reported) < 2000 ? reported : seen;
}

/** Splits `host:port`. */
export function splitEndpoint(endpoint: string): { readonly host: string; readonly port: string } {
  const at = endpoint.lastIndexOf(":");
  return { host: endpoint.slice(0, at), port: endpoint.slice(at + 1) };
}

/** What the device reports about a peer under its present key, and its handshake. */
export interface PeerReading {
  readonly peer: PeerState;
  readonly handshake: Handshake;
}

/**
 * Returns the status of a tunnel and updates `history`. `reading` is the state of the peer, or a sentence with the reason why there is
 * none. `now` is the time of the host's clock, `steady` of the monotonic clock.
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
  // WireGuard reports no reason: a wrong key, a closed port and an absent peer look the same.
  const detail =
    endpoint === null
      ? "No handshake from the peer yet: it has not connected, or it uses other keys than configured here."
      : `No reply from ${endpoint}: the peer is not reachable, or the keys configured there and here differ.`;
  const waiting = handshake.reported === null && (endpoint === null || steady - history.since < patience);
  const reason = waiting ? null : ({ fault: "peer_unreachable", detail } as const);
  return { ...base, ...seen, state: history.wasUp ? "down" : "connecting", reason, peerAddress };
}
