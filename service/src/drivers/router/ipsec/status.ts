/**
 * Derives the status of a tunnel from charon's security associations. A tunnel is up when every desired pair of networks has a child that
 * covers all of it: a peer may agree to a part only. Rekeying replaces children, so the start time and traffic of the tunnel are kept
 * separately.
 */
import { parseAddresses } from "../../../base/address.ts";
import type { IpsecTunnel, TunnelStatus } from "../interface.ts";
import { espProposal, ikeProposal } from "../model/proposals.ts";
import type { Finding, Reason } from "./diagnosis.ts";
import { type Child, childrenOf } from "./strongswan.ts";
import { type Message, sections, text, texts } from "./vici.ts";

/** What is kept about one loaded tunnel. */
export interface TunnelHistory {
  wasUp: boolean;
  establishedAt: number | null;
  lastSeen: number | null;
  /** Traffic of children that were replaced. */
  bytesIn: number;
  bytesOut: number;
  reason: Reason | null;
  /** How often the peer refused our networks, and the time of the next attempt by the monotonic clock. */
  refusals: number;
  due: number;
  /** SPIs of the associations of earlier settings, which charon lists until they have ended. */
  readonly ended: ReadonlySet<string>;
}

/** Resets the refusals, so that the next attempt is immediate. */
export const noRefusals = { refusals: 0, due: 0 } as const;

/** Creates the history of a new tunnel, or of a changed one. `earlier`: the associations of its earlier settings. */
export const createTunnelHistory = (earlier: readonly Message[] = []): TunnelHistory => ({
  wasUp: false,
  establishedAt: null,
  lastSeen: null,
  bytesIn: 0,
  bytesOut: 0,
  reason: null,
  ...noRefusals,
  ended: new Set(earlier.map((association) => text(association, "initiator-spi"))),
});

/** The fields that start again when a tunnel comes up, as reset while it is down. */
export const stateWhileDown = { establishedAt: null, bytesIn: 0, bytesOut: 0 } as const;

/** States in which a child transports packets, also while it is being replaced. */
const carrying = new Set(["INSTALLED", "REKEYING", "UPDATING"]);

const numberOf = (section: Message, key: string): number => Number(text(section, key)) || 0;

/** Returns the children that transport packets, of all associations of a tunnel. */
function childrenUp(associations: readonly Message[]): readonly Message[] {
  return associations
    .filter((association) => text(association, "state") === "ESTABLISHED" || text(association, "state") === "REKEYING")
    .flatMap((association) => sections(association["child-sas"] as Message | undefined).map(([, child]) => child))
    .filter((child) => carrying.has(text(child, "state")));
}

/** Returns the names of desired children that do not transport packets. */
export function childrenMissing(tunnel: IpsecTunnel, associations: readonly Message[]): readonly string[] {
  const up = new Set(childrenUp(associations).map((child) => text(child, "name")));
  return childrenOf(tunnel)
    .map(({ name }) => name)
    .filter((name) => !up.has(name));
}

/**
 * Returns whether the block is inside one of the agreed blocks. charon writes a partial block as `10.0.0.0..10.0.0.6` or
 * `10.0.0.0/24[tcp]`.
 */
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

/** Returns the names of children that are up, but only for a part of their networks. */
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

/**
 * Returns the reason why a tunnel is down. libipsec refuses blocks that only the peer proposed, because it has no source address in them;
 * this counts as narrowed by the peer.
 */
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

/** Appends the values of our side to the engine's sentence. */
function explain({ fault, detail }: Reason, tunnel: IpsecTunnel): Reason {
  const configured = {
    authentication_failed: `Configured here: our identity is ${tunnel.localIdentity}, the peer's is ${tunnel.peerIdentity}.`,
    no_proposal_chosen: `Configured here: IKEv${tunnel.ikeVersion} with ${ikeProposal(tunnel)}, ESP with ${espProposal(tunnel)}.`,
    selectors_refused: `Configured here: ${tunnel.localSubnets.join(", ")} on our side and ${tunnel.peerSubnets.join(", ")} on the peer's.`,
    peer_unreachable: `Brume contacts ${tunnel.peer ?? tunnel.peerIdentity} on UDP 500 and 4500.`,
    engine_unavailable: "",
  }[fault];
  return { fault, detail: `${detail} ${configured}`.trim() };
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
 * Returns the status of a tunnel and updates `history` at time `now` (ms). `listed` are the tunnel's sections of `list-sa`, or a
 * sentence with the reason why charon reports none.
 */
export function statusOf(
  tunnel: IpsecTunnel,
  listed: readonly Message[] | string,
  history: TunnelHistory,
  now: number,
): TunnelStatus {
  const base = { id: tunnel.id, ...idle, lastSeen: history.lastSeen, peerAddress: tunnel.peer ?? "" };
  if (!tunnel.enabled) return { ...base, state: "disabled", reason: null };
  if (typeof listed === "string")
    return { ...base, state: "unknown", reason: { fault: "engine_unavailable", detail: listed } };

  const associations = listed.filter((association) => !history.ended.has(text(association, "initiator-spi")));
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

/** Handles the event `child-rekey`: adds the traffic of the old child to the history. */
export function noteRekey(association: Message, history: TunnelHistory): void {
  for (const [, child] of sections(association["child-sas"] as Message | undefined)) {
    const old = child["old"] as Message | undefined;
    if (old === undefined) continue;
    history.bytesIn += numberOf(old, "bytes-in");
    history.bytesOut += numberOf(old, "bytes-out");
  }
}
