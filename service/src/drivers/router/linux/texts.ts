/**
 * Renders the four nftables tables of one network. This validates every address and port that reaches the kernel, so it runs before any
 * change.
 */
import { parseAddress, prefixLength } from "../../../base/address.ts";
import type { NetworkSpec, Port } from "../interface.ts";
import { flowsText, type Limits, usualLimits } from "../nft/connectionlimits.ts";
import { digestOf, renderFirewall } from "../nft/firewall.ts";
import { activeOf, kinds, listingOf, type TableKind } from "../nft/swap.ts";
import { guardText } from "./guard.ts";
import { countVerdicts, type NamespaceState } from "./snapshot.ts";
import { lockText } from "./sourcelock.ts";

/** The text of each table by kind. */
export interface Texts {
  readonly edge: string;
  readonly guard: string;
  readonly lock: string;
  readonly flows: string;
}

/** Returns the network's blocks, which `internal` refers to. */
export const blocksOf = (spec: NetworkSpec): string[] => [spec.v4.cidr, ...(spec.v6 === null ? [] : [spec.v6.cidr])];

const requireInteger = (name: string, value: number | null, most: number): void => {
  if (value !== null && !(Number.isInteger(value) && 0 < value && value <= most))
    throw new Error(`${value} is not a valid ${name}: expected an integer from 1 to ${most}`);
};

/** Validates fields that only other commands use. */
function check(spec: NetworkSpec): void {
  const { v4, v6, edgeAddress } = spec;
  for (const { cidr, gateway } of [v4, ...(v6 === null ? [] : [v6])]) {
    prefixLength(cidr);
    if (gateway !== null) parseAddress(gateway);
    else if (edgeAddress !== null) throw new Error(`block ${cidr} needs a gateway, because the network has an edge`);
  }
  if (edgeAddress !== null) parseAddress(edgeAddress);
  requireInteger("generation", spec.generation, Number.MAX_SAFE_INTEGER);
  requireInteger("MTU", spec.mtu, 65_535);
  requireInteger("bandwidth", spec.bandwidth, 1_000_000);
  checkPorts(spec.ports);
  requireInteger("port", spec.wireguard?.listenPort ?? null, 65_535);
}

/** Validates fields of ports that only other commands use. */
export function checkPorts(ports: readonly Port[]): void {
  for (const { bandwidth } of ports) requireInteger("bandwidth", bandwidth, 1_000_000);
}

/** Renders all tables, with yields. Throws for a value that the kernel would not accept. */
export function* renderTexts(
  spec: NetworkSpec,
  kernelEsp: boolean,
  limits: Limits = usualLimits,
): Generator<void, Texts> {
  check(spec);
  return {
    edge: yield* renderFirewall(spec.firewall, blocksOf(spec)),
    guard: guardText(spec, kernelEsp),
    lock: lockText(spec, limits.packets),
    flows: flowsText(limits, spec.v4.cidr, spec.v6 !== null),
  };
}

/** Returns the tables that differ from the texts. `altered`: another program has changed the tables since the last check. */
export function staleTables(texts: Texts, found: NamespaceState | null, altered: boolean): readonly TableKind[] {
  return kinds.filter((kind) => {
    const active = found === null ? null : activeOf(found, kind);
    if (found === null || altered || active === null || active.digest !== digestOf(texts[kind])) return true;
    // The text is the one that was loaded, but another program may have changed a rule since.
    return countVerdicts(listingOf(found, active.name)) !== countVerdicts(texts[kind]);
  });
}

/**
 * Returns those of the replaced tables that another program has changed or removed. The others were loaded from another text of ours, as
 * after a change of a setting.
 */
export const alteredTables = (texts: Texts, found: NamespaceState, replaced: readonly TableKind[]): TableKind[] =>
  replaced.filter((kind) => {
    const active = activeOf(found, kind);
    return active === null || active.digest === digestOf(texts[kind]);
  });
