/**
 * What charon says of its security associations, as the status of a tunnel. A tunnel is up when every pair of networks that it is
 * to join has a child, and each child all of its pair: a peer may agree to a part of it. Rekeying replaces children: since when the
 * tunnel is up and how much went through it outlive that, and so are kept beside what charon knows.
 */
import { parseAddresses } from "../../../base/address.ts";
import type { IpsecTunnel, TunnelStatus } from "../interface.ts";
import { espProposal, ikeProposal } from "../model/proposals.ts";
import type { Finding, Reason } from "./diagnosis.ts";
import { type Child, childrenOf } from "./strongswan.ts";
import { type Message, sections, text, texts } from "./vici.ts";

/** What is remembered of one loaded tunnel. */
export interface TunnelHistory {
  wasUp: boolean;
  establishedAt: number | null;
  lastSeen: number | null;
  /** Of children that were replaced. */
  bytesIn: number;
  bytesOut: number;
  reason: Reason | null;
  /** How often the peer refused our networks, and when it is asked again, by the steady clock. */
  refusals: number;
  due: number;
}

/** From now on a peer that refused is asked again at once. */
export const noRefusals = { refusals: 0, due: 0 } as const;

export const createTunnelHistory = (): TunnelHistory => ({
  wasUp: false,
  establishedAt: null,
  lastSeen: null,
  bytesIn: 0,
  bytesOut: 0,
  reason: null,
  ...noRefusals,
});

/** What counts from the moment on at which a tunnel came up, once it is down. */
export const stateWhileDown = { establishedAt: null, bytesIn: 0, bytesOut: 0 } as const;

/** A child carries packets also while it is being replaced. */
const carrying = new Set(["INSTALLED", "REKEYING", "UPDATING"]);

const numberOf = (section: Message, key: string): number => Number(text(section, key)) || 0;

/** Children that carry packets, of all associations of a tunnel. */
export function childrenUp(associations: readonly Message[]): readonly Message[] {
  return associations
    .filter((association) => text(association, "state") === "ESTABLISHED" || text(association, "state") === "REKEYING")
    .flatMap((association) => sections(association["child-sas"] as Message | undefined).map(([, child]) => child))
    .filter((child) => carrying.has(text(child, "state")));
}

/** Names of the children that should carry packets and do not. */
export function childrenMissing(tunnel: IpsecTunnel, associations: readonly Message[]): readonly string[] {
  const up = new Set(childrenUp(associations).map((child) => text(child, "name")));
  return childrenOf(tunnel)
    .map(({ name }) => name)
    .filter((name) => !up.has(name));
}

/** Is this block inside one of those agreed to? charon writes what is no whole block as `10.0.0.0..10.0.0.6` or `10.0.0.0/24[tcp]`. */
function isAgreed(block: string, agreed: readonly string[]): boolean {
  const { first, last } = parseAddresses(block);
  return agreed
    .filter((each) => /^[\d.]+\/\d+$/.test(each))
    .map(parseAddresses)
    .some((each) => each.first <= first && last <= each.last);
}

const isComplete = (child: Message, { name, local, peer }: Child): boolean =>
  text(child, "name") === name &&
  local.every((block) => isAgreed(block, texts(child, "local-ts"))) &&
  peer.every((block) => isAgreed(block, texts(child, "remote-ts")));

/** Names of the children that are up, but none of them for all of its pair of networks. */
export function childrenNarrowed(tunnel: IpsecTunnel, associations: readonly Message[]): readonly string[] {
  const up = childrenUp(associations);
  return childrenOf(tunnel)
    .filter((desired) => up.some((child) => text(child, "name") === desired.name))
    .filter((desired) => !up.some((child) => isComplete(child, desired)))
    .map(({ name }) => name);
}

const narrowed = (local: readonly string[], peer: readonly string[]): Reason => ({
  fault: "selectors_refused",
  detail: `The peer agrees only to ${peer.join(", ")} on its side and ${local.join(", ")} on ours.`,
});

/** Why a tunnel is down. libipsec has no source address in blocks that only the peer thought of, and so refuses them. */
export function reasonOf(
  { localSubnets, peerSubnets }: IpsecTunnel,
  { reason, pair }: Omit<Finding, "tunnel">,
): Reason {
  if (pair === null) return reason;
  const isOurs =
    localSubnets.some((block) => isAgreed(block, [pair.local])) &&
    peerSubnets.some((block) => isAgreed(block, [pair.peer]));
  return isOurs ? reason : narrowed([pair.local], [pair.peer]);
}

