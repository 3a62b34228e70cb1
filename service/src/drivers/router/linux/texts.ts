/** The three tables of one network. Rendering them checks every address and port that is to reach the kernel, so it comes first. */
import { parseAddress, prefixLength } from "../../../base/address.ts";
import type { NetworkSpec } from "../interface.ts";
import { flowsText, type Limits, usualLimits } from "../nft/connectionlimits.ts";
import { firewallText } from "../nft/firewall.ts";
import { guardText } from "./guard.ts";
import { lockText } from "./sourcelock.ts";

export interface Texts {
  readonly edge: string;
  readonly guard: string;
  readonly lock: string;
  readonly flows: string;
}

/** The network's blocks: what `internal` means. */
export const blocksOf = (spec: NetworkSpec): string[] => [spec.v4.cidr, ...(spec.v6 === null ? [] : [spec.v6.cidr])];

const requireInteger = (name: string, value: number | null, most: number): void => {
  if (value !== null && !(Number.isInteger(value) && 0 < value && value <= most))
    throw new Error(`${value} is no ${name}`);
};

/** What the tables do not look at, but other commands are told. */
function check(spec: NetworkSpec): void {
  const { v4, v6, edgeAddress } = spec;
  for (const { cidr, gateway } of [v4, ...(v6 === null ? [] : [v6])]) {
    prefixLength(cidr);
    if (gateway !== null) parseAddress(gateway);
    else if (edgeAddress !== null) throw new Error("a network with an edge needs a gateway");
  }
  if (edgeAddress !== null) parseAddress(edgeAddress);
  requireInteger("generation", spec.generation, Number.MAX_SAFE_INTEGER);
  requireInteger("MTU", spec.mtu, 65_535);
  for (const limit of [spec.bandwidth, ...spec.ports.map((port) => port.bandwidth)])
    requireInteger("bandwidth", limit, 1_000_000);
  requireInteger("port", spec.wireguard?.listenPort ?? null, 65_535);
}

/** Throws on what cannot be said to the kernel. */
export function renderTexts(spec: NetworkSpec, kernelEsp: boolean, limits: Limits = usualLimits): Texts {
  check(spec);
  return {
    edge: firewallText(spec.firewall, blocksOf(spec)),
    guard: guardText(spec, kernelEsp),
    lock: lockText(spec, limits.packets),
    flows: flowsText(limits, spec.v4.cidr, spec.v6 !== null),
  };
}
