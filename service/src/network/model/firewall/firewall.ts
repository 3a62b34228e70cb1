/**
 * The firewall of a network: parses it from requests, and converts it for the router driver, for responses and for events. It is stored
 * as JSON with the field names of the API and canonical texts (docs/spec.md#firewall), so equal texts are equal firewalls. Stored
 * firewalls were parsed here, so their conversion needs no checks.
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
import { type FieldProblem, fieldError, fieldProblem, invalidFields } from "../../../base/error.ts";
import { printInTurns } from "../../../base/printjson.ts";
import { quote } from "../../../base/quote.ts";
import { runAtOnce } from "../../../base/turn.ts";
import type { RuleCount } from "../../../drivers/router/interface.ts";

/** A rule as it is stored, in canonical text. */
export interface StoredRule {
  readonly Name: string;
  readonly Action: RuleAction;
  readonly Protocol: RuleProtocol;
  readonly Source: string;
  readonly SourcePort: string;
  readonly Destination: string;
  readonly DestinationPort: string;
}

/** The JSON of the column `firewall`. */
export interface StoredFirewall {
  readonly Enabled: boolean;
  readonly DefaultRuleAction: RuleAction;
  readonly Rules: readonly StoredRule[];
}

/** The firewall of a new network. */
export const defaultFirewall: StoredFirewall = { Enabled: false, DefaultRuleAction: "Deny", Rules: [] };

/** Parses the column `firewall` of a row. */
export interface ParseFirewall {
  (row: { readonly firewall: string }): StoredFirewall;
}

/** Parses the firewall of a row. */
export const firewallOf: ParseFirewall = ({ firewall }) => JSON.parse(firewall) as StoredFirewall;

/** A parser that parses equal long firewalls once: they may have thousands of rules. */
export interface FirewallParser extends ParseFirewall {
  /** Notes the firewall of a text, so that it is not parsed. */
  note(text: string, firewall: StoredFirewall): void;
}

/** Characters of a firewall that is parsed each time: it would displace one that takes milliseconds. */
const shortFirewall = 4096;

/** Creates a parser that keeps the latest `most` long firewalls: for one request by default all. */
export function createFirewallParser(most = Number.POSITIVE_INFINITY): FirewallParser {
  const parsed = new Map<string, StoredFirewall>();
  const note = (text: string, firewall: StoredFirewall): void => {
    if (text.length < shortFirewall) return;
    parsed.delete(text);
    parsed.set(text, firewall);
    for (const old of parsed.keys()) if (parsed.size > most) parsed.delete(old);
  };
  const parse: ParseFirewall = (row) => {
    if (row.firewall.length < shortFirewall) return firewallOf(row);
    const firewall = parsed.get(row.firewall) ?? firewallOf(row);
    note(row.firewall, firewall);
    return firewall;
  };
  return Object.assign(parse, { note });
}

/** Returns the text of the column `firewall`, with yields. */
export function* firewallToText({ Enabled, DefaultRuleAction, Rules }: StoredFirewall): Generator<void, string> {
  return (yield* printInTurns({ Enabled, DefaultRuleAction, Rules })) ?? "";
}

/** Address families that rules may contain. */
export interface Families {
  readonly family6: boolean;
}

/** Parses a comma-separated list; returns the problem of its first invalid item. */
function readItems(text: string, read: (item: string) => string | FieldProblem): string | FieldProblem {
  const items = text.split(",");
  if (items.length > firewallLimits.items)
    return fieldProblem("too_long", `must have at most ${firewallLimits.items} items, not ${items.length}`);
  const canonical: string[] = [];
  for (const item of items) {
    const value = read(item.trim());
    if (typeof value !== "string") return value;
    canonical.push(value);
  }
  return canonical.join(",");
}

type Address = ReturnType<typeof parseAddress>;

/** Parses an IPv4 or IPv6 address; null: invalid. */
export function readAddress(text: string): Address | null {
  try {
    return parseAddress(text);
  } catch {
    return null;
  }
}

const keywords = ["any", "internal", "external"];
const format = ({ family, value }: Address): string => formatAddresses(family, { first: value, last: value });

