/**
 * What a firewall means, as a pure function: which rule decides on the first packet of a connection. The rendered rules must agree
 * with it for every packet (a test sends them), and the firewall check answers from it.
 */
import {
  type Addresses,
  complement,
  contains,
  everything,
  type Family,
  join,
  parseAddress,
  parseAddresses,
  type Range,
} from "../../base/address.ts";
import type { Firewall, Place, Ports, Rule } from "./port.ts";

/** A rule for one family: each field as sorted ranges without overlap; protocols and ports as numbers of IANA. */
export interface FlatRule {
  /** Position in the firewall, from 0. */
  readonly index: number;
  readonly allow: boolean;
  readonly protocol: readonly Range[];
  readonly source: readonly Range[];
  readonly destination: readonly Range[];
  readonly sourcePort: readonly Range[];
  readonly destinationPort: readonly Range[];
}

export const fields = ["protocol", "destination", "source", "destinationPort", "sourcePort"] as const;
export type Field = (typeof fields)[number];

export const TCP = 6n;
export const UDP = 17n;
export const icmpOf = (family: Family): bigint => (family === 4 ? 1n : 58n);

const anyByte: Range = { first: 0n, last: 255n };
const anyPort: Range = { first: 0n, last: 65_535n };

/** All values that the field can have. */
export function wholeOf(field: Field, family: Family): Range {
  if (field === "protocol") return anyByte;
  return field === "source" || field === "destination" ? everything(family) : anyPort;
}

const one = (value: bigint): Range => ({ first: value, last: value });

function protocols(rule: Rule, family: Family): readonly Range[] {
  if (rule.protocol === "any") return [anyByte];
  if (rule.protocol === "icmp") return [one(icmpOf(family))];
  return [...(rule.protocol === "udp" ? [] : [one(TCP)]), ...(rule.protocol === "tcp" ? [] : [one(UDP)])];
}

function places(place: Place, family: Family, internal: readonly Range[]): Range[] {
  if (place === "any") return [everything(family)];
  if (place === "internal") return [...internal];
  if (place === "external") return complement(internal, everything(family));
  return join(place.map(parseAddresses).filter((addresses) => addresses.family === family));
}

function ports(list: Ports): readonly Range[] {
  if (list === "any") return [anyPort];
  const ranges = list.map(({ first, last }) => {
    if (!(Number.isInteger(first) && Number.isInteger(last) && 0 <= first && first <= last && last <= 65_535))
      throw new Error(`${first}-${last} is no range of ports`);
    return { first: BigInt(first), last: BigInt(last) };
  });
  return join(ranges);
}

/** The rules that can fit a packet of the family, in order. `internal`: the network's blocks. Throws on what is no address or port. */
export function flatten(rules: readonly Rule[], family: Family, internal: readonly string[]): FlatRule[] {
  const inside = internal.map(parseAddresses).filter((block) => block.family === family);
  const flat = rules.map((rule, index) => {
    const listed = rule.sourcePort !== "any" || rule.destinationPort !== "any";
    if (listed && (rule.protocol === "any" || rule.protocol === "icmp"))
      throw new Error(`rule ${index + 1} has ports, and a protocol that may have none`);
    return {
      index,
      allow: rule.allow,
      protocol: protocols(rule, family),
      source: places(rule.source, family, inside),
      destination: places(rule.destination, family, inside),
      sourcePort: ports(rule.sourcePort),
      destinationPort: ports(rule.destinationPort),
    };
  });
  return flat.filter((rule) => fields.every((field) => rule[field].length > 0));
}

/** First packet of a connection; ports are 0 where the protocol has none. `protocol` is IANA's number. */
export interface Packet {
  readonly protocol: number;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}

export interface Verdict {
  readonly allow: boolean;
  /** Position of the rule that decided, from 0; null: none fitted, or the firewall is off. */
  readonly rule: number | null;
}

/** Decides for many packets by one firewall. The packet is taken to cross the edge; what does not is never judged. */
export function createJudge(firewall: Firewall, internal: readonly string[]): (packet: Packet) => Verdict {
  const rules = { 4: flatten(firewall.rules, 4, internal), 6: flatten(firewall.rules, 6, internal) };
  return (packet) => {
    if (!firewall.enabled) return { allow: true, rule: null };
    const source = parseAddress(packet.source);
    const destination = parseAddress(packet.destination);
    const protocol = BigInt(packet.protocol);
    const [sourcePort, destinationPort] = [BigInt(packet.sourcePort), BigInt(packet.destinationPort)];
    const found = rules[source.family].find(
      (rule) =>
        contains(rule.protocol, protocol) &&
        contains(rule.source, source.value) &&
        contains(rule.destination, destination.value) &&
        contains(rule.sourcePort, sourcePort) &&
        contains(rule.destinationPort, destinationPort),
    );
    return found === undefined ? { allow: firewall.allow, rule: null } : { allow: found.allow, rule: found.index };
  };
}

/** Both ends are in the network: such a packet never meets the rules. */
export const staysInside = (packet: Packet, internal: readonly string[]): boolean => {
  const blocks: readonly Addresses[] = internal.map(parseAddresses);
  const inside = (text: string) => {
    const { family, value } = parseAddress(text);
    return contains(
      blocks.filter((block) => block.family === family),
      value,
    );
  };
  return inside(packet.source) && inside(packet.destination);
};
