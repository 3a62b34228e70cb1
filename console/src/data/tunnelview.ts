/** What tunnels look like, and the requests that change one of them: the API takes the whole list. */
import type { Client } from "@brume/api/client.ts";
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Tunnel, TunnelInput, TunnelStatus } from "@brume/api/vpn.ts";
import type { Texts } from "../texts/en.ts";
import type { Tone } from "../ui/page.tsx";
import type { StateView } from "./networkview.ts";

const tones: Readonly<Record<TunnelStatus["State"], Tone>> = {
  Up: "good",
  Connecting: "busy",
  Down: "bad",
  Disabled: "quiet",
  Unknown: "warn",
};

/** Returns whether a WireGuard tunnel waits for its first key pair. */
export const hasNoKey = ({ Type, PeerPublicKey }: Tunnel): boolean => Type === "WireGuard" && PeerPublicKey === "";

/** Returns whether the service does not know where the peer is, so it waits for its first packet. */
export const isInitiatedByPeer = ({ PeerEndpoint }: Tunnel): boolean => PeerEndpoint === "" || PeerEndpoint === "any";

/** State of a tunnel; undefined status: not read yet. */
export function tunnelState(tunnel: Tunnel, status: TunnelStatus | undefined, t: Texts): StateView {
  if (!tunnel.Enabled) return { tone: "quiet", word: t.vpn.states.Disabled };
  if (hasNoKey(tunnel)) return { tone: "warn", word: t.vpn.states.NoKey };
  const state = status?.State ?? "Connecting";
  if (state === "Connecting" && isInitiatedByPeer(tunnel) && status?.Error === null)
    return { tone: "quiet", word: t.vpn.states.Waiting };
  return { tone: tones[state], word: t.vpn.states[state] };
}

/**
 * Returns the whole list with one tunnel changed, created (`id` null) or deleted (`change` null), and its position. Other tunnels are
 * named only, so they stay as they are.
 */
export function tunnelsWith(tunnels: readonly Tunnel[], id: number | null, change: TunnelInput | null) {
  const kept = tunnels.map(({ Id }): TunnelInput => ({ Id }));
  const at = tunnels.findIndex((tunnel) => tunnel.Id === id);
  if (change === null) return { index: -1, Tunnels: kept.filter((_, index) => index !== at) };
  if (at < 0) return { index: kept.length, Tunnels: [...kept, change] };
  return { index: at, Tunnels: kept.with(at, { ...change, Id: tunnels[at]?.Id ?? 0 }) };
}

/** Sends the change, based on the tunnels that exist now: those that other clients have created meanwhile are kept. */
export async function changeTunnel(
  client: Client,
  network: number,
  id: number | null,
  change: TunnelInput | null,
): Promise<PublicNetwork> {
  const path = { id: network };
  const { answer, etag } = await client.raw.readPublicNetwork({ path });
  const { Tunnels } = tunnelsWith(answer.Vpn.Tunnels, id, change);
  return client.configureVpn({ path, body: { Tunnels } }, { wait: 5, ...(etag !== null && { ifMatch: etag }) });
}
