/**
 * How a table takes another's place between two packets, none of them lost. nftables changes rules of one chain at once, but the
 * elements of a set come and go a little later than the rules that ask it, and a packet in between finds nothing. So the new table
 * comes first, complete but for the rules of its chains at hooks; a second, small step gives it these and empties those of the old
 * one; and what is left of the old one goes with the change after that, when nobody asks it any more. Three names take turns, and
 * the table with a digest is the one in force.
 */
import { digestOf } from "./nft.ts";
import type { Count } from "./port.ts";
import type { Found } from "./snapshot.ts";

export type Kind = "edge" | "guard" | "lock";
export const kinds: readonly Kind[] = ["edge", "guard", "lock"];

/** Chains at hooks; every text of the kind has all of them, and no anonymous set in them. */
const bases: Record<Kind, readonly string[]> = {
  edge: ["forward"],
  guard: ["input", "forward", "output"],
  lock: ["prerouting", "postrouting"],
};

/** A table in force: its name in the kernel and the digest of the text that it was loaded from. */
export interface Active {
  readonly name: string;
  readonly digest: string;
}

const SLOTS = 3;
const slotOf = (active: Active): number => Number(active.name.slice(-1));

const digestIn = (counters: ReadonlyMap<string, Count> | undefined): string =>
  [...(counters?.keys() ?? [])].find((name) => name.startsWith("d_"))?.slice(2) ?? "";

export function activeOf(found: Found, kind: Kind): Active | null {
  const names = Array.from({ length: SLOTS }, (_, slot) => `${kind}${slot}`);
  const all = names.map((name) => ({ name, digest: digestIn(found.counters.get(name)) }));
  return all.find(({ digest }) => digest !== "") ?? null;
}

export const countersOf = (found: Found, kind: Kind): ReadonlyMap<string, Count> | undefined =>
  found.counters.get(activeOf(found, kind)?.name ?? "");

export interface Swap {
  /** Everything that no packet asks yet. */
  readonly first: string;
  /** The change itself. */
  readonly second: string;
  readonly active: Active;
}

const familyOf = (kind: Kind): string => (kind === "lock" ? "bridge" : "inet");

export const removalLines = (kind: Kind, names: readonly string[]): string[] =>
  names.map((name) => `delete table ${familyOf(kind)} ${name}`);

const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join("");

/**
 * `old`: what is in force now. `stale`: the names of tables of the kind that are neither in force nor wanted, null where the last
 * change left the one that it always leaves.
 */
export function swap(kind: Kind, text: string, old: Active | null, stale: readonly string[] | null): Swap {
  const family = familyOf(kind);
  const slot = old === null ? 0 : (slotOf(old) + 1) % SLOTS;
  const name = `${kind}${slot}`;
  const digest = digestOf(text);
  const rules: string[] = [];
  // Our own texts, so each line is known: two blanks deep are chains, four their rules.
  const quiet = text.replace(
    /^ {2}chain (\w+) \{\n( {4}type .*\n)((?: {4}.*\n)*)/gm,
    (all, chain: string, type: string, body: string) => {
      if (!bases[kind].includes(chain)) return all;
      rules.push(
        ...body
          .split("\n")
          .filter(Boolean)
          .map((rule) => `add rule ${family} ${name} ${chain} ${rule.trim()}`),
      );
      return `  chain ${chain} {\n${type}`;
    },
  );
  const table = quiet.replace(
    /^add table .*\ndelete table .*\ntable \w+ \w+ \{\n {2}counter d_.*\n/,
    `table ${family} ${name} {\n`,
  );
  const leave =
    old === null
      ? []
      : [
          // `add` is for a chain that somebody deleted; to one that is there it does nothing.
          ...bases[kind].flatMap((chain) => [
            `add chain ${family} ${old.name} ${chain}`,
            `flush chain ${family} ${old.name} ${chain}`,
          ]),
          `delete counter ${family} ${old.name} d_${old.digest}`,
        ];
  const previous = old === null || stale !== null ? [] : [`${kind}${(slotOf(old) + SLOTS - 1) % SLOTS}`];
  return {
    first: `${lines(removalLines(kind, stale ?? []))}${table}`,
    second: lines([
      ...rules,
      `add counter ${family} ${name} d_${digest}`,
      ...leave,
      // Adding before deleting makes it right whether or not it is there.
      ...previous.flatMap((one) => [`add table ${family} ${one}`, `delete table ${family} ${one}`]),
    ]),
    active: { name, digest },
  };
}

/** With a swap of rules that are all there is to a generation: it is in force as they come, and `readMark` looks here too. */
export const generationLine = (active: Active, generation: number): string =>
  `add counter inet ${active.name} g_${generation}\n`;

/** The listing of the table, "" if there is none. */
export const listingOf = (found: Found, name: string): string =>
  found.rules.split(/^(?=table )/m).find((text) => new RegExp(`^table \\w+ ${name} \\{`).test(text)) ?? "";

/** Tables of the kind that are not in force. */
export function staleOf(found: Found, kind: Kind): string[] {
  const active = activeOf(found, kind)?.name;
  const tables = [...found.rules.matchAll(/^table \w+ (\w+) \{/gm)].map(([, name = ""]) => name);
  return tables.filter((name) => new RegExp(`^${kind}\\d$`).test(name) && name !== active);
}
