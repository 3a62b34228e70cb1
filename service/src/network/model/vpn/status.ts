/** Converts the status of a tunnel from the router driver into the form of the API (docs/spec.md#vpn-tunnel). */
import { formatDate } from "@brume/api/common.ts";
import type { TunnelStatus } from "@brume/api/vpn.ts";
import { showWorkError, taskErrors, type WorkError } from "@brume/api/work.ts";
import type { TunnelStatus as EngineStatus, TunnelFault } from "../../../drivers/router/interface.ts";
import { explainReach, type Reach } from "./reach.ts";
import { isKeyless, type StoredTunnel, type TunnelSettings } from "./tunnel.ts";

const states = {
  up: "Up",
  connecting: "Connecting",
  down: "Down",
  disabled: "Connecting",
  unknown: "Unknown",
} as const;

/** Returns an error without a step: no flow establishes a tunnel. */
const explain = (code: TunnelFault, detail: string): WorkError =>
  showWorkError({ code, title: taskErrors[code], detail, step: null });

/** Returns the configured address of the peer, without port; "" if the peer initiates. */
function peerOf({ Type, PeerEndpoint }: TunnelSettings): string {
  if (Type === "IPsec") return PeerEndpoint === "any" ? "" : PeerEndpoint;
  return PeerEndpoint.replace(/:\d+$/, "");
}

/** `silent`: the router driver did not respond in time. `absent`: it responded, and does not have the tunnel (yet). */
export type ObservedStatus = EngineStatus | "silent" | "absent";

/** Returns why a tunnel is not up: the engine's reason, and a known obstacle between the edge and the peer. */
function explainDown(settings: TunnelSettings, status: EngineStatus, reach: Reach | null): WorkError | null {
  const { reason } = status;
  // If the engine does not work, its reason is not about the peer.
  const cause = reach === null || status.state === "unknown" ? null : explainReach(settings, reach);
  if (reason === null) return cause?.isCertain ? explain("peer_unreachable", cause.detail) : null;
  return explain(reason.fault, cause === null ? reason.detail : `${reason.detail} ${cause.detail}`);
}

/** Returns the status as a response body. `reach`: how the peer reaches the edge; null: not considered. */
export function showStatus(
  { id, settings }: Pick<StoredTunnel, "id" | "settings">,
  observed: ObservedStatus,
  reach: Reach | null,
): TunnelStatus {
  const idle: TunnelStatus = {
    TunnelId: id,
    Operational: false,
    State: "Connecting",
    Error: null,
    EstablishedAt: null,
    BytesIn: 0,
    BytesOut: 0,
    LastSeen: null,
    LocalSubnets: [],
    PeerSubnets: [],
    PeerAddress: peerOf(settings),
    Proposal: "",
  };
  // The desired state decides: the engine may not have it yet.
  if (!settings.Enabled) return { ...idle, State: "Disabled" };
  if (isKeyless(settings)) {
    const detail = `The peer of tunnel ${id} has no key yet. Create a configuration with keys for it, or enter its public key (PeerPublicKey).`;
    return { ...idle, Error: explain("peer_unreachable", detail) };
  }
  if (observed === "absent") return idle;
  if (observed === "silent") {
    const error = explain("engine_unavailable", `The router did not report the status of tunnel ${id} within 2 s.`);
    return { ...idle, State: "Unknown", Error: error };
  }
  const isUp = observed.state === "up";
  return {
    TunnelId: id,
    Operational: isUp,
    State: states[observed.state],
    Error: isUp ? null : explainDown(settings, observed, reach),
    EstablishedAt: observed.establishedAt === null ? null : formatDate(observed.establishedAt),
    BytesIn: observed.bytesIn,
    BytesOut: observed.bytesOut,
    LastSeen: observed.lastSeen === null ? null : formatDate(observed.lastSeen),
    LocalSubnets: isUp ? [...observed.localSubnets] : [],
    PeerSubnets: isUp ? [...observed.peerSubnets] : [],
    PeerAddress: observed.peerAddress,
    Proposal: isUp ? observed.proposal : "",
  };
}
