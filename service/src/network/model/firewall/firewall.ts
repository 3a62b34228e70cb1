/**
 * A firewall as the table keeps it: JSON in the words of the API and in canonical text (docs/spec.md#firewall), so that it is shown as it
 * is stored and a comparison of texts tells whether a request changes anything. What is stored was read here, so rendering it for
 * the router needs no checks.
 */
import { isIPv4 } from "node:net";
import { formatDate } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import {
  type Firewall,
  type FirewallInput,
  type FirewallRule,
  type FirewallRuleInput,
  firewallLimits,
  type RuleAction,
  type RuleProtocol,
} from "@brume/api/firewall.ts";
import { formatAddresses, parseAddress } from "../../../base/address.ts";
import { fieldError, invalidFields } from "../../../base/error.ts";
import { type FieldProblem, fieldProblem } from "../../../base/fieldproblem.ts";
import { quote } from "../../../base/quote.ts";
import type {
  AddressMatch,
  Firewall as FirewallImage,
  Ports,
  Protocol,
  RuleCount,
} from "../../../drivers/router/interface.ts";

export interface StoredRule {
  readonly Name: string;
  readonly Action: RuleAction;
  readonly Protocol: RuleProtocol;
  readonly Source: string;
  readonly SourcePort: string;
  readonly Destination: string;
  readonly DestinationPort: string;
}

export interface StoredFirewall {
  readonly Enabled: boolean;
  readonly DefaultRuleAction: RuleAction;
  readonly Rules: readonly StoredRule[];
}

/** Of a new network. */
export const defaultFirewall: StoredFirewall = { Enabled: false, DefaultRuleAction: "Deny", Rules: [] };

export type ParseFirewall = (row: { readonly firewall: string }) => StoredFirewall;

/** Of a row. */
export const firewallOf: ParseFirewall = ({ firewall }) => JSON.parse(firewall) as StoredFirewall;

/** The same for one request, whose rows have few different firewalls with maybe thousands of rules: each is parsed once. */
export function createFirewallParser(): ParseFirewall {
  const parsed = new Map<string, StoredFirewall>();
  return (row) => {
    let firewall = parsed.get(row.firewall);
    if (firewall === undefined) parsed.set(row.firewall, (firewall = firewallOf(row)));
    return firewall;
  };
}

/** For a row. */
export const firewallToText = (firewall: StoredFirewall): string => JSON.stringify(firewall);

/** What a network has that rules may speak of. */
export interface Families {
  readonly family6: boolean;
}

/** Reads a list with commas item by item; the first item that is refused speaks for all. */
function readItems(text: string, read: (item: string) => string | FieldProblem): string | FieldProblem {
  const items = text.split(",");
  if (items.length > firewallLimits.items)
    return fieldProblem("too_long", `must have at most ${firewallLimits.items} items, not ${items.length}`);
  const canonical: string[] = [];
  for (const item of items) {
    const one = read(item.trim());
    if (typeof one !== "string") return one;
    canonical.push(one);
  }
  return canonical.join(",");
}

type Address = ReturnType<typeof parseAddress>;

export function readAddress(text: string): Address | null {
  try {
    return parseAddress(text);
  } catch {
    return null;
  }
}

const places = ["any", "internal", "external"];
const format = ({ family, value }: Address): string => formatAddresses(family, { first: value, last: value });

/** With the host bits cleared; null: the length is none. */
function formatBlock({ family, value }: Address, length: string): string | null {
  const free = (family === 4 ? 32 : 128) - Number(length);
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length) || free < 0) return null;
  const first = (value >> BigInt(free)) << BigInt(free);
  return formatAddresses(family, { first, last: first + (1n << BigInt(free)) - 1n });
}

function readPlaceItem(item: string, { family6 }: Families): string | FieldProblem {
  if (places.includes(item)) return fieldProblem("format_invalid", `must have ${quote(item)} alone or not at all`);
  const odd = () =>
    fieldProblem("format_invalid", `must be an address, a block, a range or a word, not ${quote(item)}`);
  const [start = "", end, ...more] = item.split("-").map((part) => part.trim());
  const [text = "", length, ...rest] = start.split("/");
  const first = readAddress(text);
  if (first === null || more.length > 0 || rest.length > 0) return odd();
  if (first.family === 6 && !family6)
    return fieldProblem("format_invalid", `must be IPv4, since the network has no IPv6, not ${quote(item)}`);
  if (end === undefined) return length === undefined ? format(first) : (formatBlock(first, length) ?? odd());
  const last = readAddress(end);
  if (length !== undefined || last === null || last.family !== first.family) return odd();
  if (last.value < first.value)
    return fieldProblem("format_invalid", `must have the lower address of a range first, not ${quote(item)}`);
  return `${format(first)}-${format(last)}`;
}

