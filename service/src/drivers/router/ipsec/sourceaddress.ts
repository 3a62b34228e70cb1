/**
 * Adds source addresses for libipsec, which accepts a tunnel only if the edge has an address inside each of its local blocks. For a
 * complete network that is the gateway. For a block of servers only, the edge gets the block's first address on `lo`, but not in the table
 * `local`, so that packets for it still reach its server. The kernel accepts it as a source because charon's table contains it as local; a
 * rule prevents lookups of it there.
 */

import { formatAddresses, parseAddress, parseAddresses } from "../../../base/address.ts";
import type { Exec } from "../../exec.ts";

/** charon's own table, and the preference of our rule before it. */
const charonTable = 220;
const exceptionRule = 218;

/** Returns the first address of each block that does not contain the gateway. */
export function borrowedAddresses(gateway: string, localSubnets: readonly string[]): readonly string[] {
  const { value } = parseAddress(gateway);
  const borrowed = localSubnets
    .map(parseAddresses)
    .filter(({ first, last }) => value < first || value > last)
    .map(({ first }) => formatAddresses(4, { first, last: first }));
  return [...new Set(borrowed)];
}

/** Renders lines for `ip -batch`. The rule is added before the address and removed after it. */
export function renderBorrowed(desired: readonly string[], present: readonly string[]): readonly string[] {
  return [
    ...desired
      .filter((address) => !present.includes(address))
      .flatMap((address) => [
        `rule add to ${address} lookup main pref ${exceptionRule}`,
        `addr add ${address}/32 dev lo`,
        `route del local ${address} dev lo table local`,
        `route replace local ${address} dev lo table ${charonTable}`,
      ]),
    ...present
      .filter((address) => !desired.includes(address))
      .flatMap((address) => [
        `addr del ${address}/32 dev lo`,
        `route del local ${address} dev lo table ${charonTable}`,
        `rule del to ${address} lookup main pref ${exceptionRule}`,
      ]),
  ];
}

interface FoundLink {
  readonly addr_info?: readonly { readonly family?: string; readonly local?: string }[];
}

/** Reads the addresses and applies the differences. Addresses on `lo` other than 127.0.0.1 are all ours. */
export async function ensureBorrowed(exec: Exec, namespace: string, desired: readonly string[]): Promise<void> {
  const text = await exec.run(["ip", "-j", "-n", namespace, "addr", "show", "dev", "lo"]);
  const links = JSON.parse(text || "[]") as readonly FoundLink[];
  const present = links
    .flatMap(({ addr_info }) => addr_info ?? [])
    .filter(({ family, local }) => family === "inet" && local !== "127.0.0.1")
    .map(({ local }) => local ?? "");
  const lines = renderBorrowed(desired, present);
  // An address that is partly removed must not stop the other lines.
  if (lines.length > 0)
    await exec
      .run(["ip", "-force", "-n", namespace, "-batch", "-"], { stdin: `${lines.join("\n")}\n` })
      .catch(() => {});
}
