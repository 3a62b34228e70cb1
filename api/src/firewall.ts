/**
 * The firewall of a public network: its rules as requests write them and as answers show them, and the check that asks what would
 * become of a packet. What texts of addresses and ports may say is read in the service's `network/firewall`.
 */
import { type Static, Type } from "typebox";
import { boolean, date, integer, list, name, nullable, optional, shownAs, text, word } from "./common.ts";

export const ruleActions = ["Allow", "Deny"] as const;
export type RuleAction = (typeof ruleActions)[number];
export const ruleProtocols = ["Any", "Tcp", "Udp", "TcpAndUdp", "Icmp"] as const;
export type RuleProtocol = (typeof ruleProtocols)[number];

/** Limits (docs/spec.md#defaults-and-limits). `rules` is the highest quota that can be set; the usual one is 500. */
export const firewallLimits = { rules: 10_000, items: 64, confirmSeconds: { minimum: 10, maximum: 3600 } } as const;

const counter = (description: string) => nullable(integer(0, Number.MAX_SAFE_INTEGER, { description }));

export const FirewallRule = Type.Object(
  {
    Number: integer(1, firewallLimits.rules, { description: "Position, from 1." }),
    Name: text(),
    Action: word(ruleActions),
    Protocol: word(ruleProtocols),
    Source: text(),
    SourcePort: text(),
    Destination: text(),
    DestinationPort: text(),
    Packets: counter("Since the set came into force; `null` in lists."),
    Bytes: counter("Since the set came into force; `null` in lists."),
    LastHit: nullable(
      date({
        description: "To some seconds, and forgotten by a restart of the service; `null`: none was seen, or in lists.",
      }),
    ),
  },
  { title: "FirewallRule" },
);
export type FirewallRule = Static<typeof FirewallRule>;

export const Firewall = Type.Object(
  {
    Enabled: boolean({ description: "`false`: everything passes." }),
    DefaultRuleAction: word(ruleActions),
    Rules: list(FirewallRule),
    ConfirmBy: nullable(date({ description: "Until when the set waits for confirmation." })),
  },
  { title: "Firewall" },
);
export type Firewall = Static<typeof Firewall>;

/** Longer than 64 ranges of IPv6 addresses with blanks between them. */
const place = (description: string) => optional(text({ maxLength: 8192, default: "any", description }));
const addresses =
  "`any`, `internal` (the network), `external` (all else), or up to 64 addresses, blocks and ranges with commas.";
const ports = "`any`, or up to 64 ports and ranges such as `8000-8100` with commas; only with TCP and UDP.";

/** A rule as requests write it; a default stands here so that an absent field is told apart from one that was refused. */
export const RuleWish = Type.Object(
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
export type RuleWish = Static<typeof RuleWish>;

const Rules = optional(
  list(RuleWish, { maxItems: firewallLimits.rules, description: "Tried in this order; the first that fits decides." }),
);

export const FirewallWish = Type.Object(
  {
    Enabled: optional(boolean({ description: "Default `true`." })),
    DefaultRuleAction: optional(word(ruleActions, { description: "What happens if no rule fits. Default `Deny`." })),
    Rules,
    ConfirmWithin: optional(
      integer(firewallLimits.confirmSeconds.minimum, firewallLimits.confirmSeconds.maximum, {
        description: "Seconds: unless the new set is confirmed in time, the last confirmed one comes back.",
      }),
    ),
    Confirm: optional(boolean({ description: "`true`, alone in the body: keep the set that waits." })),
  },
  shownAs(Firewall),
);
export type FirewallWish = Static<typeof FirewallWish>;

export const packetProtocols = ["Tcp", "Udp", "Icmp"] as const;

/** What a client has no way to choose, and rules seldom look at: the first port of RFC 6335's dynamic range. */
export const dynamicPort = 49_152;

export const PacketWish = Type.Object({
  Protocol: word(packetProtocols),
  Source: text({ maxLength: 64, description: "One address." }),
  SourcePort: optional(integer(1, 65_535, { description: `With TCP and UDP. Default ${dynamicPort}.` })),
  Destination: text({ maxLength: 64, description: "One address." }),
  DestinationPort: optional(integer(1, 65_535, { description: "Required with TCP and UDP." })),
  Rules,
  DefaultRuleAction: optional(
    word(ruleActions, { description: "Of the given `Rules`, if none fits. Default: as stored." }),
  ),
});
export type PacketWish = Static<typeof PacketWish>;

export const FirewallVerdict = Type.Object(
  {
    Verdict: word(ruleActions),
    Rule: nullable(integer(1, firewallLimits.rules, { description: "`Number` of the rule that decided." })),
    Reason: text(),
  },
  { title: "FirewallVerdict" },
);
export type FirewallVerdict = Static<typeof FirewallVerdict>;
