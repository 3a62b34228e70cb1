/**
 * Tests one packet against a firewall (docs/spec.md#firewall-check). The verdict comes from the router driver's pure model of the rules
 * and of the edge; tests compare the rendered rules with that model, using real packets. This module adds the reason.
 */
import type { FieldError } from "@brume/api/errors.ts";
import { dynamicPort, type FirewallVerdict, type PacketInput } from "@brume/api/firewall.ts";
import { fieldError, invalidFields } from "../../../base/error.ts";
import { quote } from "../../../base/quote.ts";
import { closedOf } from "../../../drivers/router/model/closedaddresses.ts";
import { type Opening, openTo, takes } from "../../../drivers/router/model/openings.ts";
import { icmpOf, judgeOne, type Packet, staysInside, TCP, UDP } from "../../../drivers/router/model/verdict.ts";
import {
  checkRules,
  createRuleReader,
  type Families,
  normaliseRules,
  type ReadRules,
  type RuleReader,
  readAddress,
  type StoredFirewall,
} from "./firewall.ts";
import { convertFirewall } from "./routerform.ts";

const ends = ["Source", "Destination"] as const;
const portFields = ["SourcePort", "DestinationPort"] as const;

/** Returns the errors that the schema cannot find. Fields that the schema rejected are missing in `body`. */
export function checkPacket(body: Partial<PacketInput>, families: Families, read?: ReadRules): FieldError[] {
  const errors: FieldError[] = [];
  const reject = (field: keyof PacketInput, code: FieldError["code"], must: string) =>
    errors.push(fieldError(`/${field}`, code, `${field} ${must}.`));
  for (const end of ends) {
    const text = body[end];
    if (text === undefined) continue;
    const address = readAddress(text);
    if (address === null) reject(end, "format_invalid", `must be one address such as 10.64.0.10, not ${quote(text)}`);
    else if (address.family === 6 && !families.family6)
      reject(end, "format_invalid", `must be IPv4, because the network has no IPv6, not ${quote(text)}`);
  }
  const [from, to] = ends.map((end) => readAddress(body[end] ?? ""));
  if (from && to && from.family !== to.family)
    reject(
      "Destination",
      "fields_conflict",
      `must be of the same family as Source, not ${quote(body.Destination ?? "")}`,
    );
  for (const field of portFields)
    if (body.Protocol === "Icmp" && body[field] !== undefined)
      reject(field, "port_not_allowed", `must be absent with the protocol Icmp, not ${body[field]}`);
  if ((body.Protocol === "Tcp" || body.Protocol === "Udp") && body.DestinationPort === undefined)
    reject("DestinationPort", "field_required", `is required with the protocol ${body.Protocol}`);
  if (body.Rules === undefined && body.DefaultRuleAction !== undefined)
    reject("DefaultRuleAction", "fields_conflict", "requires Rules");
  return [...errors, ...checkRules(body.Rules ?? [], families, read)];
}

/** The state of the network that a packet is tested against. */
export interface PacketContext extends Families {
  readonly firewall: StoredFirewall;
  /** Its blocks, IPv4 and IPv6. */
  readonly internal: readonly string[];
  /** The edge's own addresses, inside the blocks and outside. */
  readonly edge: readonly string[];
  /** Traffic to the edge itself that it accepts. */
  readonly openings: readonly Opening[];
  /** Addresses beyond the edge that servers cannot reach, and that cannot reach servers. */
  readonly closed: readonly string[];
}

const allow = (Reason: string): FirewallVerdict => ({ Verdict: "Allow", Rule: null, Reason });

/** Returns the packet of a valid input. */
function packetOf({ Protocol, Source, SourcePort, Destination, DestinationPort }: PacketInput): Packet {
  const icmp = icmpOf(readAddress(Source)?.family ?? 4);
  return {
    protocol: Protocol === "Tcp" ? TCP : Protocol === "Udp" ? UDP : icmp,
    source: Source,
    sourcePort: Protocol === "Icmp" ? 0 : (SourcePort ?? dynamicPort),
    destination: Destination,
    destinationPort: DestinationPort ?? 0,
  };
}

