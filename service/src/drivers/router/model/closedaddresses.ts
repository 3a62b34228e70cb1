/**
 * Addresses that no server reaches through its edge: those that mean something only to the host itself (loopback, link-local with the
 * metadata service of the host's cloud, groups, broadcast), and the metadata services of clouds at other addresses. The edge drops
 * what is for them, the host drops it once more, and the firewall check returns Deny. An operator opens some by a setting.
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
  // Azure, Alibaba, AWS, Google.
  "168.63.129.16",
  "100.100.100.200",
  "fd00:ec2::254",
  "fd20:ce::254",
];

const families: readonly Family[] = [4, 6];

/** The part of a list of addresses, blocks and ranges that is of one family. */
export const ofFamily = (list: readonly string[], family: Family) =>
  list.map(parseAddresses).filter((addresses) => addresses.family === family);

/** The list without what is opened, as canonical addresses, blocks and ranges. */
export function closedExcept(opened: readonly string[], list: readonly string[] = always): string[] {
  return families.flatMap((family) => {
    const open = [...complement(ofFamily(list, family), everything(family)), ...ofFamily(opened, family)];
    return complement(open, everything(family)).map((range) => formatAddresses(family, range));
  });
}

/** Of two addresses, one of them beyond the edge: the one for which the edge drops what is sent between them; null: none is closed. */
export function closedOf(closed: readonly string[], source: string, destination: string): string | null {
  if (isIn(closed, destination)) return destination;
  return source !== NEXT_HOP && isIn(closed, source) ? source : null;
}

/** Whether the address is in the list. */
export function isIn(list: readonly string[], address: string): boolean {
  const { family, value } = parseAddress(address);
  return contains(ofFamily(list, family), value);
}

/** A set of nftables with the part of one family; nothing when that is empty. */
export function setLines(name: string, list: readonly string[], family: Family): string[] {
  const elements = ofFamily(list, family).map((range) => formatAddresses(family, range));
  if (elements.length === 0) return [];
  return [
    `set ${name}${family} { type ipv${family}_addr; flags interval; auto-merge; elements = { ${elements.join(", ")} }; }`,
  ];
}

export interface Resolvers {
  readonly usable: readonly string[];
  /** Left out, since guests do not reach them. */
  readonly closed: readonly string[];
}

/** Of the host's own name servers those that guests can use too: IPv4, and not closed to them. `own`: the host's addresses. `opened`: what guests reach all the same. */
export function resolversFor(servers: readonly string[], own: readonly string[], opened: readonly string[]): Resolvers {
  const closed = closedExcept(opened, [...closedExcept([]), ...own]);
  const isClosed = (server: string) => isIn(closed, server);
  const usable = servers.filter((server) => isIPv4(server) && !server.startsWith("127."));
  return { usable: usable.filter((server) => !isClosed(server)), closed: usable.filter(isClosed) };
}
