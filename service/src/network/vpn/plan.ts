/**
 * From the list of tunnels that a request sends to what is to be stored: what stays, changes, comes and goes. What can be said of
 * the list alone is said before anything is looked up; the rest is held inside the transaction that stores it.
 */
import { isDeepStrictEqual } from "node:util";
import type { Labels } from "@brume/api/common.ts";
import type { FieldFault } from "@brume/api/errors.ts";
import type { TunnelType, TunnelWish, Vpn } from "@brume/api/vpn.ts";
import { faultAt, fieldFault, invalidFields } from "../../base/fault.ts";
import { checkWish, type FieldRefusal, readWish, type TunnelNetwork, typesOf } from "./read.ts";
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
const blame = (index: number, { field, code, must }: FieldRefusal): FieldFault =>
  fieldFault(pointerTo(index, field), code, `${field} ${must}.`);

/** Ids that are given more than once. */
function checkIds(wishes: readonly TunnelWish[]): FieldFault[] {
  const seen = new Map<number, number>();
  return wishes.flatMap(({ Id }, index) => {
    if (Id === undefined) return [];
    const before = seen.get(Id);
    if (before === undefined) {
      seen.set(Id, index);
      return [];
    }
    return [fieldFault(pointerTo(index, "Id"), "fields_conflict", `Id ${Id} is that of Tunnels[${before}] too.`)];
  });
}

/** Which field of which tunnel a fault is about. */
function placeOf({ pointer }: FieldFault): { readonly index: number; readonly field: string } {
  const [, index = "", field = ""] = /^\/Tunnels\/(\d+)\/(\w+)/.exec(pointer) ?? [];
  return { index: Number(index || Number.NaN), field };
}

/** A fault of a field that the tunnel may not have, its type being another: `planTunnels` knows, and is told. */
export function sparesFault({ Tunnels: wishes = [] }: Partial<Vpn>, fault: FieldFault): boolean {
  const { index, field } = placeOf(fault);
  const wish = wishes[index];
  return wish !== undefined && typesOf(wish).some((type) => !hasField(type, field));
}

/** Every fault that can be told without looking at the network or at the tunnels it has. */
export function checkTunnels({ Tunnels: wishes }: Vpn): readonly FieldFault[] {
  const fields = wishes.flatMap((wish, index) => checkWish(wish).map((refusal) => blame(index, refusal)));
  return [...checkIds(wishes), ...fields];
}

/**
 * What is to be stored. `make.sharedKey` is called for each new IPsec tunnel without a key. Throws `validation_failed` with every
 * field that is not valid, unknown ids and what of `spared` counts included, else `tunnel_type_fixed`, else `peer_network_overlap`.
 */
export function planTunnels(
  known: readonly KnownTunnel[],
  { Tunnels: wishes }: Vpn,
  network: TunnelNetwork,
  make: { readonly sharedKey: () => string },
  spared: readonly FieldFault[] = [],
): TunnelPlan {
  const standing = new Map(known.map((tunnel) => [tunnel.id, tunnel]));
  const faults: FieldFault[] = checkIds(wishes);
  const listed: ListedTunnel[] = [];
  const types = new Map<number, TunnelType>();
  let otherType: number | null = null;
  for (const [index, wish] of wishes.entries()) {
    const before = wish.Id === undefined ? undefined : standing.get(wish.Id);
    if (wish.Id !== undefined && before === undefined) {
      const detail = `Id ${wish.Id} is no tunnel of this network.`;
      faults.push(fieldFault(pointerTo(index, "Id"), "unknown_reference", detail));
      continue;
    }
    const type = wish.Type ?? before?.settings.Type ?? "IPsec";
    if (before !== undefined && before.settings.Type !== type) {
      otherType ??= index;
      continue;
    }
    types.set(index, type);
    const { settings, sharedKey, refusals } = readWish(wish, type, network, before);
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
  if (otherType !== null) throw typeFixed(otherType, wishes, standing);
  const overlap = findOverlap(listed, network.cidr);
  if (overlap !== null)
    throw faultAt("peer_network_overlap", pointerTo(overlap.index, "PeerNetwork"), `PeerNetwork ${overlap.must}.`);

  const kept = new Set(wishes.map(({ Id }) => Id));
  return {
    tunnels: listed.map(({ index: place, settings, sharedKey }) => {
      const { Id, Labels } = wishes[place] ?? {};
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

function typeFixed(index: number, wishes: readonly TunnelWish[], standing: ReadonlyMap<number, KnownTunnel>) {
  const { Id = 0, Type } = wishes[index] ?? {};
  const type = standing.get(Id)?.settings.Type;
  return faultAt("tunnel_type_fixed", pointerTo(index, "Type"), `Tunnel ${Id} is ${type} and cannot become ${Type}.`);
}
