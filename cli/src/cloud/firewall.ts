/** Firewalls of a cloud file: as a request, and the difference to the present one. The service normalises rules in a dry run. */
import type { PublicNetwork } from "@brume/api/network.ts";
import type { Entry } from "../model/cloud/document.ts";
import { type FieldChange, isSame, type Planning } from "./change.ts";

type Firewall = PublicNetwork["Firewall"];
type FirewallBody = { Enabled?: boolean; DefaultRuleAction?: "Allow" | "Deny"; Rules?: object[] };

const ports = ["SourcePort", "DestinationPort"] as const;

/** Returns the firewall of an entry as a request: defaults of the service are filled in. */
export function firewallOf(entry: Entry): Required<FirewallBody> | undefined {
  const given = entry["Firewall"] as FirewallBody | undefined;
  if (given === undefined) return undefined;
  const rules = (given.Rules ?? []).map((rule) => {
    const one = { ...rule } as Record<string, string | number>;
    for (const port of ports) if (one[port] !== undefined) one[port] = String(one[port]);
    return one;
  });
  return { Enabled: given.Enabled ?? true, DefaultRuleAction: given.DefaultRuleAction ?? "Deny", Rules: rules };
}

const counters = new Set(["Number", "Packets", "Bytes", "LastHit"]);
/** What the service stores for fields that a request leaves out. */
export const ruleDefaults = {
  Name: "",
  Protocol: "Any",
  Source: "any",
  SourcePort: "any",
  Destination: "any",
  DestinationPort: "any",
};

/** Returns a rule without position and counters, with all fields. */
export function plainRule(rule: object): Record<string, unknown> {
  const fields = Object.entries(rule).filter(([name]) => !counters.has(name));
  return { ...ruleDefaults, ...Object.fromEntries(fields) };
}

/** Returns a rule as one line: `Allow Tcp external → internal:443 (web)`. */
function ruleText(rule: object): string {
  const one = plainRule(rule);
  const end = (address: unknown, port: unknown) =>
    `${String(address)}${port === "any" || port === "" ? "" : `:${String(port)}`}`;
  const name = one["Name"] === "" ? "" : ` (${String(one["Name"])})`;
  const [from, to] = [end(one["Source"], one["SourcePort"]), end(one["Destination"], one["DestinationPort"])];
  return `${String(one["Action"])} ${String(one["Protocol"])} ${from} → ${to}${name}`;
}

/** Returns the rules that differ; equal ones at the begin and the end are left out. */
function diffRules(before: readonly object[], after: readonly object[]): FieldChange[] {
  const [old, now] = [before.map(ruleText), after.map(ruleText)];
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start++;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++;
  const place = (index: number) => `Firewall rule ${index + 1}`;
  return [
    ...old
      .slice(start, old.length - end)
      .map((rule, index) => ({ field: place(start + index), before: rule, after: null })),
    ...now
      .slice(start, now.length - end)
      .map((rule, index) => ({ field: place(start + index), before: null, after: rule })),
  ];
}

/** Returns the difference of two firewalls. */
export function diffFirewall(before: Firewall, after: FirewallBody): FieldChange[] {
  const fields = (["Enabled", "DefaultRuleAction"] as const)
    .filter((name) => before[name] !== after[name])
    .map((name) => ({ field: `Firewall ${name}`, before: before[name], after: after[name] }));
  const rules = isSame(before.Rules.map(plainRule), (after.Rules ?? []).map(plainRule))
    ? []
    : diffRules(before.Rules, after.Rules ?? []);
  const waits =
    before.ConfirmBy === null ? [] : [{ field: "Firewall ConfirmBy", before: before.ConfirmBy, after: null }];
  return [...fields, ...rules, ...waits];
}

/** Returns the difference to the firewall of the file. */
export async function planFirewall(
  { client, signal }: Planning,
  current: PublicNetwork,
  body: Required<FirewallBody>,
): Promise<FieldChange[]> {
  if (diffFirewall(current.Firewall, body).length === 0) return [];
  const input = { path: { id: current.Id }, body: body as never };
  return diffFirewall(current.Firewall, (await client.configureFirewall(input, { dryRun: true, signal })).Firewall);
}
