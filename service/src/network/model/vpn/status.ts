/** How a tunnel is doing: the engine's word on it in the terms of the contract (docs/spec.md#vpn-tunnel). */
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

/** No step is to blame: a tunnel comes up by itself or does not. */
const explain = (code: TunnelFault, detail: string): WorkError =>
  showWorkError({ code, title: taskErrors[code], detail, step: null });

/** Where the peer is said to be, without port; "" for one that calls. */
function peerOf({ Type, PeerEndpoint }: TunnelSettings): string {
  if (Type === "IPsec") return PeerEndpoint === "any" ? "" : PeerEndpoint;
  return PeerEndpoint.replace(/:\d+$/, "");
}

/** `silent`: the engine gave no answer in time. `absent`: it did, and does not have the tunnel (yet). */
export type Word = EngineStatus | "silent" | "absent";

/** Why it is not up: what the engine says, and what stands between the edge and the peer. */
function explainWord(settings: TunnelSettings, word: EngineStatus, reach: Reach | null): WorkError | null {
  const { reason } = word;
  // An engine that does not work says nothing of the peer.
  const cause = reach === null || word.state === "unknown" ? null : explainReach(settings, reach);
  if (reason === null) return cause?.isCertain ? explain("peer_unreachable", cause.detail) : null;
  return explain(reason.fault, cause === null ? reason.detail : `${reason.detail} ${cause.detail}`);
}

/** `reach`: how the peer finds the edge; null: it is not looked at. */
export function showStatus(
  { id, settings }: Pick<StoredTunnel, "id" | "settings">,
  word: Word,
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
  // What is wished counts: the engine may not have heard of it yet.
  if (!settings.Enabled) return { ...idle, State: "Disabled" };
  if (isKeyless(settings)) {
    const detail = `The peer of tunnel ${id} has no key yet: set PeerPublicKey, or have one made by POST /publicnetwork/{id}/vpn/${id}/peer.`;
    return { ...idle, Error: explain("peer_unreachable", detail) };
  }
  if (word === "absent") return idle;
  if (word === "silent") {
    const error = explain("engine_unavailable", `The engine said nothing of tunnel ${id} within 2 seconds.`);
    return { ...idle, State: "Unknown", Error: error };
  }
  const isUp = word.state === "up";
  return {
    TunnelId: id,
    Operational: isUp,
    State: states[word.state],
    Error: isUp ? null : explainWord(settings, word, reach),
    EstablishedAt: word.establishedAt === null ? null : formatDate(word.establishedAt),
    BytesIn: word.bytesIn,
    BytesOut: word.bytesOut,
    LastSeen: word.lastSeen === null ? null : formatDate(word.lastSeen),
    LocalSubnets: isUp ? [...word.localSubnets] : [],
    PeerSubnets: isUp ? [...word.peerSubnets] : [],
    PeerAddress: word.peerAddress,
    Proposal: isUp ? word.proposal : "",
  };
}
