/**
 * The firewall of a public network: rules as input and as output, and the test of a packet. The service parses the texts of addresses
 * and ports in `network/firewall`.
 */
import { type Static, Type } from "typebox";
import { boolean, date, integer, list, name, nullable, optional, shownAs, text, word } from "./common.ts";

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

const counter = (description: string) => nullable(integer(0, Number.MAX_SAFE_INTEGER, { description }));

/** A firewall rule with its counters. */
export const FirewallRule = Type.Object(
  {
    Number: integer(1, firewallLimits.rules, { description: "Position of the rule, from 1." }),
    Name: text(),
    Action: word(ruleActions),
    Protocol: word(ruleProtocols),
    Source: text(),
    SourcePort: text(),
    Destination: text(),
    DestinationPort: text(),
    Packets: counter("Since the rules were applied; `null` in lists."),
    Bytes: counter("Since the rules were applied; `null` in lists."),
    LastHit: nullable(
      date({
        description:
          "Time of the last matching packet, accurate to a few seconds and reset when the service restarts. `null`: no match, or in lists.",
      }),
    ),
  },
  { title: "FirewallRule" },
);
/** TypeScript type of this schema. */
export type FirewallRule = Static<typeof FirewallRule>;

/** The firewall of a public network. */
export const Firewall = Type.Object(
  {
    Enabled: boolean({ description: "`false`: all packets pass." }),
    DefaultRuleAction: word(ruleActions),
    Rules: list(FirewallRule),
    ConfirmBy: nullable(
      date({ description: "When an unconfirmed rule set expires. `null`: the rule set is confirmed." }),
    ),
  },
  { title: "Firewall" },
);
/** TypeScript type of this schema. */
export type Firewall = Static<typeof Firewall>;

/** 8192 characters hold 64 ranges of IPv6 addresses with blanks. */
const place = (description: string) => optional(text({ maxLength: 8192, default: "any", description }));
const addresses =
  "`any`, `internal` (the network), `external` (all other addresses), or up to 64 addresses, CIDR blocks and ranges, separated by commas.";
const ports = "`any`, or up to 64 ports and ranges such as `8000-8100`, separated by commas. Only with TCP and UDP.";

/** One rule of a request. Defaults are part of the schema, so that an absent field differs from a rejected one. */
export const FirewallRuleInput = Type.Object(
  {
    Name: optional(name({ minLength: 0, default: "" })),
    Action: word(ruleActions),
    Protocol: optional(word(ruleProtocols, { default: "Any" })),
    Source: place(addresses),
    SourcePort: place(ports),
    Destination: place(addresses),
    DestinationPort: place(ports),
  },
  shownAs(FirewallRule),
);
/** A parsed rule of a request. */
export type FirewallRuleInput = Static<typeof FirewallRuleInput>;

const Rules = optional(
  list(FirewallRuleInput, {
    maxItems: firewallLimits.rules,
    description: "Evaluated in this order; the first matching rule decides.",
  }),
);

/** Request to replace the rules of a firewall. */
export const FirewallInput = Type.Object(
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
  shownAs(Firewall),
);
/** A parsed firewall of a request. */
export type FirewallInput = Static<typeof FirewallInput>;

/** Values of `Protocol` of a test packet. */
export const packetProtocols = ["Tcp", "Udp", "Icmp"] as const;

/** Default source port of the test: the first port of the dynamic range (RFC 6335). */
export const dynamicPort = 49_152;

/** Request to test a packet. */
export const PacketInput = Type.Object({
  Protocol: word(packetProtocols),
  Source: text({ maxLength: 64, description: "One IP address." }),
  SourcePort: optional(integer(1, 65_535, { description: `Only with TCP and UDP. Default ${dynamicPort}.` })),
  Destination: text({ maxLength: 64, description: "One IP address." }),
  DestinationPort: optional(integer(1, 65_535, { description: "Required with TCP and UDP." })),
  Rules,
  DefaultRuleAction: optional(
    word(ruleActions, { description: "Verdict if no rule of `Rules` matches. Default: the stored one." }),
  ),
});
/** A parsed test packet. */
export type PacketInput = Static<typeof PacketInput>;

/** Verdict on a test packet. */
export const FirewallVerdict = Type.Object(
  {
    Verdict: word(ruleActions),
    Rule: nullable(
      integer(1, firewallLimits.rules, {
        description: "`Number` of the deciding rule. `null`: the default rule action decided.",
      }),
    ),
    Reason: text(),
  },
  { title: "FirewallVerdict" },
);
/** TypeScript type of this schema. */
export type FirewallVerdict = Static<typeof FirewallVerdict>;
