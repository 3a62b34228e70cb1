/**
 * Renders a network's firewall as one text for `nft -f -`, which replaces the old rules between two packets. All later packets meet the new
 * rules, including packets of live connections, so connections that the new rules do not allow end immediately. All names in the text are
 * generated and all addresses are printed from numbers. The digest of the text is the name of a counter, so that the kernel stores it with
 * the rules and returns it with their counts.
 */
import { createHash } from "node:crypto";
import { complement, type Family, formatAddresses } from "../../../base/address.ts";
import { runAtOnce } from "../../../base/turn.ts";
import type { Firewall } from "../interface.ts";
import { BRIDGE } from "../model/name.ts";
import { type Field, flattenRules, fullRange, type Span } from "../model/verdict.ts";
import { buildTree, type Chain, type Test } from "./tree.ts";

/**
 * Environment of nft. Loading thousands of rules needs memory in a million small pieces. With these settings glibc (from 2.35) gets it in
 * huge pages and returns nothing before the end, which saves a tenth of the time. Other C libraries ignore them.
 */
export const environment = {
  GLIBC_TUNABLES: "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:glibc.malloc.trim_threshold=1073741824",
};

const indent = (lines: readonly string[]): string => lines.map((line) => `  ${line}\n`).join("");

/** Renders one complete table. It uses `delete` because `flush` leaves counters and sets. `digest`: default that of the text. */
export const tableText = (family: "inet" | "bridge", name: string, body: readonly string[], digest?: string): string =>
  fullTable(family, name, indent(body), digest);

function fullTable(
  family: "inet" | "bridge",
  name: string,
  text: string,
  digest = createHash("sha256").update(text).digest("hex").slice(0, 16),
): string {
  const head = `add table ${family} ${name}\ndelete table ${family} ${name}\ntable ${family} ${name} {\n`;
  return `${head}  counter d_${digest} { }\n${text}}\n`;
}

/** Removes the deletion, for a kernel without such a table: a deletion waits for every packet in flight. */
export const firstText = (text: string): string => text.replace(/^add table .*\ndelete table .*\n/, "");

/** Returns the digest in the text of a table. */
export const digestOf = (text: string): string => /counter d_([0-9a-f]{16}) /.exec(text)?.[1] ?? "";

/** Match keys. All refer to the first packet of the connection, so that new rules judge a live connection like a new one. */
const keys: Record<Family, Record<Field, string>> = {
  4: keysOf("ip"),
  6: keysOf("ip6"),
};

function keysOf(family: "ip" | "ip6"): Record<Field, string> {
  return {
    protocol: "meta l4proto",
    source: `ct original ${family} saddr`,
    destination: `ct original ${family} daddr`,
    sourcePort: "ct original proto-src",
    destinationPort: "ct original proto-dst",
  };
}

const isPort = (field: Field): boolean => field === "sourcePort" || field === "destinationPort";

function rangeText(field: Field, family: Family, range: Span): string {
  if (field === "source" || field === "destination") return formatAddresses(family, range);
  return range.first === range.last ? `${range.first}` : `${range.first}-${range.last}`;
}

/** Named sets of one table. Each list is written once; anonymous sets are avoided because thousands of them are slow in the kernel. */
interface Sets {
  nameOf(field: Field, family: Family, ranges: readonly Span[]): string;
  lines(): string[];
}

function createSets(): Sets {
  const names = new Map<string, string>();
  return {
    nameOf(field, family, ranges) {
      const type = field === "source" || field === "destination" ? `ipv${family}_addr` : "inet_service";
      const elements = ranges.map((range) => rangeText(field, family, range)).join(", ");
      const body = `type ${type}; flags interval; elements = { ${elements} };`;
      const name = names.get(body) ?? `s${names.size + 1}`;
      names.set(body, name);
      return name;
    },
    lines: () => [...names].map(([body, name]) => `set ${name} { ${body} }`),
  };
}

/** Lists of at most this length become separate rules. */
const SHORT = 4;

/** Returns conditions of which one must match. */
function matches(field: Field, family: Family, ranges: readonly Span[], sets: Sets): readonly string[] {
  const key = keys[family][field];
  const [only] = ranges;
  if (only !== undefined && ranges.length === 1) return [`${key} ${rangeText(field, family, only)}`];
  const others = complement(ranges, fullRange(field, family));
  if (others.length === 1) return others.map((range) => `${key} != ${rangeText(field, family, range)}`);
  if (ranges.length > SHORT) return [`${key} @${sets.nameOf(field, family, ranges)}`];
  return ranges.map((range) => `${key} ${rangeText(field, family, range)}`);
}

const verdictText = (allow: boolean): string => (allow ? "goto ok" : "drop");

/** Appends the lines of a rule. `protocol`: match of the protocol that is already known, which nft requires before ports. */
function addTest({ rule, fields }: Test, protocol: string, family: Family, sets: Sets, lines: string[]): void {
  let starts = [!fields.includes("protocol") && fields.some(isPort) ? protocol : ""];
  for (const field of fields) {
    const longer: string[] = [];
    for (const match of matches(field, family, rule[field], sets))
      for (const start of starts) longer.push(`${start}${match} `);
    starts = longer;
  }
  const end = `counter ${verdictText(rule.allow)} comment "r${rule.index + 1}"`;
  for (const start of starts) lines.push(start + end);
}

