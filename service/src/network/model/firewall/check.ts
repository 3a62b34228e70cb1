/**
 * The firewall asked about one packet (docs/spec.md#firewall-check). The verdict is the router driver's own pure model of the rules and of the
 * edge, against which the rendered rules are tested with real packets; here it gets the reason in words.
 */
import type { FieldError } from "@brume/api/errors.ts";
import { dynamicPort, type FirewallVerdict, type PacketInput } from "@brume/api/firewall.ts";
import { fieldError, invalidFields } from "../../../base/error.ts";
import { quote } from "../../../base/quote.ts";
import { closedOf } from "../../../drivers/router/model/closedaddresses.ts";
import { type Opening, openTo, takes } from "../../../drivers/router/model/openings.ts";
import { createJudge, icmpOf, type Packet, staysInside, TCP, UDP } from "../../../drivers/router/model/verdict.ts";
import { checkRules, type Families, normaliseRules, readAddress, type StoredFirewall, toPort } from "./firewall.ts";

const ends = ["Source", "Destination"] as const;
const portFields = ["SourcePort", "DestinationPort"] as const;

/** What the schema cannot say of a question; fields that it refused are missing. */
export function checkPacket(body: Partial<PacketInput>, families: Families): FieldError[] {
  const faults: FieldError[] = [];
  const tell = (field: keyof PacketInput, code: FieldError["code"], must: string) =>
    faults.push(fieldError(`/${field}`, code, `${field} ${must}.`));
  for (const end of ends) {
    const text = body[end];
    if (text === undefined) continue;
    const address = readAddress(text);
    if (address === null) tell(end, "format_invalid", `must be one address such as 10.64.0.10, not ${quote(text)}`);
    else if (address.family === 6 && !families.family6)
      tell(end, "format_invalid", `must be IPv4, since the network has no IPv6, not ${quote(text)}`);
  }
  const [from, to] = ends.map((end) => readAddress(body[end] ?? ""));
  if (from && to && from.family !== to.family)
    tell(
      "Destination",
      "fields_conflict",
      `must be of the same family as Source, not ${quote(body.Destination ?? "")}`,
    );
  for (const field of portFields)
    if (body.Protocol === "Icmp" && body[field] !== undefined)
      tell(field, "port_not_allowed", `must be absent with the protocol Icmp, not ${body[field]}`);
  if ((body.Protocol === "Tcp" || body.Protocol === "Udp") && body.DestinationPort === undefined)
    tell("DestinationPort", "field_required", `is required with the protocol ${body.Protocol}`);
  if (body.Rules === undefined && body.DefaultRuleAction !== undefined)
    tell("DefaultRuleAction", "fields_conflict", "needs Rules beside it");
  return [...faults, ...checkRules(body.Rules ?? [], families)];
}

/** The network that is asked. */
export interface PacketQuestion extends Families {
  readonly firewall: StoredFirewall;
  /** Its blocks. */
  readonly internal: readonly string[];
  /** The edge's own addresses, inside the blocks and outside. */
  readonly edge: readonly string[];
  /** What the edge takes that is meant for itself. */
  readonly openings: readonly Opening[];
  /** Beyond the edge, what servers neither reach nor are reached from. */
  readonly closed: readonly string[];
}

const allow = (Reason: string): FirewallVerdict => ({ Verdict: "Allow", Rule: null, Reason });

/** Of a question that `checkPacket` finds no fault with. */
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

/** What happens to the first packet of such a connection. Throws `validation_failed` with every fault, as `checkPacket` finds them. */
export function judgePacket(body: PacketInput, asked: PacketQuestion): FirewallVerdict {
  const { firewall, internal, edge, family6 } = asked;
  const faults = checkPacket(body, { family6 });
  if (faults.length > 0) throw invalidFields(faults);
  const rules = body.Rules === undefined ? firewall.Rules : normaliseRules(body.Rules, { family6 });
  const set: StoredFirewall =
    body.Rules === undefined
      ? firewall
      : { Enabled: true, DefaultRuleAction: body.DefaultRuleAction ?? firewall.DefaultRuleAction, Rules: rules };
  const packet = packetOf(body);
  const isEdge = (text: string) => edge.some((own) => readAddress(own)?.value === readAddress(text)?.value);
  if (isEdge(packet.source)) return allow(`${packet.source} is the edge itself: what it sends, rules do not filter.`);
  if (isEdge(packet.destination)) return judgeOwn(packet, asked);
  if (staysInside(packet, internal))
    return allow("Both addresses are in the network: such traffic does not cross the edge and is not filtered.");
  const closed = closedOf(asked.closed, packet.source, packet.destination);
  if (closed !== null)
    return {
      Verdict: "Deny",
      Rule: null,
      Reason: `${closed} is closed to servers: such addresses are the host's or its provider's, and no rule opens them.`,
    };
  if (!set.Enabled) return allow("The firewall is not enabled: everything passes.");

  const { allow: passes, rule } = createJudge(toPort(set), internal)(packet);
  const Verdict = passes ? "Allow" : "Deny";
  const decisive = rule === null ? undefined : rules[rule];
  const named = decisive === undefined || decisive.Name === "" ? "" : ` (${decisive.Name})`;
  const looked = rules.slice(0, rule === null ? rules.length : rule + 1);
  const reasons = [
    rule === null
      ? `No rule fits, and DefaultRuleAction is ${Verdict}.`
      : `Rule ${rule + 1}${named} is the first that fits, and its Action is ${Verdict}.`,
  ];
  if (body.Protocol !== "Icmp" && body.SourcePort === undefined && looked.some((one) => one.SourcePort !== "any"))
    reasons.push(`SourcePort was taken to be ${dynamicPort}.`);
  if (isOutside(packet, internal))
    reasons.push(`Neither address is in ${internal.join(" or ")}, so this firewall never meets such a packet.`);
  return { Verdict, Rule: rule === null ? null : rule + 1, Reason: reasons.join(" ") };
}

/** Of a packet for the edge itself. */
function judgeOwn(packet: Packet, { internal, openings }: PacketQuestion): FirewallVerdict {
  const isInside = staysInside({ ...packet, destination: packet.source }, internal);
  const open = openTo(openings, isInside ? "inside" : "outside");
  const list = open.map(({ name, protocol, port }) =>
    port === null ? name : `${protocol.toUpperCase()} ${port} (${name})`,
  );
  return {
    Verdict: takes(open, packet) ? "Allow" : "Deny",
    Rule: null,
    Reason: `${packet.destination} is the edge itself, which rules do not filter: from ${isInside ? "the network" : "outside"} it takes ${list.join(", ")}, and nothing else.`,
  };
}

/** A packet to itself stays inside exactly if its address is inside. */
const isOutside = (packet: Packet, internal: readonly string[]): boolean =>
  !staysInside({ ...packet, destination: packet.source }, internal) &&
  !staysInside({ ...packet, source: packet.destination }, internal);
