/**
 * The firewall of a public network: rules as input and as output, and the test of a packet. The service parses the texts of addresses
 * and ports in `network/firewall`.
 */
import type { Static } from "typebox";
import { boolean, date, integer, list, name, nullable, object, optional, shownAs, text, word } from "./common.ts";
import { forms, requires } from "./form.ts";

/** Values of `Action`: what happens to a packet that the rule matches. */
export const ruleActions = ["Allow", "Deny"] as const;
/** A value of `ruleActions`. */
export type RuleAction = (typeof ruleActions)[number];
/** Protocols that a rule can match. */
export const ruleProtocols = ["Any", "Tcp", "Udp", "TcpAndUdp", "Icmp"] as const;
/** A value of `ruleProtocols`. */
export type RuleProtocol = (typeof ruleProtocols)[number];

/** Limits (docs/spec.md#defaults-and-limits). `rules` is the maximum of the quota, whose default is 500. */
export const firewallLimits = {
  rules: 10_000,
  items: 64,
  bytes: 16 * 2 ** 20,
  confirmSeconds: { minimum: 10, maximum: 3600 },
} as const;

const counter = <const D extends string>(description: D) =>
  nullable(integer(0, Number.MAX_SAFE_INTEGER, { description }));

/** A firewall rule with its counters. */
export const FirewallRule = object("FirewallRule", "A firewall rule with its counters.", {
  Number: integer(1, firewallLimits.rules, { description: "Position of the rule, from 1." }),
  Name: text({ description: "Name of the rule; may be empty." }),
  Action: word(ruleActions, { description: "Verdict on packets that match." }),
  Protocol: word(ruleProtocols, { description: "Protocol that matches." }),
  Source: text({ description: "Source addresses that match." }),
  SourcePort: text({ description: "Source ports that match." }),
  Destination: text({ description: "Destination addresses that match." }),
  DestinationPort: text({ description: "Destination ports that match." }),
  Packets: counter("Matching packets since the rules were applied; `null` in lists."),
  Bytes: counter("Matching bytes since the rules were applied; `null` in lists."),
  LastHit: nullable(
    date({
      description:
        "Time of the last matching packet, accurate to a few seconds and reset when the service restarts. `null`: no match, or in lists.",
    }),
  ),
});
/** TypeScript type of this schema. */
export type FirewallRule = Static<typeof FirewallRule>;

/** The firewall of a public network. */
export const Firewall = object("Firewall", "The firewall of a public network.", {
  Enabled: boolean({ description: "`false`: all packets pass." }),
  DefaultRuleAction: word(ruleActions, { description: "Verdict if no rule matches." }),
  Rules: list(FirewallRule, { description: "Evaluated in this order; the first matching rule decides." }),
  ConfirmBy: nullable(
    date({ description: "When an unconfirmed rule set expires. `null`: the rule set is confirmed." }),
  ),
});
/** TypeScript type of this schema. */
export type Firewall = Static<typeof Firewall>;

/** 8192 characters hold 64 ranges of IPv6 addresses with blanks. */
const place = <const D extends string>(description: D) =>
  optional(text({ maxLength: 8192, default: "any", description }));
const addresses =
  "`any`, `internal` (the network), `external` (all other addresses), or up to 64 addresses, CIDR blocks and ranges, separated by commas.";
const ports = "`any`, or up to 64 ports and ranges such as `8000-8100`, separated by commas. Only with TCP and UDP.";

/** One rule of a request. Defaults are part of the schema, so that an absent field differs from a rejected one. */
export const FirewallRuleInput = object(
  "FirewallRuleRequest",
  "A firewall rule.",
  {
    Name: optional(name({ minLength: 0, default: "", description: "Name of the rule." })),
    Action: word(ruleActions, { description: "Verdict on packets that match." }),
    Protocol: optional(word(ruleProtocols, { default: "Any", description: "Protocol that matches." })),
    Source: place(`Source addresses that match: ${addresses}`),
    SourcePort: place(`Source ports that match: ${ports}`),
    Destination: place(`Destination addresses that match: ${addresses}`),
    DestinationPort: place(`Destination ports that match: ${ports}`),
  },
  shownAs(FirewallRule),
);
/** TypeScript type of this schema. */
export type FirewallRuleInput = Static<typeof FirewallRuleInput>;

