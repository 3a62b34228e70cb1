/** Addresses of devices in tunnels. Pure. */
import type { PublicNetwork } from "@brume/api/network.ts";
import { overlaps, rangeOf } from "./addressrange.ts";

/** Returns an address for a device, as a block, that no network of the tunnels contains; empty: none is free. */
export function freePeerAddress({ CIDR, Vpn }: Pick<PublicNetwork, "CIDR" | "Vpn">): string {
  const used = [CIDR, ...Vpn.Tunnels.flatMap(({ PeerNetwork }) => PeerNetwork.split(","))].map(rangeOf);
  const blocks = Array.from({ length: 253 }, (_, index) => `10.9.0.${index + 2}/32`);
  const isFree = (block: string): boolean => {
    const range = rangeOf(block);
    return range !== null && !used.some((one) => one !== null && overlaps(one, range));
  };
  return blocks.find(isFree) ?? "";
}