/** Returns the block in canonical text, with host bits cleared; null: the prefix length is invalid. */
function formatBlock({ family, value }: Address, length: string): string | null {
  const free = (family === 4 ? 32 : 128) - Number(length);
  if (!/^(?:0|[1-9]\d{0,2})$/.test(length) || free < 0) return null;
  const first = (value >> BigInt(free)) << BigInt(free);
  return formatAddresses(family, { first, last: first + (1n << BigInt(free)) - 1n });
}

function readPlaceItem(item: string, { family6 }: Families): string | FieldProblem {
  if (keywords.includes(item))
    return fieldProblem("format_invalid", `must not combine ${quote(item)} with other items`);
  const invalid = () =>
    fieldProblem("format_invalid", `must be an address, a block, a range or a keyword, not ${quote(item)}`);
  const [start = "", end, ...more] = item.split("-").map((part) => part.trim());
  const [text = "", length, ...rest] = start.split("/");
  const first = readAddress(text);
  if (first === null || more.length > 0 || rest.length > 0) return invalid();
  if (first.family === 6 && !family6)
    return fieldProblem("format_invalid", `must be IPv4, because the network has no IPv6, not ${quote(item)}`);
  if (end === undefined) return length === undefined ? format(first) : (formatBlock(first, length) ?? invalid());
  const last = readAddress(end);
  if (length !== undefined || last === null || last.family !== first.family) return invalid();
  if (last.value < first.value)
    return fieldProblem("format_invalid", `must have the lower address of a range first, not ${quote(item)}`);
  return `${format(first)}-${format(last)}`;
}

function readPlace(text: string, families: Families): string | FieldProblem {
  // Fast path for the most frequent values, which are canonical.
  if (keywords.includes(text) || isIPv4(text)) return text;
  const place = text.trim().toLowerCase();
  if (place === "") return "any";
  return keywords.includes(place) ? place : readItems(place, (item) => readPlaceItem(item, families));
}

/** A single port in canonical text. */
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

/** Parses ports, which only TCP and UDP have. A rejected protocol is undefined and allows them. */
function readPortsOf(protocol: RuleProtocol | undefined, text: string): string | FieldProblem {
  const ports = readPorts(text);
  if ((protocol !== "Any" && protocol !== "Icmp") || ports === "any") return ports;
  return fieldProblem("port_not_allowed", `must be any with the protocol ${protocol}, not ${quote(text)}`);
}