function readPlace(text: string, families: Families): string | FieldProblem {
  // By far the most, and as they are written out.
  if (places.includes(text) || isIPv4(text)) return text;
  const place = text.trim().toLowerCase();
  if (place === "") return "any";
  return places.includes(place) ? place : readItems(place, (item) => readPlaceItem(item, families));
}

/** One port as it is written out. */
const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535;

function readPortItem(item: string): string | FieldProblem {
  const [, start, end = start] = /^(\d+)(?:\s*-\s*(\d+))?$/.exec(item) ?? [];
  if (start === undefined)
    return fieldProblem("format_invalid", `must be any, a port or a range such as 8000-8100, not ${quote(item)}`);
  const [first, last] = [Number(start), Number(end)];
  for (const port of [first, last])
    if (port < 1 || port > 65_535)
      return fieldProblem("out_of_range", `must have ports between 1 and 65535, not ${quote(item)}`);
  if (last < first)
    return fieldProblem("format_invalid", `must have the lower port of a range first, not ${quote(item)}`);
  return item.includes("-") ? `${first}-${last}` : String(first);
}

function readPorts(text: string): string | FieldProblem {
  if (text === "any" || isPort(text)) return text;
  const ports = text.trim().toLowerCase();
  return ports === "" || ports === "any" ? "any" : readItems(ports, readPortItem);
}

/** Ports are those of TCP and UDP. A protocol that was refused already is none that forbids them. */
function readPortsOf(protocol: RuleProtocol | undefined, text: string): string | FieldProblem {
  const ports = readPorts(text);
  if ((protocol !== "Any" && protocol !== "Icmp") || ports === "any") return ports;
  return fieldProblem("port_not_allowed", `must be any with the protocol ${protocol}, not ${quote(text)}`);
}

/** Reads one rule; what is refused is told, and nothing is made of it. */
function readRule(
  rule: Partial<FirewallRuleInput>,
  families: Families,
  tell: (field: keyof FirewallRuleInput, refusal: FieldProblem) => void,
): StoredRule {
  const take = (field: keyof FirewallRuleInput, read: string | FieldProblem): string => {
    if (typeof read === "string") return read;
    tell(field, read);
    return "any";
  };
  return {
    Name: rule.Name ?? "",
    Action: rule.Action ?? "Deny",
    Protocol: rule.Protocol ?? "Any",
    Source: take("Source", readPlace(rule.Source ?? "any", families)),
    SourcePort: take("SourcePort", readPortsOf(rule.Protocol, rule.SourcePort ?? "any")),
    Destination: take("Destination", readPlace(rule.Destination ?? "any", families)),
    DestinationPort: take("DestinationPort", readPortsOf(rule.Protocol, rule.DestinationPort ?? "any")),
  };
}

/** As many as reading tells of. */
const maxFaults = 1000;

export interface Reading {
  readonly family6: boolean;
  readonly rules: readonly StoredRule[];
  readonly faults: readonly FieldError[];
}

export type ReadRules = (inputs: readonly Partial<FirewallRuleInput>[], families: Families) => Reading;

/** Reads each list of rules once: those of a request are checked before its transaction, and stored in it. */
export function createRuleReader(): ReadRules {
  const readings = new WeakMap<readonly Partial<FirewallRuleInput>[], Reading>();
  return (inputs, families) => {
    const known = readings.get(inputs);
    if (known !== undefined && known.family6 === families.family6) return known;
    const reading = readRules(inputs, families);
    readings.set(inputs, reading);
    return reading;
  };
}

function readRules(inputs: readonly Partial<FirewallRuleInput>[], families: Families): Reading {
  const faults: FieldError[] = [];
  const rules = inputs.map((input, index) =>
    readRule(input, families, (field, { code, must }) => {
      if (faults.length < maxFaults) faults.push(fieldError(`/Rules/${index}/${field}`, code, `${field} ${must}.`));
    }),
  );
  return { family6: families.family6, rules, faults };
}

export const checkRules = (
  rules: readonly Partial<FirewallRuleInput>[],
  families: Families,
  read: ReadRules = readRules,
): FieldError[] => [...read(rules, families).faults];

/** The rules in canonical text. Throws `validation_failed` with every fault. */
export function normaliseRules(
  inputs: readonly FirewallRuleInput[],
  families: Families,
  read: ReadRules = readRules,
): readonly StoredRule[] {
  const isWhole = inputs.every(({ Protocol }) => Protocol !== undefined);
  const whole = isWhole ? inputs : inputs.map((input) => ({ ...input, Protocol: input.Protocol ?? "Any" }));
  const { rules, faults } = read(whole, families);
  if (faults.length > 0) throw invalidFields([...faults]);
  return rules;
}

