/**
 * Addresses that no server reaches through its edge: those with a meaning only on the host (loopback, link-local with the metadata service
 * of the host's cloud, multicast, broadcast), and metadata services of clouds at other addresses. The edge drops packets to them, the host
 * drops them again, and the firewall check returns Deny. A setting of the operator can open some.
 */
import { isIPv4 } from "node:net";
import {
  complement,
  contains,
  everything,
  type Family,
  formatAddresses,
  parseAddress,
  parseAddresses,
} from "../../../base/address.ts";
import { NEXT_HOP } from "./name.ts";

const always = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/127",
  "fe80::/10",
  "ff00::/8",
  // Metadata services: Azure, Alibaba, AWS, Google.
  "168.63.129.16",
  "100.100.100.200",
  "fd00:ec2::254",
  "fd20:ce::254",
];

const families: readonly Family[] = [4, 6];

/** Returns the parsed entries of one family from a list of addresses, blocks and ranges. */
export const ofFamily = (list: readonly string[], family: Family) =>
  list.map(parseAddresses).filter((addresses) => addresses.family === family);

/** Returns the list without the opened addresses, as canonical addresses, blocks and ranges. */
export function closedExcept(opened: readonly string[], list: readonly string[] = always): string[] {
  return families.flatMap((family) => {
    const open = [...complement(ofFamily(list, family), everything(family)), ...ofFamily(opened, family)];
    return complement(open, everything(family)).map((range) => formatAddresses(family, range));
  });
}

/**
 * Returns which of two addresses, one of them outside of the network, makes the edge drop packets between them; null: neither is closed.
 */
export function closedOf(closed: readonly string[], source: string, destination: string): string | null {
  if (isIn(closed, destination)) return destination;
  return source !== NEXT_HOP && isIn(closed, source) ? source : null;
}

/** Returns whether the list contains the address. */
export function isIn(list: readonly string[], address: string): boolean {
  const { family, value } = parseAddress(address);
  return contains(ofFamily(list, family), value);
}

/** Renders an nftables set of the entries of one family; no line when there are none. */
export function setLines(name: string, list: readonly string[], family: Family): string[] {
  const elements = ofFamily(list, family).map((range) => formatAddresses(family, range));
  if (elements.length === 0) return [];
  return [
    `set ${name}${family} { type ipv${family}_addr; flags interval; auto-merge; elements = { ${elements.join(", ")} }; }`,
  ];
}

/** Name servers of the host, split by whether guests reach them. */
export interface Resolvers {
  /** Name servers that guests can use. */
  readonly usable: readonly string[];
  /** Name servers that guests do not reach. */
  readonly closed: readonly string[];
}

/**
 * Selects from the host's name servers those that guests can use: IPv4 and not closed. `own`: the host's addresses. `opened`: addresses
 * that guests reach anyway.
 */
export function resolversFor(servers: readonly string[], own: readonly string[], opened: readonly string[]): Resolvers {
  const closed = closedExcept(opened, [...closedExcept([]), ...own]);
  const isClosed = (server: string) => isIn(closed, server);
  const usable = servers.filter((server) => isIPv4(server) && !server.startsWith("127."));
  return { usable: usable.filter((server) => !isClosed(server)), closed: usable.filter(isClosed) };
}