/**
 * Returns the verdict on the first packet of such a connection, with yields: there may be thousands of rules. Throws `validation_failed`
 * with all errors of `checkPacket`.
 */
export function* judgePacket(
  body: PacketInput,
  network: PacketContext,
  { prepare, read }: RuleReader = createRuleReader(),
): Generator<void, FirewallVerdict> {
  const { firewall, internal, edge, family6 } = network;
  yield* prepare(body.Rules ?? [], { family6 });
  const errors = checkPacket(body, { family6 }, read);
  if (errors.length > 0) throw invalidFields(errors);
  const rules = body.Rules === undefined ? firewall.Rules : normaliseRules(body.Rules, { family6 }, read);
  const set: StoredFirewall =
    body.Rules === undefined
      ? firewall
      : { Enabled: true, DefaultRuleAction: body.DefaultRuleAction ?? firewall.DefaultRuleAction, Rules: rules };
  const packet = packetOf(body);
  const isEdge = (text: string) => edge.some((own) => readAddress(own)?.value === readAddress(text)?.value);
  if (isEdge(packet.source))
    return allow(`${packet.source} is the router of the network: rules do not filter the packets that it sends.`);
  if (isEdge(packet.destination)) return judgeFromEdge(packet, network);
  if (staysInside(packet, internal))
    return allow("Both addresses are in the network: such traffic does not cross its router and is not filtered.");
  const closed = closedOf(network.closed, packet.source, packet.destination);
  if (closed !== null)
    return {
      Verdict: "Deny",
      Rule: null,
      Reason: `${closed} is closed to servers: such addresses are the host's or its provider's, and no rule opens them.`,
    };
  if (!set.Enabled) return allow("The firewall is not enabled: everything passes.");

  const { allow: passes, rule } = yield* judgeOne(yield* convertFirewall(set), internal, packet);
  const Verdict = passes ? "Allow" : "Deny";
  const decisive = rule === null ? undefined : rules[rule];
  const named = decisive === undefined || decisive.Name === "" ? "" : ` (${decisive.Name})`;
  const compared = rules.slice(0, rule === null ? rules.length : rule + 1);
  const reasons = [
    rule === null
      ? `No rule matches, and DefaultRuleAction is ${Verdict}.`
      : `Rule ${rule + 1}${named} is the first that matches, and its Action is ${Verdict}.`,
  ];
  if (body.Protocol !== "Icmp" && body.SourcePort === undefined && compared.some((one) => one.SourcePort !== "any"))
    reasons.push(`SourcePort was assumed to be ${dynamicPort}.`);
  if (isOutside(packet, internal))
    reasons.push(`Neither address is in ${internal.join(" or ")}, so this firewall never sees such a packet.`);
  return { Verdict, Rule: rule === null ? null : rule + 1, Reason: reasons.join(" ") };
}

/** Returns the verdict on a packet to the edge itself. */
function judgeFromEdge(packet: Packet, { internal, openings }: PacketContext): FirewallVerdict {
  const isInside = staysInside({ ...packet, destination: packet.source }, internal);
  const open = openTo(openings, isInside ? "inside" : "outside");
  const list = open.map(({ name, protocol, port }) =>
    port === null ? name : `${protocol.toUpperCase()} ${port} (${name})`,
  );
  return {
    Verdict: takes(open, packet) ? "Allow" : "Deny",
    Rule: null,
    Reason: `${packet.destination} is the router of the network, which rules do not filter: from ${isInside ? "the network" : "outside"} it accepts only ${list.join(", ")}.`,
  };
}

/** Neither address is inside. A packet from an address to itself stays inside exactly if the address is inside. */
const isOutside = (packet: Packet, internal: readonly string[]): boolean =>
  !staysInside({ ...packet, destination: packet.source }, internal) &&
  !staysInside({ ...packet, source: packet.destination }, internal);
