/**
 * libipsec takes a tunnel only if the edge has an address inside each of its local blocks, to put on the route as its source. The
 * gateway is one for a whole network; for a block of servers only, the edge borrows the block's first address without using it:
 * it is on `lo`, but not in the table `local`, so that what is for it goes to its server as before. The kernel accepts it as a
 * source because it stands as local in charon's table, which a rule keeps from ever being asked about it.
 */

import { formatAddresses, parseAddress, parseAddresses } from "../../../base/address.ts";
import type { Exec } from "../../exec.ts";

/** charon's own table and rule. */
const charonTable = 220;
const exceptionRule = 218;

/** First address of each block that has no gateway in it. */
export function borrowedAddresses(gateway: string, localSubnets: readonly string[]): readonly string[] {
  const { value } = parseAddress(gateway);
  const borrowed = localSubnets
    .map(parseAddresses)
    .filter(({ first, last }) => value < first || value > last)
    .map(({ first }) => formatAddresses(4, { first, last: first }));
  return [...new Set(borrowed)];
}

/** Lines for `ip -batch`; the exception comes before the address and goes after it. */
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

/** Looks, then changes what differs. Only addresses of ours are on `lo` beside 127.0.0.1. */
export async function ensureBorrowed(exec: Exec, namespace: string, desired: readonly string[]): Promise<void> {
  const text = await exec.run(["ip", "-j", "-n", namespace, "addr", "show", "dev", "lo"]);
  const links = JSON.parse(text || "[]") as readonly FoundLink[];
  const present = links
    .flatMap(({ addr_info }) => addr_info ?? [])
    .filter(({ family, local }) => family === "inet" && local !== "127.0.0.1")
    .map(({ local }) => local ?? "");
  const lines = renderBorrowed(desired, present);
  // What is half gone already must not keep the rest.
  if (lines.length > 0)
    await exec
      .run(["ip", "-force", "-n", namespace, "-batch", "-"], { stdin: `${lines.join("\n")}\n` })
      .catch(() => {});
}
