/**
 * Plans the change from the stored tunnels to the list of a request: new, changed and removed tunnels. `checkTunnels` validates the
 * list alone, before the transaction; `planTunnels` validates it against the stored tunnels, inside the transaction.
 */
import { isDeepStrictEqual } from "node:util";
import type { Labels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import type { TunnelInput, TunnelType, Vpn } from "@brume/api/vpn.ts";
import { errorAt, fieldError, invalidFields } from "../../../base/error.ts";
import { checkTunnelInput, readTunnelInput, type TunnelFieldProblem, type TunnelNetwork, typesOf } from "./read.ts";
import { findConflicts, findOverlap, type ListedTunnel } from "./rules.ts";
import { hasField, type StoredTunnel, type TunnelSettings } from "./tunnel.ts";

/** A stored tunnel with its shared key, decrypted; null: it has none. */
export interface KnownTunnel extends StoredTunnel {
  readonly sharedKey: string | null;
}

/** A tunnel as it will be stored. */
export interface PlannedTunnel {
  /** Null: it is new. */
  readonly id: number | null;
  /** Index in the list. */
  readonly place: number;
  readonly settings: TunnelSettings;
  readonly sharedKey: string | null;
  readonly labels: Labels;
  /** Whether any stored field differs, including its place in the list. */
  readonly changed: boolean;
}

/** Result of `planTunnels`. */
export interface TunnelPlan {
  /** In the order of the list. */
  readonly tunnels: readonly PlannedTunnel[];
  /** Ids of stored tunnels that are not in the list. */
  readonly removed: readonly number[];
}

const pointerTo = (index: number, field: string): string => `/Tunnels/${index}/${field}`;
const errorFor = (index: number, { field, code, must }: TunnelFieldProblem): FieldError =>
  fieldError(pointerTo(index, field), code, `${field} ${must}.`);

/** Returns an error for each Id that is in the list already. */
function checkIds(inputs: readonly TunnelInput[]): FieldError[] {
  const seen = new Map<number, number>();
  return inputs.flatMap(({ Id }, index) => {
    if (Id === undefined) return [];
    const before = seen.get(Id);
    if (before === undefined) {
      seen.set(Id, index);
      return [];
    }
    return [fieldError(pointerTo(index, "Id"), "fields_conflict", `Id ${Id} is already used by Tunnels[${before}].`)];
  });
}

/** Returns the tunnel and the field of an error's pointer. */
function placeOf({ pointer }: FieldError): { readonly index: number; readonly field: string } {
  const [, index = "", field = ""] = /^\/Tunnels\/(\d+)\/(\w+)/.exec(pointer) ?? [];
  return { index: Number(index || Number.NaN), field };
}

/**
 * Returns whether a schema error may not count, because the tunnel may have a type without this field. `planTunnels` knows the type
 * and gets these errors.
 */
export function failsTunnelOnly({ Tunnels: inputs = [] }: Partial<Vpn>, error: FieldError): boolean {
  const { index, field } = placeOf(error);
  const input = inputs[index];
  return input !== undefined && typesOf(input).some((type) => !hasField(type, field));
}

/** Returns the errors that can be found without the network and its stored tunnels. */
export function checkTunnels({ Tunnels: inputs }: Vpn): readonly FieldError[] {
  const fields = inputs.flatMap((input, index) => checkTunnelInput(input).map((problem) => errorFor(index, problem)));
  return [...checkIds(inputs), ...fields];
}

/**
 * Returns the tunnels to store and to remove. Calls `make.sharedKey` for each IPsec tunnel without a key. `deferred` are the schema
 * errors of `failsTunnelOnly`. Throws `validation_failed` with all field errors, unknown ids and the deferred errors that count;
 * else `tunnel_type_fixed`; else `peer_network_overlap`.
 */
export function planTunnels(
  known: readonly KnownTunnel[],
  { Tunnels: inputs }: Vpn,
  network: TunnelNetwork,
  make: { readonly sharedKey: () => string },
  deferred: readonly FieldError[] = [],
): TunnelPlan {
  const byId = new Map(known.map((tunnel) => [tunnel.id, tunnel]));
  const errors: FieldError[] = checkIds(inputs);
  const listed: ListedTunnel[] = [];
  const types = new Map<number, TunnelType>();
  let typeChangeAt: number | null = null;
  for (const [index, input] of inputs.entries()) {
    const before = input.Id === undefined ? undefined : byId.get(input.Id);
    if (input.Id !== undefined && before === undefined) {
      const detail = `Id: tunnel ${input.Id} does not exist in this network.`;
      errors.push(fieldError(pointerTo(index, "Id"), "unknown_reference", detail));
      continue;
    }
    const type = input.Type ?? before?.settings.Type ?? "IPsec";
    if (before !== undefined && before.settings.Type !== type) {
      typeChangeAt ??= index;
      continue;
    }
    types.set(index, type);
    const { settings, sharedKey, problems } = readTunnelInput(input, type, network, before);
    errors.push(...problems.map((problem) => errorFor(index, problem)));
    if (problems.length === 0) listed.push({ index, settings, sharedKey });
  }
  errors.push(
    ...deferred.filter((error) => {
      const { index, field } = placeOf(error);
      const type = types.get(index);
      return type !== undefined && hasField(type, field);
    }),
  );
  errors.push(...findConflicts(listed, network).map(({ index, ...problem }) => errorFor(index, problem)));
  if (errors.length > 0) throw invalidFields(errors);
  if (typeChangeAt !== null) throw typeFixed(typeChangeAt, inputs, byId);
  const overlap = findOverlap(listed, network.cidr);
  if (overlap !== null)
    throw errorAt("peer_network_overlap", pointerTo(overlap.index, "PeerNetwork"), `PeerNetwork ${overlap.must}.`);

  const listedIds = new Set(inputs.map(({ Id }) => Id));
  return {
    tunnels: listed.map(({ index: place, settings, sharedKey }) => {
      const { Id, Labels } = inputs[place] ?? {};
      const before = Id === undefined ? undefined : byId.get(Id);
      const isKeyless = settings.Type === "IPsec" && sharedKey === null;
      const planned = {
        place,
        settings,
        sharedKey: isKeyless ? make.sharedKey() : sharedKey,
        labels: { ...(Labels ?? before?.labels) },
      };
      return { id: before?.id ?? null, ...planned, changed: before === undefined || isChanged(before, planned) };
    }),
    removed: known.filter(({ id }) => !listedIds.has(id)).map(({ id }) => id),
  };
}

function isChanged({ place, settings, sharedKey, labels }: KnownTunnel, planned: Omit<KnownTunnel, "id">): boolean {
  return !isDeepStrictEqual({ place, settings, sharedKey, labels }, planned);
}

function typeFixed(index: number, inputs: readonly TunnelInput[], byId: ReadonlyMap<number, KnownTunnel>) {
  const { Id = 0, Type } = inputs[index] ?? {};
  const type = byId.get(Id)?.settings.Type;
  return errorAt(
    "tunnel_type_fixed",
    pointerTo(index, "Type"),
    `Type: tunnel ${Id} is ${type} and cannot change to ${Type}.`,
  );
}
