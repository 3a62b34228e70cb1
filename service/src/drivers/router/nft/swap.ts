/**
 * Replaces a table between two packets without losing one. nftables changes the rules of one chain atomically, but elements of a set are
 * added and removed slightly later than the rules that use it, and a packet in between would match neither. So the new table is first
 * loaded complete but dormant; a second, small step activates it and deactivates the old one. For a moment both apply; each packet meets
 * the old rules or the new ones. Deactivated tables are deleted afterwards, because a deletion waits for every packet in flight. A counter
 * in each table shows whether it is in force or was.
 */

import type { Count } from "../interface.ts";
import type { NamespaceState } from "../linux/snapshot.ts";
import { digestOf } from "./firewall.ts";

/** Kinds of tables of a network: firewall, `guard.ts`, `sourcelock.ts`, `connectionlimits.ts`. */
export type TableKind = "edge" | "guard" | "lock" | "flows";
export const kinds: readonly TableKind[] = ["edge", "guard", "lock", "flows"];

const isOf = (kind: TableKind, name: string): boolean => name.startsWith(kind) && /^\d$/.test(name.slice(kind.length));

/** A table in force: its name in the kernel and the digest of the text that it was loaded from. */
export interface Active {
  readonly name: string;
  readonly digest: string;
}

/** Name of the counter that marks a table that was in force. */
const PAST = "past";

const digestIn = (counters: ReadonlyMap<string, Count>): string =>
  [...counters.keys()].find((name) => name.startsWith("d_"))?.slice(2) ?? "";

/** Returns the table of this kind that is in force, or null. */
export function activeOf(found: NamespaceState, kind: TableKind): Active | null {
  for (const [name, counters] of found.counters) {
    const digest = digestIn(counters);
    if (isOf(kind, name) && digest !== "" && !counters.has(PAST)) return { name, digest };
  }
  return null;
}

/** Returns the counters of the table in force. */
export const countersOf = (found: NamespaceState, kind: TableKind): ReadonlyMap<string, Count> | undefined =>
  found.counters.get(activeOf(found, kind)?.name ?? "");

/** The texts that replace a table. */
export interface Swap {
  /** Loads the new table, dormant. */
  readonly first: string;
  /** Activates the new table and deactivates the old one. */
  readonly second: string;
  /** Deletes the old table, "" if there is none. */
  readonly past: string;
  readonly active: Active;
}

const familyOf = (kind: TableKind): string => (kind === "lock" ? "bridge" : "inet");

/** Renders the deletion of tables. */
export const removalText = (kind: TableKind, names: readonly string[]): string =>
  names.map((name) => `delete table ${familyOf(kind)} ${name}\n`).join("");

/** Text size in characters from which a table counts as large, about two thousand rules. */
const large = 2 ** 18;

/**
 * Renders the line that deactivates a table. To change a table, nft first reads all rules in the kernel, which with thousands of rules
 * takes longer than waiting for every packet in flight, as flushing a chain does. The flushed chain of `edge` is the one that packets
 * enter, and without rules it allows them.
 */
const sleepLine = (kind: TableKind, name: string, isLarge: boolean): string =>
  kind === "edge" && isLarge
    ? `flush chain inet ${name} forward`
    : `add table ${familyOf(kind)} ${name} { flags dormant; }`;

/** Renders a swap. `old`: the table in force. `stale`: names of tables of the kind that are neither in force nor wanted. */
export function swap(kind: TableKind, text: string, old: Active | null, stale: readonly string[]): Swap {
  const family = familyOf(kind);
  const name = old?.name === `${kind}0` ? `${kind}1` : `${kind}0`;
  const digest = digestOf(text);
  const table = text.replace(
    /^add table .*\ndelete table .*\ntable \w+ \w+ \{\n {2}counter d_.*\n/,
    // A command of a killed service may still load the same table: then this one fails, instead of adding each rule twice.
    `create table ${family} ${name} { flags dormant; }\ntable ${family} ${name} {\n  flags dormant;\n`,
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

/** Renders the counter that records a generation whose only change is this swap; `readMark` reads it. */
export const generationLine = (active: Active, generation: number): string =>
  `add counter inet ${active.name} g_${generation}\n`;

/** Returns the listing of the table, "" if there is none. */
export const listingOf = (found: NamespaceState, name: string): string =>
  found.rules.split(/^(?=table )/m).find((text) => new RegExp(`^table \\w+ ${name} \\{`).test(text)) ?? "";

/** Returns the tables of the kind that are not in force. */
export function staleOf(found: NamespaceState, kind: TableKind): string[] {
  const active = activeOf(found, kind)?.name;
  const tables = [...found.rules.matchAll(/^table \w+ (\w+) \{/gm)].map(([, name = ""]) => name);
  return tables.filter((name) => isOf(kind, name) && name !== active);
}
