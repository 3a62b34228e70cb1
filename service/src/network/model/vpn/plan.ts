/**
 * From the list of tunnels that a request sends to what is to be stored: what stays, changes, comes and goes. What can be said of
 * the list alone is said before anything is looked up; the rest is held inside the transaction that stores it.
 */
import { isDeepStrictEqual } from "node:util";
import type { Labels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import type { TunnelInput, TunnelType, Vpn } from "@brume/api/vpn.ts";
import { errorAt, fieldError, invalidFields } from "../../../base/error.ts";
import { checkTunnelInput, readTunnelInput, type TunnelFieldProblem, type TunnelNetwork, typesOf } from "./read.ts";
import { findConflicts, findOverlap, type ListedTunnel } from "./rules.ts";
import { hasField, type StoredTunnel, type TunnelSettings } from "./tunnel.ts";

/** A stored tunnel with its key opened; null: it has none. */
export interface KnownTunnel extends StoredTunnel {
  readonly sharedKey: string | null;
}

export interface PlannedTunnel {
  /** Null: it is new. */
  readonly id: number | null;
  readonly place: number;
  readonly settings: TunnelSettings;
  readonly sharedKey: string | null;
  readonly labels: Labels;
  /** Anything that is stored of it, its place in the list included. */
  readonly changed: boolean;
}

export interface TunnelPlan {
  /** In the order of the list. */
  readonly tunnels: readonly PlannedTunnel[];
  /** Ids of known tunnels that are not in the list. */
  readonly removed: readonly number[];
}

const pointerTo = (index: number, field: string): string => `/Tunnels/${index}/${field}`;
const blame = (index: number, { field, code, must }: TunnelFieldProblem): FieldError =>
  fieldError(pointerTo(index, field), code, `${field} ${must}.`);

/** Ids that are given more than once. */
function checkIds(inputs: readonly TunnelInput[]): FieldError[] {
  const seen = new Map<number, number>();
  return inputs.flatMap(({ Id }, index) => {
    if (Id === undefined) return [];
    const before = seen.get(Id);
    if (before === undefined) {
      seen.set(Id, index);
      return [];
    }
    return [fieldError(pointerTo(index, "Id"), "fields_conflict", `Id ${Id} is that of Tunnels[${before}] too.`)];
  });
}

/** Which field of which tunnel a fault is about. */
function placeOf({ pointer }: FieldError): { readonly index: number; readonly field: string } {
  const [, index = "", field = ""] = /^\/Tunnels\/(\d+)\/(\w+)/.exec(pointer) ?? [];
  return { index: Number(index || Number.NaN), field };
}

/** A fault of a field that the tunnel may not have, its type being another: `planTunnels` knows, and is told. */
export function failsTunnelOnly({ Tunnels: inputs = [] }: Partial<Vpn>, fault: FieldError): boolean {
  const { index, field } = placeOf(fault);
  const input = inputs[index];
  return input !== undefined && typesOf(input).some((type) => !hasField(type, field));
}

/** Every fault that can be told without looking at the network or at the tunnels it has. */
export function checkTunnels({ Tunnels: inputs }: Vpn): readonly FieldError[] {
  const fields = inputs.flatMap((input, index) => checkTunnelInput(input).map((refusal) => blame(index, refusal)));
  return [...checkIds(inputs), ...fields];
}

/**
 * What is to be stored. `make.sharedKey` is called for each new IPsec tunnel without a key. Throws `validation_failed` with every
 * field that is not valid, unknown ids and what of `spared` counts included, else `tunnel_type_fixed`, else `peer_network_overlap`.
 */
export function planTunnels(
  known: readonly KnownTunnel[],
  { Tunnels: inputs }: Vpn,
  network: TunnelNetwork,
  make: { readonly sharedKey: () => string },
  spared: readonly FieldError[] = [],
): TunnelPlan {
  const standing = new Map(known.map((tunnel) => [tunnel.id, tunnel]));
  const faults: FieldError[] = checkIds(inputs);
  const listed: ListedTunnel[] = [];
  const types = new Map<number, TunnelType>();
  let otherType: number | null = null;
  for (const [index, input] of inputs.entries()) {
    const before = input.Id === undefined ? undefined : standing.get(input.Id);
    if (input.Id !== undefined && before === undefined) {
      const detail = `Id ${input.Id} is no tunnel of this network.`;
      faults.push(fieldError(pointerTo(index, "Id"), "unknown_reference", detail));
      continue;
    }
    const type = input.Type ?? before?.settings.Type ?? "IPsec";
    if (before !== undefined && before.settings.Type !== type) {
      otherType ??= index;
      continue;
    }
    types.set(index, type);
    const { settings, sharedKey, refusals } = readTunnelInput(input, type, network, before);
    faults.push(...refusals.map((refusal) => blame(index, refusal)));
    if (refusals.length === 0) listed.push({ index, settings, sharedKey });
  }
  faults.push(
    ...spared.filter((fault) => {
      const { index, field } = placeOf(fault);
      const type = types.get(index);
      return type !== undefined && hasField(type, field);
    }),
  );
  faults.push(...findConflicts(listed, network).map(({ index, ...refusal }) => blame(index, refusal)));
  if (faults.length > 0) throw invalidFields(faults);
  if (otherType !== null) throw typeFixed(otherType, inputs, standing);
  const overlap = findOverlap(listed, network.cidr);
  if (overlap !== null)
    throw errorAt("peer_network_overlap", pointerTo(overlap.index, "PeerNetwork"), `PeerNetwork ${overlap.must}.`);

  const kept = new Set(inputs.map(({ Id }) => Id));
  return {
    tunnels: listed.map(({ index: place, settings, sharedKey }) => {
      const { Id, Labels } = inputs[place] ?? {};
      const before = Id === undefined ? undefined : standing.get(Id);
      const isKeyless = settings.Type === "IPsec" && sharedKey === null;
      const planned = {
        place,
        settings,
        sharedKey: isKeyless ? make.sharedKey() : sharedKey,
        labels: { ...(Labels ?? before?.labels) },
      };
      return { id: before?.id ?? null, ...planned, changed: before === undefined || isChanged(before, planned) };
    }),
    removed: known.filter(({ id }) => !kept.has(id)).map(({ id }) => id),
  };
}

function isChanged({ place, settings, sharedKey, labels }: KnownTunnel, planned: Omit<KnownTunnel, "id">): boolean {
  return !isDeepStrictEqual({ place, settings, sharedKey, labels }, planned);
}

function typeFixed(index: number, inputs: readonly TunnelInput[], standing: ReadonlyMap<number, KnownTunnel>) {
  const { Id = 0, Type } = inputs[index] ?? {};
  const type = standing.get(Id)?.settings.Type;
  return errorAt("tunnel_type_fixed", pointerTo(index, "Type"), `Tunnel ${Id} is ${type} and cannot become ${Type}.`);
}
