/** What networks look like: their state and that of their firewall as a word, and how many servers a block can hold. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import type { Texts } from "../texts/en.ts";
import type { Tone } from "../ui/page.tsx";
import { labelTexts } from "./label.ts";

/** A state as one word with its look. */
export interface StateView {
  readonly tone: Tone;
  readonly word: string;
}

/** State of a public or private network. */
export function networkState(network: PublicNetwork | Network, t: Texts): StateView {
  const { State, Error } = network;
  if (State !== "Active") return { tone: "busy", word: t.networks.states[State] };
  if (Error !== null) return { tone: "warn", word: t.networks.notApplied };
  if ("Generation" in network && network.AppliedGeneration < network.Generation)
    return { tone: "busy", word: t.networks.applying };
  return { tone: "good", word: t.networks.states.Active };
}

/** State of the firewall of a public network. */
export function firewallState({ Firewall }: PublicNetwork, t: Texts): StateView {
  if (Firewall.ConfirmBy !== null) return { tone: "warn", word: t.networks.waits };
  if (!Firewall.Enabled) return { tone: "quiet", word: t.networks.firewallOff };
  return { tone: "good", word: t.networks.rules(Firewall.Rules.length) };
}

/** Servers that a block of this prefix length can hold: without the first, the last and the address of the gateway. */
export const serversOf = (prefix: number): number => 2 ** (32 - prefix) - 3;

/** Returns what a network is found by. */
export const textsOfNetwork = (network: PublicNetwork | Network): string[] => [
  network.Name,
  network.CIDR,
  "EdgeExternalIp" in network ? network.EdgeExternalIp : "",
  ...network.LinkedServers.map(({ IP }) => IP),
  ...labelTexts(network.Labels),
];
