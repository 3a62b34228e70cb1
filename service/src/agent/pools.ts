/**
 * Refuses networks outside of the address pools of the installation. A network adds routes to its blocks on the host, so without this check
 * a control plane that an attacker controls could lead the host's own traffic to any address into a server.
 */
import { parseAddresses, type Range } from "../base/address.ts";
import type { Refuse } from "./bound.ts";

type Family = 4 | 6;
interface Ranges {
  readonly family: Family;
  readonly range: Range;
}

const read = (text: string): Ranges => {
  const { family, first, last } = parseAddresses(text);
  return { family, range: { first, last } };
};

/** The parts of a network that lead to routes on the host. */
interface Routed {
  readonly edgeAddress: string | null;
  readonly v4: { readonly cidr: string };
  readonly v6: { readonly cidr: string } | null;
}

/** Returns the check. `blocks`: those in which networks may be. */
export function refuseOutside(blocks: readonly string[]): Refuse {
  const allowed = blocks.map(read);
  const isInside = (text: string): boolean => {
    const { family, range } = read(text);
    return allowed.some(
      (one) => one.family === family && one.range.first <= range.first && range.last <= one.range.last,
    );
  };
  return (name, input) => {
    if (name !== "router.apply") return null;
    const { edgeAddress, v4, v6 } = input.spec as Routed;
    // A network without edge has no route and no address on the host.
    if (edgeAddress === null) return null;
    for (const text of [v4.cidr, ...(v6 === null ? [] : [v6.cidr]), edgeAddress]) {
      try {
        if (isInside(text)) continue;
      } catch {
        return "a block of the network is not a valid block";
      }
      return `${text} is outside of the address pools of this host: the pools of BRUME_PUBLIC_POOL, BRUME_PUBLIC_POOL6 and BRUME_SHARED_POOL must contain the blocks of all networks`;
    }
    return null;
  };
}
