/** Whether a firewall lets the servers of its network open connections to the outside. Pure. */
import type { Rule, RuleSet } from "./firewall.ts";

/** First and last IPv4 address as numbers. */
type Range = readonly [first: number, last: number];

function numberOf(address: string): number {
  const parts = address.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part))) return Number.NaN;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** Returns the range of an IPv4 address, a block, or a range; null: it is none of them. */
function rangeOf(item: string): Range | null {
  const [from = "", to] = item.split("-");
  const [address = "", prefix = "32"] = from.split("/");
  const size = 2 ** (32 - Number(prefix));
  const first = Math.floor(numberOf(address) / size) * size;
  const last = to === undefined ? first + size - 1 : numberOf(to);
  return Number.isNaN(first + last) ? null : [first, last];
}

/** Returns whether the addresses of a rule contain one in the network, or outside of it. */
function hasAddress(addresses: string, where: "internal" | "external", block: Range): boolean {
  const text = addresses.trim().toLowerCase();
  if (text === "" || text === "any" || text === where) return true;
  if (text === "internal" || text === "external") return false;
  return text.split(",").some((item) => {
    const range = rangeOf(item.trim());
    // IPv6, or not valid yet.
    if (range === null) return true;
    const [first, last] = range;
    return where === "internal" ? first <= block[1] && last >= block[0] : first < block[0] || last > block[1];
  });
}

const isAny = (text: string): boolean => text === "" || text === "any";

/** Returns whether the rule decides on all connections from the network to the outside. */
function decidesAll({ Protocol, Source, SourcePort, Destination, DestinationPort }: Rule): boolean {
  return (
    (Protocol === "Any" || Protocol === "TcpAndUdp") &&
    (isAny(Source) || Source === "internal") &&
    (isAny(Destination) || Destination === "external") &&
    isAny(SourcePort) &&
    isAny(DestinationPort)
  );
}

/** Returns the position at which a rule for outgoing connections decides, after the rules about some of them. */
export function placeOfOutgoing({ Rules }: RuleSet): number {
  const at = Rules.findIndex(decidesAll);
  return at < 0 ? Rules.length : at;
}

/**
 * Returns true if no rule allows any connection over TCP or UDP from the network to the outside. `block`: of the network. It does not compare
 * rules with each other, so a false answer does not mean that a connection passes.
 */
export function blocksOutgoing(set: RuleSet, block: string): boolean {
  const internal = rangeOf(block);
  if (!set.Enabled || internal === null) return false;
  const at = placeOfOutgoing(set);
  const last = set.Rules[at]?.Action ?? set.DefaultRuleAction;
  const allows = ({ Action, Protocol, Source, Destination }: Rule): boolean =>
    Action === "Allow" &&
    Protocol !== "Icmp" &&
    hasAddress(Source, "internal", internal) &&
    hasAddress(Destination, "external", internal);
  return last === "Deny" && !set.Rules.slice(0, at).some(allows);
}