/** What the schema cannot say of a request; fields that it refused are missing. How many rules there may be is a quota. */
export function checkFirewall(body: Partial<FirewallInput>, families: Families, read?: ReadRules): FieldError[] {
  const { Confirm, Rules = [], ...others } = body;
  const beside = [...Object.keys(others), ...(body.Rules === undefined ? [] : ["Rules"])];
  const faults = checkRules(Rules, families, read);
  if (Confirm === false && beside.length === 0)
    return [
      fieldError("/Confirm", "value_not_allowed", "Confirm must be true when it is alone in the body, not false."),
    ];
  if (Confirm !== true || beside.length === 0) return faults;
  const detail = `Confirm must be alone in the body, not beside ${beside.join(", ")}.`;
  return [...faults, fieldError("/Confirm", "fields_conflict", detail)];
}

/** The set that a request asks for, what it leaves out being what 2.11 says. Throws `validation_failed` with every fault of its rules. */
export function normalise(body: FirewallInput, families: Families, read?: ReadRules): StoredFirewall {
  const { Enabled = true, DefaultRuleAction = "Deny", Rules = [] } = body;
  return { Enabled, DefaultRuleAction, Rules: normaliseRules(Rules, families, read) };
}

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

/** As the router driver takes it. */
export function toPort({ Enabled, DefaultRuleAction, Rules }: StoredFirewall): FirewallImage {
  return {
    enabled: Enabled,
    allow: DefaultRuleAction === "Allow",
    rules: Rules.map((rule) => ({
      allow: rule.Action === "Allow",
      protocol: protocols[rule.Protocol],
      source: placeOf(rule.Source),
      sourcePort: portsOf(rule.SourcePort),
      destination: placeOf(rule.Destination),
      destinationPort: portsOf(rule.DestinationPort),
    })),
  };
}

/**
 * The answer form. `confirmBy` in milliseconds since 1970. `counts` in the order of the rules as the router saw them, a missing one
 * being none; null: counters are not shown, as in lists.
 */
export function showFirewall(
  { Enabled, DefaultRuleAction, Rules }: StoredFirewall,
  { confirmBy, counts }: { readonly confirmBy: number | null; readonly counts: readonly RuleCount[] | null },
): Firewall {
  return {
    Enabled,
    DefaultRuleAction,
    Rules: Rules.map((rule, index) => showRule(rule, index, counts)),
    ConfirmBy: confirmBy === null ? null : formatDate(confirmBy),
  };
}

function showRule(rule: StoredRule, index: number, counts: readonly RuleCount[] | null): FirewallRule {
  const count = counts?.[index];
  const lastHit = count?.lastHit ?? null;
  return {
    Number: index + 1,
    Name: rule.Name,
    Action: rule.Action,
    Protocol: rule.Protocol,
    Source: rule.Source,
    SourcePort: rule.SourcePort,
    Destination: rule.Destination,
    DestinationPort: rule.DestinationPort,
    Packets: counts === null ? null : (count?.packets ?? 0),
    Bytes: counts === null ? null : (count?.bytes ?? 0),
    LastHit: lastHit === null ? null : formatDate(lastHit),
  };
}

/** So many rules are told in full; the usual quota. */
const mostTold = 500;

const isSame = (one: StoredRule, other: StoredRule | undefined): boolean =>
  other !== undefined &&
  one.Name === other.Name &&
  one.Action === other.Action &&
  one.Protocol === other.Protocol &&
  one.Source === other.Source &&
  one.SourcePort === other.SourcePort &&
  one.Destination === other.Destination &&
  one.DestinationPort === other.DestinationPort;

/**
 * For events and the audit, which would else hold megabytes for each change of a large firewall: the answer form without counters,
 * and of more than 500 rules only those from the first to the last that `other` does not have in its place, 500 at most, and how
 * many are left out.
 */
export function abridge(
  firewall: StoredFirewall,
  other: StoredFirewall | null,
  confirmBy: number | null,
): Firewall & { readonly Omitted?: number } {
  const { Rules } = firewall;
  const form = { confirmBy, counts: null };
  if (Rules.length <= mostTold) return showFirewall(firewall, form);
  const there = other?.Rules ?? [];
  const most = Math.min(Rules.length, there.length);
  let head = 0;
  while (head < most && isSame(Rules[head] as StoredRule, there[head])) head++;
  let tail = 0;
  while (tail < most - head && isSame(Rules.at(-1 - tail) as StoredRule, there.at(-1 - tail))) tail++;
  const told = Rules.slice(head, Math.min(Rules.length - tail, head + mostTold));
  return {
    ...showFirewall({ ...firewall, Rules: [] }, form),
    Rules: told.map((rule, index) => showRule(rule, head + index, null)),
    Omitted: Rules.length - told.length,
  };
}
