/** Whether a firewall lets the servers of its network open connections to the outside. Pure. */
import { type AddressRange, overlaps, rangeOf } from "./addressrange.ts";
import type { Rule, RuleSet } from "./firewall.ts";

/** Returns whether the addresses of a rule contain one in the network, or outside of it. */
function hasAddress(addresses: string, where: "internal" | "external", block: AddressRange): boolean {
  const text = addresses.trim().toLowerCase();
  if (text === "" || text === "any" || text === where) return true;
  if (text === "internal" || text === "external") return false;
  return text.split(",").some((item) => {
    const range = rangeOf(item);
    // IPv6, or not valid yet.
    if (range === null) return true;
    return where === "internal" ? overlaps(range, block) : range[0] < block[0] || range[1] > block[1];
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

/** Returns the position for a rule about all outgoing connections: before the first one that decides on all of them, else the end. */
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
