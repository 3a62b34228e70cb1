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
export const blocksOf = (image: NetworkSpec): string[] => [
  image.v4.cidr,
  ...(image.v6 === null ? [] : [image.v6.cidr]),
];

const whole = (name: string, value: number | null, most: number): void => {
  if (value !== null && !(Number.isInteger(value) && 0 < value && value <= most))
    throw new Error(`${value} is no ${name}`);
};

/** What the tables do not look at, but other commands are told. */
function check(image: NetworkSpec): void {
  const { v4, v6, edgeAddress } = image;
  for (const { cidr, gateway } of [v4, ...(v6 === null ? [] : [v6])]) {
    prefixLength(cidr);
    if (gateway !== null) parseAddress(gateway);
    else if (edgeAddress !== null) throw new Error("a network with an edge needs a gateway");
  }
  if (edgeAddress !== null) parseAddress(edgeAddress);
  whole("generation", image.generation, Number.MAX_SAFE_INTEGER);
  whole("MTU", image.mtu, 65_535);
  for (const limit of [image.bandwidth, ...image.ports.map((port) => port.bandwidth)])
    whole("bandwidth", limit, 1_000_000);
  whole("port", image.wireguard?.listenPort ?? null, 65_535);
}

/** Throws on what cannot be said to the kernel. */
export function renderTexts(image: NetworkSpec, kernelEsp: boolean, limits: Limits = usualLimits): Texts {
  check(image);
  return {
    edge: firewallText(image.firewall, blocksOf(image)),
    guard: guardText(image, kernelEsp),
    lock: lockText(image, limits.packets),
    flows: flowsText(limits, image.v4.cidr, image.v6 !== null),
  };
}