/** Parses one rule. Calls `reject` for each invalid field, and uses "any" for it. */
function readRule(
  rule: Partial<FirewallRuleInput>,
  families: Families,
  reject: (field: keyof FirewallRuleInput, problem: FieldProblem) => void,
): StoredRule {
  const take = (field: keyof FirewallRuleInput, value: string | FieldProblem): string => {
    if (typeof value === "string") return value;
    reject(field, value);
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

/** Maximum number of reported errors. */
const maxErrors = 1000;

/** Parsed rules, and the errors of invalid ones. */
export interface ParsedRules {
  /** Whether IPv6 was allowed. */
  readonly family6: boolean;
  readonly rules: readonly StoredRule[];
  readonly errors: readonly FieldError[];
}

/** Parses the rules of a request. */
export type ReadRules = (inputs: readonly Partial<FirewallRuleInput>[], families: Families) => ParsedRules;

/** A parser that parses each list once. */
export interface RuleReader {
  readonly read: ReadRules;
  /** Parses a list with yields, so that `read` returns its result at once. */
  prepare(inputs: readonly Partial<FirewallRuleInput>[], families: Families): Generator<void, void>;
}

/** Creates a parser: a request's rules are validated before its transaction and stored in it. */
export function createRuleReader(): RuleReader {
  const cache = new WeakMap<readonly Partial<FirewallRuleInput>[], ParsedRules>();
  function* parse(inputs: readonly Partial<FirewallRuleInput>[], families: Families): Generator<void, ParsedRules> {
    const known = cache.get(inputs);
    if (known !== undefined && known.family6 === families.family6) return known;
    const parsed = yield* parseRules(inputs, families);
    cache.set(inputs, parsed);
    return parsed;
  }
  return {
    read: (inputs, families) => runAtOnce(parse(inputs, families)),
    *prepare(inputs, families) {
      yield* parse(inputs, families);
    },
  };
}

const readRules: ReadRules = (inputs, families) => runAtOnce(parseRules(inputs, families));

function* parseRules(inputs: readonly Partial<FirewallRuleInput>[], families: Families): Generator<void, ParsedRules> {
  const errors: FieldError[] = [];
  const rules: StoredRule[] = [];
  for (const [index, input] of inputs.entries()) {
    const reject = (field: keyof FirewallRuleInput, { code, must }: FieldProblem): void => {
      if (errors.length < maxErrors) errors.push(fieldError(`/Rules/${index}/${field}`, code, `${field} ${must}.`));
    };
    rules.push(readRule(input, families, reject));
    yield;
  }
  return { family6: families.family6, rules, errors };
}

/** Returns the errors of the rules. */
export const checkRules = (
  rules: readonly Partial<FirewallRuleInput>[],
  families: Families,
  read: ReadRules = readRules,
): FieldError[] => [...read(rules, families).errors];

/** Returns the rules in canonical text. Throws `validation_failed` with all errors. */
export function normaliseRules(
  inputs: readonly FirewallRuleInput[],
  families: Families,
  read: ReadRules = readRules,
): readonly StoredRule[] {
  // The list itself is passed on where possible: the parser finds its result by identity.
  const isComplete = inputs.every(({ Protocol }) => Protocol !== undefined);
  const complete = isComplete ? inputs : inputs.map((input) => ({ ...input, Protocol: input.Protocol ?? "Any" }));
  const { rules, errors } = read(complete, families);
  if (errors.length > 0) throw invalidFields([...errors]);
  return rules;
}

/** Returns the errors that the schema cannot find. Fields that the schema rejected are missing. A quota limits the number of rules. */
export function checkFirewall(body: Partial<FirewallInput>, families: Families, read?: ReadRules): FieldError[] {
  const { Confirm, Rules = [], ...others } = body;
  const otherFields = [...Object.keys(others), ...(body.Rules === undefined ? [] : ["Rules"])];
  const errors = checkRules(Rules, families, read);
  if (Confirm === false && otherFields.length === 0)
    return [
      fieldError(
        "/Confirm",
        "value_not_allowed",
        "Confirm must be true if it is the only field of the body, not false.",
      ),
    ];
  if (Confirm !== true || otherFields.length === 0) return errors;
  const detail = `Confirm must be the only field of the body, without ${otherFields.join(", ")}.`;
  return [...errors, fieldError("/Confirm", "fields_conflict", detail)];
}

/** Returns the firewall of a request, with defaults for absent fields. Throws `validation_failed` with all errors of its rules. */
export function normalise(body: FirewallInput, families: Families, read?: ReadRules): StoredFirewall {
  const { Enabled = true, DefaultRuleAction = "Deny", Rules = [] } = body;
  return { Enabled, DefaultRuleAction, Rules: normaliseRules(Rules, families, read) };
}

/**
 * Returns the response body. `confirmBy`: milliseconds since 1970. `counts`: counters in the order of the rules; a missing one counts
 * as 0; null: counters are not shown, as in lists.
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

/** Maximum number of rules in an event; equals the default quota. */
const maxEventRules = 500;

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
 * Returns the response body without counters, for events and the audit log. Of more than 500 rules it contains only those from the
 * first to the last that differ from `other`, at most 500; `Omitted` is the number of the others. Otherwise each change of a large
 * firewall would store megabytes.
 */
export function abridge(
  firewall: StoredFirewall,
  other: StoredFirewall | null,
  confirmBy: number | null,
): Firewall & { readonly Omitted?: number } {
  const { Rules } = firewall;
  const form = { confirmBy, counts: null };
  if (Rules.length <= maxEventRules) return showFirewall(firewall, form);
  const otherRules = other?.Rules ?? [];
  const most = Math.min(Rules.length, otherRules.length);
  let head = 0;
  while (head < most && isSame(Rules[head] as StoredRule, otherRules[head])) head++;
  let tail = 0;
  while (tail < most - head && isSame(Rules.at(-1 - tail) as StoredRule, otherRules.at(-1 - tail))) tail++;
  const included = Rules.slice(head, Math.min(Rules.length - tail, head + maxEventRules));
  return {
    ...showFirewall({ ...firewall, Rules: [] }, form),
    Rules: included.map((rule, index) => showRule(rule, head + index, null)),
    Omitted: Rules.length - included.length,
  };
}
