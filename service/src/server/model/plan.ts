/**
 * A wish for a server and what it refers to, brought together to what will be made; or every fault of it at once
 * (docs/spec.md#server-endpoints, `POST /server`, step 1). What needs more than the wish itself (quotas, room, a free address) is held
 * after it.
 */
import type { WaitFor } from "@brume/api/action.ts";
import type { Labels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { type CreateServerInput, type HddType, serverLimits, sizes } from "@brume/api/server.ts";
import ipaddr from "ipaddr.js";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import { chooseImage, chooseLocation, requireUsable } from "../../catalog/model/rules.ts";
import type { ImageRow, SshKeyRow } from "../../catalog/table.ts";
import { whyNotTiny } from "../../drivers/machine/seed/userdata.ts";
import type { NetworkRow } from "../../network/table.ts";
import { hostNameOf } from "./hostname.ts";

/** What wishes can refer to, as far as the project sees it. */
export interface References {
  /** In order of id. */
  readonly images: readonly ImageRow[];
  /** The first is the default. */
  readonly locations: readonly string[];
  /** Those of the project, and shared ones. */
  readonly networks: ReadonlyMap<number, NetworkRow>;
  readonly keys: ReadonlyMap<number, SshKeyRow>;
}

/** One server's wish, and where its fields stand in the body: `/CPU`, or `/Servers/2/CPU`. */
export interface Member {
  readonly spec: Partial<CreateServerInput>;
  at(field: keyof CreateServerInput): string;
}

export const single = (spec: Partial<CreateServerInput>): Member => ({ spec, at: (field) => `/${field}` });

/** A server that can be made, but for quotas, room and address. */
export interface ServerSpec {
  readonly name: string;
  /** Null: named after the id that it will get. */
  readonly hostName: string | null;
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
  readonly fast: boolean;
  readonly hddType: HddType;
  readonly location: string;
  readonly image: Pick<ImageRow, "id" | "name" | "family" | "guest">;
  /** Each once. */
  readonly keys: readonly SshKeyRow[];
  /** Null: the shared one of the location. */
  readonly network: NetworkRow | null;
  /** Mbit/s; null: what links of this kind of network get. */
  readonly bandwidth: number | null;
  /** Null: the lowest that is free. */
  readonly ip: string | null;
  /** Where `ip` stands in the body. */
  readonly ipPointer: string;
  readonly userData: string | null;
  readonly waitFor: WaitFor;
  readonly isProtected: boolean;
  readonly isBackupActive: boolean;
  readonly backupPeriod: number;
  readonly labels: Labels;
}

/** What a schema cannot say of a wish, and no stored object is needed for. */
export function checkServerInput({ spec, at }: Pick<Member, "spec" | "at">): FieldError[] {
  const faults: FieldError[] = [];
  const bytes = Buffer.byteLength(spec.UserData ?? "");
  if (bytes > serverLimits.userData)
    faults.push(
      fieldError(
        at("UserData"),
        "too_long",
        `UserData must have at most ${serverLimits.userData} bytes, not ${bytes}.`,
      ),
    );
  if (spec.NetworkIP && !ipaddr.IPv4.isValidFourPartDecimal(spec.NetworkIP))
    faults.push(
      fieldError(
        at("NetworkIP"),
        "format_invalid",
        `NetworkIP must be an IPv4 address such as 10.0.0.5, not ${JSON.stringify(spec.NetworkIP)}.`,
      ),
    );
  return faults;
}

/** What the image's guests would not do of user data, which they otherwise leave out unseen. */
export function checkUserData(
  image: Pick<ImageRow, "name" | "guest"> | null,
  userData: string | null | undefined,
  pointer: string,
): FieldError[] {
  if (image?.guest !== "tiny" || !userData) return [];
  const why = whyNotTiny(userData);
  if (why === null) return [];
  const detail = `UserData must be a script that begins with #!, or #cloud-config of what image ${image.name} does without cloud-init: ${why}.`;
  return [fieldError(pointer, "value_not_allowed", detail)];
}

const isFault = (found: object): found is FieldError => "pointer" in found;

/** The keys of a body, each once; those that are not there, or cannot be put into this family, are faults at `pointer`. */
export function chooseKeys(
  ids: readonly number[],
  known: ReadonlyMap<number, SshKeyRow>,
  family: ImageRow["family"] | null,
  pointer: string,
): { readonly keys: SshKeyRow[]; readonly faults: FieldError[] } {
  const keys = new Map<number, SshKeyRow>();
  const faults: FieldError[] = [];
  for (const [index, id] of ids.entries()) {
    const at = `${pointer}/${index}`;
    const key = known.get(id);
    if (key === undefined)
      faults.push(fieldError(at, "unknown_reference", `SshKeys must not name SSH key ${id}: there is none.`));
    else if (family === "Windows")
      faults.push(fieldError(at, "value_not_allowed", "SshKeys must be empty for an image of the family Windows."));
    else keys.set(id, key);
  }
  return { keys: [...keys.values()], faults };
}

/** Throws `location_mismatch` for an image that is not offered in the location. */
export function requireImageInLocation(image: ImageRow, location: string, pointer: string): void {
  if (image.location === null || image.location === location) return;
  const detail = `Image ${image.id} (${image.name}) is in ${image.location}, the server in ${location}.`;
  throw errorAt("location_mismatch", pointer, detail);
}

/** Throws `disk_too_small`. */
export function requireDiskSize(image: ImageRow, hdd: number, pointer: string): void {
  if (hdd >= image.hdd) return;
  const detail = `Image ${image.id} (${image.name}) needs ${image.hdd} GB, the disk has ${hdd} GB.`;
  throw errorAt("disk_too_small", pointer, detail);
}

const upTo = (step: number, value: number): number => Math.ceil(value / step) * step;

/**
 * Throws `validation_failed` with all that is not there; then, alone, `image_not_ready`, `location_mismatch`, `network_deleting`,
 * `disk_too_small`.
 */
export function planServer(member: Member, references: References): ServerSpec {
  const { spec, at } = member;
  const faults = checkServerInput(member);
  const take = <T extends object>(found: T | FieldError): T | null => {
    if (!isFault(found)) return found;
    faults.push(found);
    return null;
  };
  if (spec.Name === undefined) faults.push(fieldError(at("Name"), "field_required", "Name is required."));
  const image = take<ImageRow>(chooseImage(references.images, spec.ImageID, at("ImageID")));
  const network = spec.NetworkID === undefined ? null : (references.networks.get(spec.NetworkID) ?? null);
  if (spec.NetworkID !== undefined && network === null)
    faults.push(
      fieldError(
        at("NetworkID"),
        "unknown_reference",
        `NetworkID must not be ${spec.NetworkID}: there is no such network.`,
      ),
    );
  const title = spec.DCLocation || network?.location || references.locations[0] || "";
  const location = chooseLocation(references.locations, title, at("DCLocation"));
  if (typeof location !== "string") faults.push(location);
  const chosen = chooseKeys(spec.SshKeys ?? [], references.keys, image?.family ?? null, at("SshKeys"));
  faults.push(...chosen.faults, ...checkUserData(image, spec.UserData, at("UserData")));
  const least = upTo(sizes.RAM.step, image?.min_ram ?? 0);
  const ram = spec.RAM ?? Math.max(sizes.RAM.default, least);
  if (image !== null && ram < image.min_ram)
    faults.push(
      fieldError(at("RAM"), "out_of_range", `RAM must be at least ${least} MB for image ${image.name}, not ${ram}.`),
    );
  if (faults.length > 0 || image === null || typeof location !== "string") throw invalidFields(faults);

  requireUsable(image);
  requireImageInLocation(image, location, at("ImageID"));
  if (network !== null && network.location !== location)
    throw errorAt(
      "location_mismatch",
      at("NetworkID"),
      `Network ${network.id} is in ${network.location}, the server in ${location}.`,
    );
  if (network?.state === "Deleting") throw new ApiError("network_deleting", `Network ${network.id} is being deleted.`);
  const hdd = spec.HDD ?? Math.max(sizes.HDD.default, image.hdd);
  requireDiskSize(image, hdd, at("HDD"));

  const name = spec.Name ?? "";
  const { HDDType: hddType = "SSD" } = spec;
  return {
    name,
    hostName: spec.HostName || hostNameOf(name),
    cpu: spec.CPU ?? sizes.CPU.default,
    ram,
    hdd,
    fast: spec.IsHighPerformance ?? false,
    hddType: hddType === "HDD" ? "SAS" : hddType,
    location,
    image,
    keys: chosen.keys,
    network,
    bandwidth: spec.NetworkBandwidth ?? null,
    ip: spec.NetworkIP || null,
    ipPointer: at("NetworkIP"),
    userData: spec.UserData || null,
    waitFor: spec.WaitFor ?? "Power",
    isProtected: spec.IsProtected ?? false,
    isBackupActive: spec.isBackupActive ?? false,
    backupPeriod: spec.BackupPeriod ?? serverLimits.backupDays,
    labels: spec.Labels ?? {},
  };
}