/** Renders all chains, with yields; the root is called `v4` or `v6`. */
function* chainText(root: Chain, family: Family, sets: Sets): Generator<void, string> {
  const out: string[] = [];
  const names = new Map<string, string>();
  const bodyOf = (lines: readonly string[]): string => (lines.length === 1 ? `${lines[0]}` : lines.join("\n    "));
  const write = (name: string, body: string) => void out.push(`  chain ${name} {\n    ${body}\n  }\n`);
  /** Branches with equal bodies share a chain. */
  const place = (lines: readonly string[]): string => {
    const body = bodyOf(lines);
    const known = names.get(body);
    if (known !== undefined) return known;
    const name = `v${family}_${names.size + 1}`;
    names.set(body, name);
    write(name, body);
    return name;
  };
  function testLines({ tests }: Extract<Chain, { kind: "tests" }>, protocol: string): string[] {
    const lines: string[] = [];
    for (const test of tests) addTest(test, protocol, family, sets, lines);
    return lines;
  }
  function* linesOf(chain: Chain, protocol: string): Generator<void, string[]> {
    yield;
    if (chain.kind === "tests") return testLines(chain, protocol);
    const lines: string[] = [];
    if (chain.kind === "runs")
      for (const run of chain.chains) lines.push(`jump ${place(yield* linesOf(run, protocol))}`);
    if (chain.kind !== "split") return lines;
    const key = keys[family][chain.field];
    lines.push(`${isPort(chain.field) ? protocol : ""}${key} vmap {`);
    for (const { ranges, chain: branch } of chain.branches) {
      yield;
      // A generator for each of many short branches would take as long as their text.
      const bodyFor = (known: string) => (branch.kind === "tests" ? testLines(branch, known) : null);
      const shared = chain.field === "protocol" ? null : place(bodyFor(protocol) ?? (yield* linesOf(branch, protocol)));
      for (const range of ranges) {
        const text = rangeText(chain.field, family, range);
        const known = `${key} ${text} `;
        lines.push(`  ${text} : goto ${shared ?? place(bodyFor(known) ?? (yield* linesOf(branch, known)))},`);
      }
    }
    lines.push("}");
    return lines;
  }
  write(`v${family}`, bodyOf(yield* linesOf(root, "")));
  return out.join("");
}

/** Renders table `edge` at once, see `renderFirewall`. */
export const firewallText = (firewall: Firewall, internal: readonly string[]): string =>
  runAtOnce(renderFirewall(firewall, internal));

/**
 * Renders table `edge`, with yields: thousands of rules take a tenth of a second. Each line of a rule has a counter and the comment `r<n>` with
 * its number, from 1: with named counters, nft would take almost half again as long. The counter `rest` counts connections that match no rule.
 * Throws for an invalid address or port.
 */
export function* renderFirewall(firewall: Firewall, internal: readonly string[]): Generator<void, string> {
  const families: Family[] = internal.some((block) => block.includes(":")) ? [4, 6] : [4];
  const sets = createSets();
  const chains: string[] = [];
  for (const family of families) {
    const flat = yield* flattenRules(firewall.rules, family, internal);
    const tree = yield* buildTree(flat, family);
    chains.push(yield* chainText(tree, family, sets));
  }
  if (!firewall.enabled)
    // Connections are tracked anyway, so that rules added later can judge them.
    return tableText("inet", "edge", [
      "chain forward {",
      "  type filter hook forward priority filter; policy accept;",
      "  ct state established accept",
      "}",
    ]);
  // Joined once: with thousands of rules this is a third of the work.
  const rules = indent(sets.lines()) + chains.join("");
  const hash = createHash("sha256").update(rules).update(String(firewall.allow)).digest("hex");
  const mark = `0x${hash.slice(0, 8)}`;
  const head = indent([
    "counter rest { }",
    // A connection gets the mark of the rules that allowed it: while these are in force, its packets skip the rules.
    "chain ok {",
    `  ct mark set ${mark} accept`,
    "}",
  ]);
  const forward = indent([
    "chain forward {",
    "  type filter hook forward priority filter; policy accept;",
    `  iifname "${BRIDGE}" oifname "${BRIDGE}" accept`,
    "  ct state invalid drop",
    `  ct state established,related ct mark ${mark} accept`,
    // An ICMP error about a connection contains nothing that the rules could judge.
    "  ct state related drop",
    ...families.map((family) => `  meta nfproto ipv${family} jump v${family}`),
    `  counter name rest ${verdictText(firewall.allow)}`,
    "}",
  ]);
  // The hash represents the rules, of which there may be a megabyte.
  const digest = createHash("sha256").update(head).update(hash).update(forward).digest("hex").slice(0, 16);
  return fullTable("inet", "edge", head + rules + forward, digest);
}
