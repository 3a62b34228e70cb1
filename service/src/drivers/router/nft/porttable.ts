/**
 * Tables that contain something of each port. A port has elements in named sets and maps, and chains of its own, which can be added and
 * removed without the others. The digest of such a table is the digest of what all ports share plus a number for each port, so a changed
 * port changes it at a cost that does not depend on the other ports, and the result is the digest of the complete new text.
 */
import { hash } from "node:crypto";
import type { Active } from "./swap.ts";

/** What a port has in a table. */
export interface PortParts {
  /** By name of a set or map: `"p1" . 10.64.0.10`, `"p1" : goto ap1`. */
  readonly elements: readonly { readonly set: string; readonly element: string }[];
  readonly chains: readonly { readonly name: string; readonly rules: readonly string[] }[];
}

type Family = "inet" | "bridge";

const modulus = 1n << 64n;
const numberOf = (text: string): bigint => BigInt(`0x${hash("sha256", text, "hex").slice(0, 16)}`);
const numberOfPart = (parts: PortParts): bigint => numberOf(JSON.stringify(parts));
const sum = (all: readonly PortParts[]): bigint => all.reduce((total, parts) => total + numberOfPart(parts), 0n);
const digestText = (number: bigint): string =>
  (((number % modulus) + modulus) % modulus).toString(16).padStart(16, "0");

/** Returns the digest of a table with these ports. `shared`: the text of the table without ports. */
export const digestWith = (shared: string, ports: readonly PortParts[]): string =>
  digestText(numberOf(shared) + sum(ports));

/** Renders a set or map with the elements of all ports. */
export function setText(name: string, type: string, ports: readonly PortParts[]): string {
  const elements = ports.flatMap((port) => port.elements).filter(({ set }) => set === name);
  const list = elements.map(({ element }) => element).join(", ");
  return `${name.startsWith("by_") ? "map" : "set"} ${name} { type ${type};${list === "" ? "" : ` elements = { ${list} };`} }`;
}

/** Renders the chains of all ports. */
export const chainLines = (ports: readonly PortParts[]): string[] =>
  ports.flatMap(({ chains }) =>
    chains.flatMap(({ name, rules }) => [`chain ${name} {`, ...rules.map((rule) => `  ${rule}`), "}"]),
  );

/** Renders the change of an active table from the parts of some ports to others, "" if there is none. Elements of both remain. */
export function changePorts(
  family: Family,
  table: Active,
  from: readonly PortParts[],
  to: readonly PortParts[],
): { readonly text: string; readonly active: Active } {
  const digest = digestText(BigInt(`0x${table.digest}`) - sum(from) + sum(to));
  if (digest === table.digest) return { text: "", active: table };
  const place = `${family} ${table.name}`;
  const key = (one: object): string => JSON.stringify(one);
  const chainsOf = (all: readonly PortParts[]) =>
    new Map(all.flatMap(({ chains }) => chains).map((one) => [key(one), one]));
  const elementsOf = (all: readonly PortParts[]) =>
    new Map(all.flatMap(({ elements }) => elements).map((one) => [key(one), one]));
  const without = <T>(all: ReadonlyMap<string, T>, others: ReadonlyMap<string, T>): T[] =>
    [...all].filter(([one]) => !others.has(one)).map(([, value]) => value);
  const [oldChains, newChains] = [chainsOf(from), chainsOf(to)];
  const [oldElements, newElements] = [elementsOf(from), elementsOf(to)];
  const names = new Set([...newChains.values()].map(({ name }) => name));
  const lines = [
    ...without(newChains, oldChains).flatMap(({ name, rules }) => [
      `add chain ${place} ${name}`,
      `flush chain ${place} ${name}`,
      ...rules.map((rule) => `add rule ${place} ${name} ${rule}`),
    ]),
    // An element is deleted first: the new one may have the same key.
    ...without(oldElements, newElements).map(({ set, element }) => `delete element ${place} ${set} { ${element} }`),
    ...without(newElements, oldElements).map(({ set, element }) => `add element ${place} ${set} { ${element} }`),
    ...without(oldChains, newChains)
      .filter(({ name }) => !names.has(name))
      .flatMap(({ name }) => [`flush chain ${place} ${name}`, `delete chain ${place} ${name}`]),
    `add counter ${place} d_${digest}`,
    `delete counter ${place} d_${table.digest}`,
  ];
  return { text: lines.map((line) => `${line}\n`).join(""), active: { name: table.name, digest } };
}