function proposalText(child: Message, association: Message | undefined): string {
  const cipher = [text(child, "encr-alg"), text(child, "encr-keysize")].filter((part) => part !== "").join("_");
  const group = text(child, "dh-group") || text(association, "dh-group");
  return [cipher, text(child, "integ-alg"), group].filter((part) => part !== "").join("/");
}

/** The engine's sentence with our own side's values behind it. */
function explain({ fault, detail }: Reason, tunnel: IpsecTunnel): Reason {
  const ours = {
    authentication_failed: `Here we are ${tunnel.localIdentity} and the peer is ${tunnel.peerIdentity}.`,
    no_proposal_chosen: `Here IKEv${tunnel.ikeVersion} is set to ${ikeProposal(tunnel)}, ESP to ${espProposal(tunnel)}.`,
    selectors_refused: `Here ${tunnel.localSubnets.join(", ")} and the peer's ${tunnel.peerSubnets.join(", ")} are set.`,
    peer_unreachable: `It is called at ${tunnel.peer ?? tunnel.peerIdentity} on UDP 500 and 4500.`,
    engine_unavailable: "",
  }[fault];
  return { fault, detail: `${detail} ${ours}`.trim() };
}

const idle = {
  bytesIn: 0,
  bytesOut: 0,
  establishedAt: null,
  localSubnets: [],
  peerSubnets: [],
  proposal: "",
} as const;

/**
 * Brings `memory` up to what charon says at `now` (ms) and tells the status. `associations` are the tunnel's sections of `list-sa`,
 * or a sentence that says why charon tells nothing.
 */
export function statusOf(
  tunnel: IpsecTunnel,
  associations: readonly Message[] | string,
  history: TunnelHistory,
  now: number,
): TunnelStatus {
  const base = { id: tunnel.id, ...idle, lastSeen: history.lastSeen, peerAddress: tunnel.peer ?? "" };
  if (!tunnel.enabled) return { ...base, state: "disabled", reason: null };
  if (typeof associations === "string")
    return { ...base, state: "unknown", reason: { fault: "engine_unavailable", detail: associations } };

  const up = childrenUp(associations);
  const [first] = up;
  const idleFor = up.map((child) => text(child, "use-in")).filter((seconds) => seconds !== "");
  if (idleFor.length > 0)
    history.lastSeen = Math.max(history.lastSeen ?? 0, now - 1000 * Math.min(...idleFor.map(Number)));
  const blocks = (key: string): readonly string[] => [...new Set(up.flatMap((child) => texts(child, key)))];
  const [localSubnets, peerSubnets] = [blocks("local-ts"), blocks("remote-ts")];
  const isMissing = first === undefined || childrenMissing(tunnel, associations).length > 0;
  if (!isMissing) {
    const isJoined = childrenOf(tunnel).every((desired) => up.some((child) => isComplete(child, desired)));
    Object.assign(history, { wasUp: true, reason: isJoined ? null : narrowed(localSubnets, peerSubnets) });
    if (isJoined) Object.assign(history, noRefusals);
  }
  if (isMissing || history.reason !== null) {
    Object.assign(history, stateWhileDown);
    const reason = history.reason && explain(history.reason, tunnel);
    return { ...base, state: history.wasUp ? "down" : "connecting", lastSeen: history.lastSeen, reason };
  }

  history.establishedAt ??= now - 1000 * Math.max(...up.map((child) => numberOf(child, "install-time")));
  const sum = (key: string): number => up.reduce((total, child) => total + numberOf(child, key), 0);
  return {
    id: tunnel.id,
    state: "up",
    reason: null,
    establishedAt: history.establishedAt,
    bytesIn: history.bytesIn + sum("bytes-in"),
    bytesOut: history.bytesOut + sum("bytes-out"),
    lastSeen: history.lastSeen,
    localSubnets,
    peerSubnets,
    peerAddress: text(associations[0], "remote-host"),
    proposal: proposalText(first, associations[0]),
  };
}

/** The event `child-rekey`: what went through the old child is added to the tunnel's own count. */
export function noteRekey(association: Message, history: TunnelHistory): void {
  for (const [, child] of sections(association["child-sas"] as Message | undefined)) {
    const old = child["old"] as Message | undefined;
    if (old === undefined) continue;
    history.bytesIn += numberOf(old, "bytes-in");
    history.bytesOut += numberOf(old, "bytes-out");
  }
}
