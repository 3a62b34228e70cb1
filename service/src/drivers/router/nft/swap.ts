/**
 * How a table takes another's place between two packets, none of them lost. nftables changes rules of one chain at once, but the
 * elements of a set come and go a little later than the rules that ask it, and a packet in between finds nothing. So the new table
 * comes first, complete and dormant, which no packet asks; a second, small step wakes it and puts the old one to sleep. For a moment
 * both are asked, and what both admit passes: each packet meets the old rules or the new ones. What sleeps is deleted afterwards, and
 * nothing before, since what deletes waits for every packet on its way; so a table says by a counter that it is in force, and by
 * another that it was.
 */

import type { Count } from "../interface.ts";
import type { NamespaceState } from "../linux/snapshot.ts";
import { digestOf } from "./firewall.ts";

export type Kind = "edge" | "guard" | "lock" | "flows";
export const kinds: readonly Kind[] = ["edge", "guard", "lock", "flows"];

const isOf = (kind: Kind, name: string): boolean => name.startsWith(kind) && /^\d$/.test(name.slice(kind.length));

/** A table in force: its name in the kernel and the digest of the text that it was loaded from. */
export interface Active {
  readonly name: string;
  readonly digest: string;
}

/** Counter of a table that was in force. */
const PAST = "past";

const digestIn = (counters: ReadonlyMap<string, Count>): string =>
  [...counters.keys()].find((name) => name.startsWith("d_"))?.slice(2) ?? "";

export function activeOf(found: NamespaceState, kind: Kind): Active | null {
  for (const [name, counters] of found.counters) {
    const digest = digestIn(counters);
    if (isOf(kind, name) && digest !== "" && !counters.has(PAST)) return { name, digest };
  }
  return null;
}

export const countersOf = (found: NamespaceState, kind: Kind): ReadonlyMap<string, Count> | undefined =>
  found.counters.get(activeOf(found, kind)?.name ?? "");

export interface Swap {
  /** Everything that no packet asks yet. */
  readonly first: string;
  /** The change itself. */
  readonly second: string;
  /** Removes what was in force, "" for nothing. */
  readonly past: string;
  readonly active: Active;
}

const familyOf = (kind: Kind): string => (kind === "lock" ? "bridge" : "inet");

export const removalText = (kind: Kind, names: readonly string[]): string =>
  names.map((name) => `delete table ${familyOf(kind)} ${name}\n`).join("");

/** Characters of a table, as of two thousand rules. */
const large = 2 ** 18;

/**
 * After it no packet asks the table, or finds a rule there. To change a table nft first reads all that is in the kernel, which with
 * rules by the thousand takes longer than to wait for every packet on its way, as emptying a chain does: that of the edge is the one by
 * which its packets come in, and without rules admits them.
 */
const sleepLine = (kind: Kind, name: string, isLarge: boolean): string =>
  kind === "edge" && isLarge
    ? `flush chain inet ${name} forward`
    : `add table ${familyOf(kind)} ${name} { flags dormant; }`;

/** `old`: what is in force now. `stale`: the names of tables of the kind that are neither in force nor wanted. */
export function swap(kind: Kind, text: string, old: Active | null, stale: readonly string[]): Swap {
  const family = familyOf(kind);
  const name = old?.name === `${kind}0` ? `${kind}1` : `${kind}0`;
  const digest = digestOf(text);
  const table = text.replace(
    /^add table .*\ndelete table .*\ntable \w+ \w+ \{\n {2}counter d_.*\n/,
    `table ${family} ${name} {\n  flags dormant;\n`,
  );
  const sleep =
    old === null ? [] : [sleepLine(kind, old.name, text.length > large), `add counter ${family} ${old.name} ${PAST}`];
  const wake = [`add table ${family} ${name}`, `add counter ${family} ${name} d_${digest}`];
  return {
    first: removalText(kind, stale) + table,
    second: [...wake, ...sleep].map((line) => `${line}\n`).join(""),
    past: removalText(kind, old === null ? [] : [old.name]),
    active: { name, digest },
  };
}

/** With a swap of rules that are all there is to a generation: it is in force as they come, and `readMark` looks here too. */
export const generationLine = (active: Active, generation: number): string =>
  `add counter inet ${active.name} g_${generation}\n`;

/** The listing of the table, "" if there is none. */
export const listingOf = (found: NamespaceState, name: string): string =>
  found.rules.split(/^(?=table )/m).find((text) => new RegExp(`^table \\w+ ${name} \\{`).test(text)) ?? "";

/** Tables of the kind that are not in force. */
export function staleOf(found: NamespaceState, kind: Kind): string[] {
  const active = activeOf(found, kind)?.name;
  const tables = [...found.rules.matchAll(/^table \w+ (\w+) \{/gm)].map(([, name = ""]) => name);
  return tables.filter((name) => isOf(kind, name) && name !== active);
}
