/**
 * Defines the meaning of a firewall as a pure function: which rule decides on the first packet of a connection. The rendered rules must
 * agree with it for every packet (a test sends packets), and the firewall check of the API uses it.
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
  readIPv4,
  type Value,
} from "../../../base/address.ts";
import { runAtOnce } from "../../../base/turn.ts";
import type { AddressMatch, Firewall, Ports, Rule } from "../interface.ts";

/** A range of values of one packet field: bigints for IPv6 addresses, numbers for all other fields. */
export type Span = Range<Value>;

/** A rule for one family: each field as sorted ranges without overlap; protocols and ports as IANA numbers. */
export interface FlatRule {
  /** Position in the firewall, from 0. */
  readonly index: number;
  readonly allow: boolean;
  readonly protocol: readonly Span[];
  readonly source: readonly Span[];
  readonly destination: readonly Span[];
  readonly sourcePort: readonly Span[];
  readonly destinationPort: readonly Span[];
}

/** The packet fields that a rule tests, in the order of tests. */
export const fields = ["protocol", "destination", "source", "destinationPort", "sourcePort"] as const;
/** A property of packets that a rule can match. */
export type Field = (typeof fields)[number];

export const TCP = 6;
export const UDP = 17;
export const icmpOf = (family: Family): number => (family === 4 ? 1 : 58);

const toSpan = ({ family, first, last }: Addresses): Span =>
  family === 4 ? { first: Number(first), last: Number(last) } : { first, last };

const anyByte: Span = { first: 0, last: 255 };
const anyPort: Span = { first: 0, last: 65_535 };
const anyAddress: Record<Family, Span> = {
  4: toSpan({ family: 4, ...everything(4) }),
  6: everything(6),
};

/** Returns the range of all values of a field. */
export function fullRange(field: Field, family: Family): Span {
  if (field === "protocol") return anyByte;
  return field === "source" || field === "destination" ? anyAddress[family] : anyPort;
}

const one = (value: number): Span => ({ first: value, last: value });

/** Shared by most rules, to save memory. */
const allBytes = [anyByte];
const allPorts = [anyPort];
const allAddresses: Record<Family, readonly Span[]> = { 4: [anyAddress[4]], 6: [anyAddress[6]] };
const numbers: Readonly<Record<Exclude<Rule["protocol"], "any" | "icmp">, readonly Span[]>> = {
  tcp: [one(TCP)],
  udp: [one(UDP)],
  "tcp-udp": [one(TCP), one(UDP)],
};

function protocols(rule: Rule, family: Family): readonly Span[] {
  if (rule.protocol === "any") return allBytes;
  return rule.protocol === "icmp" ? [one(icmpOf(family))] : numbers[rule.protocol];
}

function addressSpans(match: AddressMatch, family: Family, internal: readonly Span[]): readonly Span[] {
  if (match === "any") return allAddresses[family];
  if (match === "internal") return internal;
  if (match === "external") return complement(internal, anyAddress[family]);
  const spans: Span[] = [];
  for (const text of match) {
    const single = readIPv4(text);
    if (single !== null && family === 4) spans.push(one(single));
    else if (single === null) {
      const addresses = parseAddresses(text);
      if (addresses.family === family) spans.push(toSpan(addresses));
    }
  }
  return join(spans);
}

function ports(list: Ports): readonly Span[] {
  if (list === "any") return allPorts;
  for (const { first, last } of list)
    if (!(Number.isInteger(first) && Number.isInteger(last) && 0 <= first && first <= last && last <= 65_535))
      throw new Error(`${first}-${last} is not a valid range of ports (0-65535)`);
  return join<Value>(list);
}

/** Returns the same as `flattenRules`, at once. */
export const flatten = (rules: readonly Rule[], family: Family, internal: readonly string[]): FlatRule[] =>
  runAtOnce(flattenRules(rules, family, internal));

/**
 * Returns the rules that can match packets of the family, in order, with yields. `internal`: the network's blocks. Throws for an invalid
 * address or port.
 */
export function* flattenRules(
  rules: readonly Rule[],
  family: Family,
  internal: readonly string[],
): Generator<void, FlatRule[]> {
  const inside = internal
    .map(parseAddresses)
    .filter((block) => block.family === family)
    .map(toSpan);
  const flat: FlatRule[] = [];
  for (const [index, rule] of rules.entries()) {
    const listed = rule.sourcePort !== "any" || rule.destinationPort !== "any";
    if (listed && (rule.protocol === "any" || rule.protocol === "icmp"))
      throw new Error(`rule ${index + 1} has ports, but its protocol has none`);
    const one: FlatRule = {
      index,
      allow: rule.allow,
      protocol: protocols(rule, family),
      source: addressSpans(rule.source, family, inside),
      destination: addressSpans(rule.destination, family, inside),
      sourcePort: ports(rule.sourcePort),
      destinationPort: ports(rule.destinationPort),
    };
    if (fields.every((field) => one[field].length > 0)) flat.push(one);
    yield;
  }
  return flat;
}

/** The first packet of a connection; ports are 0 if the protocol has none. `protocol` is the IANA number. */
export interface Packet {
  readonly protocol: number;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}

/** The decision on a packet. */
export interface PacketVerdict {
  readonly allow: boolean;
  /** Position of the rule that decided, from 0; null: no rule matched, or the firewall is disabled. */
  readonly rule: number | null;
}

/** Returns the decision of an enabled firewall with these rules, which are those of the packet's family. */
function decide(allow: boolean, rules: readonly FlatRule[], packet: Packet): PacketVerdict {
  const source = parseAddress(packet.source);
  const destination = parseAddress(packet.destination);
  const { protocol, sourcePort, destinationPort } = packet;
  const found = rules.find(
    (rule) =>
      contains(rule.protocol, protocol) &&
      contains(rule.source, source.value) &&
      contains(rule.destination, destination.value) &&
      contains(rule.sourcePort, sourcePort) &&
      contains(rule.destinationPort, destinationPort),
  );
  return found === undefined ? { allow, rule: null } : { allow: found.allow, rule: found.index };
}

const passes: PacketVerdict = { allow: true, rule: null };

/**
 * Returns a function that decides on packets. It assumes that the packet crosses the edge; packets inside the network never meet the rules.
 */
export function createJudge(firewall: Firewall, internal: readonly string[]): (packet: Packet) => PacketVerdict {
  const rules = { 4: flatten(firewall.rules, 4, internal), 6: flatten(firewall.rules, 6, internal) };
  return (packet) =>
    firewall.enabled ? decide(firewall.allow, rules[parseAddress(packet.source).family], packet) : passes;
}

/** Returns the same decision on one packet, with yields. */
export function* judgeOne(
  { enabled, allow, rules }: Firewall,
  internal: readonly string[],
  packet: Packet,
): Generator<void, PacketVerdict> {
  if (!enabled) return passes;
  return decide(allow, yield* flattenRules(rules, parseAddress(packet.source).family, internal), packet);
}

/** Returns whether both ends are in the network, so that the packet does not meet the rules. */
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