const Rules = optional(
  list(FirewallRuleInput, {
    maxItems: firewallLimits.rules,
    description: "Evaluated in this order; the first matching rule decides.",
  }),
);

/** Request to replace the rules of a firewall. */
export const FirewallInput = object(
  "ConfigureFirewallRequest",
  "A complete set of rules, or the confirmation of the set that waits for it.",
  {
    Enabled: optional(boolean({ description: "`false`: all packets pass. Default `true`." })),
    DefaultRuleAction: optional(word(ruleActions, { description: "Verdict if no rule matches. Default `Deny`." })),
    Rules,
    ConfirmWithin: optional(
      integer(firewallLimits.confirmSeconds.minimum, firewallLimits.confirmSeconds.maximum, {
        description: "Seconds until the last confirmed rule set returns, unless the new one is confirmed.",
      }),
    ),
    Confirm: optional(boolean({ description: "`true`, as the only field: confirm the applied rule set." })),
  },
  {
    ...shownAs(Firewall),
    ...forms([
      {
        title: "SetFirewallRequest",
        description: "Replaces all rules.",
        where: { Confirm: [null] },
      },
      {
        title: "ConfirmFirewallRequest",
        description: "Confirms the set that waits for it.",
        where: { Confirm: [true] },
        without: ["Enabled", "DefaultRuleAction", "Rules", "ConfirmWithin"],
      },
    ]),
  },
);
/** TypeScript type of this schema. */
export type FirewallInput = Static<typeof FirewallInput>;

/** Values of `Protocol` of a test packet. */
export const packetProtocols = ["Tcp", "Udp", "Icmp"] as const;

/** Default source port of the test: the first port of the dynamic range (RFC 6335). */
export const dynamicPort = 49_152;

/** Request to test a packet. */
export const PacketInput = object(
  "CheckFirewallRequest",
  "The first packet of a connection.",
  {
    Protocol: word(packetProtocols, { description: "Protocol of the packet." }),
    Source: text({ maxLength: 64, description: "One IP address." }),
    SourcePort: optional(integer(1, 65_535, { description: `Only with TCP and UDP. Default ${dynamicPort}.` })),
    Destination: text({ maxLength: 64, description: "One IP address." }),
    DestinationPort: optional(integer(1, 65_535, { description: "Required with TCP and UDP." })),
    Rules,
    DefaultRuleAction: optional(
      word(ruleActions, { description: "Verdict if no rule of `Rules` matches. Default: the stored one." }),
    ),
  },
  {
    ...requires({ DefaultRuleAction: "Rules" }),
    ...forms([
      {
        title: "CheckPortsRequest",
        description: "A packet of TCP or UDP.",
        where: { Protocol: ["Tcp", "Udp"] },
        needs: ["DestinationPort"],
      },
      {
        title: "CheckIcmpRequest",
        description: "A packet of ICMP.",
        where: { Protocol: ["Icmp"] },
        without: ["SourcePort", "DestinationPort"],
      },
    ]),
  },
);
/** TypeScript type of this schema. */
export type PacketInput = Static<typeof PacketInput>;

/** Verdict on a test packet. */
export const FirewallVerdict = object("FirewallVerdict", "Verdict on a test packet.", {
  Verdict: word(ruleActions, { description: "Verdict on the packet." }),
  Rule: nullable(
    integer(1, firewallLimits.rules, {
      description: "`Number` of the deciding rule. `null`: the default rule action decided.",
    }),
  ),
  Reason: text({ description: "Why, in one sentence." }),
});
/** TypeScript type of this schema. */
export type FirewallVerdict = Static<typeof FirewallVerdict>;
