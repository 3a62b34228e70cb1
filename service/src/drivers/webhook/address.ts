/**
 * Which addresses the endpoint of a webhook may have: those of the public internet, but for the host's own, and those that the operator
 * allows. An address that carries another one (mapped, NAT64, 6to4, Teredo) is none of the public internet.
 */
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

type Block = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** In `ff00::/8` notation or one address. Throws on anything else. */
export function parseAllowed(text: string): Block {
  return text.includes("/")
    ? ipaddr.parseCIDR(text)
    : [ipaddr.parse(text), ipaddr.parse(text).kind() === "ipv4" ? 32 : 128];
}

const globalUnicast6: Block = ipaddr.parseCIDR("2000::/3");

const isIn = (address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Block): boolean =>
  address.kind() === network.kind() && address.match(network, bits);

/** Addresses of this machine's interfaces, as they are now. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
}

/** `own` gives the addresses of this machine. */
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
