/**
 * Decides which addresses the host may connect to for a client: public unicast addresses except the host's own, and those that the operator
 * allows. An address that contains another one (mapped, NAT64, 6to4, Teredo) does not count as public.
 */
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

type Block = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Parses a block (`ff00::/8`) or a single address. Throws on anything else. */
function parseAllowed(text: string): Block {
  return text.includes("/")
    ? ipaddr.parseCIDR(text)
    : [ipaddr.parse(text), ipaddr.parse(text).kind() === "ipv4" ? 32 : 128];
}

const globalUnicast6: Block = ipaddr.parseCIDR("2000::/3");

const isIn = (address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Block): boolean =>
  address.kind() === network.kind() && address.match(network, bits);

/** Returns the current addresses of the host's interfaces. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

/** Returns a function that decides whether a client may choose an address. `own` returns the present addresses of the host at each call. */
export function createJudge(allowed: readonly string[], own: () => readonly string[] = ownAddresses) {
  const blocks = allowed.map(parseAllowed);
  return (text: string): boolean => {
    if (!ipaddr.isValid(text) || text.includes("%")) return false;
    const address = ipaddr.process(text);
    if (blocks.some((block) => isIn(address, block))) return true;
    if (address.range() !== "unicast") return false;
    if (address.kind() === "ipv6" && !isIn(address, globalUnicast6)) return false;
    const same = address.toNormalizedString();
    return !own().some((each) => ipaddr.isValid(each) && ipaddr.process(each).toNormalizedString() === same);
  };
}
