/** Converts a stored firewall to the form of the router driver. Thousands of rules take many milliseconds, so it yields. */
import type { RuleProtocol } from "@brume/api/firewall.ts";
import { runAtOnce } from "../../../base/turn.ts";
import type { AddressMatch, Ports, Protocol, Firewall as RouterFirewall } from "../../../drivers/router/interface.ts";
import type { StoredFirewall } from "./firewall.ts";

const protocols: Readonly<Record<RuleProtocol, Protocol>> = {
  Any: "any",
  Tcp: "tcp",
  Udp: "udp",
  TcpAndUdp: "tcp-udp",
  Icmp: "icmp",
};

const placeOf = (text: string): AddressMatch =>
  text === "any" || text === "internal" || text === "external" ? text : text.split(",");

function portsOf(text: string): Ports {
  if (text === "any") return text;
  const port = Number(text);
  if (Number.isInteger(port)) return [{ first: port, last: port }];
  return text.split(",").map((item) => {
    const [first = "", last = first] = item.split("-");
    return { first: Number(first), last: Number(last) };
  });
}

/** Returns the firewall in the form of the router driver. */
export const toRouterFirewall = (firewall: StoredFirewall): RouterFirewall => runAtOnce(convertFirewall(firewall));

/** Returns the same as `toRouterFirewall`, with yields. */
export function* convertFirewall({
  Enabled,
  DefaultRuleAction,
  Rules,
}: StoredFirewall): Generator<void, RouterFirewall> {
  const rules: RouterFirewall["rules"][number][] = [];
  for (const rule of Rules) {
    rules.push({
      allow: rule.Action === "Allow",
      protocol: protocols[rule.Protocol],
      source: placeOf(rule.Source),
      sourcePort: portsOf(rule.SourcePort),
      destination: placeOf(rule.Destination),
      destinationPort: portsOf(rule.DestinationPort),
    });
    yield;
  }
  return { enabled: Enabled, allow: DefaultRuleAction === "Allow", rules };
}
