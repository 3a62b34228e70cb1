/**
 * Validates the body of a new server against the objects that it refers to, and returns the complete spec or all errors at once
 * (docs/spec.md#server-endpoints, `POST /server`, step 1). Quotas, capacity and free addresses are checked later, in the handler.
 */
import type { WaitFor } from "@brume/api/action.ts";
import type { Labels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { type CreateServerInput, type HddType, serverLimits, sizes } from "@brume/api/serverinput.ts";
import ipaddr from "ipaddr.js";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import { chooseImage, chooseLocation, requireUsable } from "../../catalog/model/rules.ts";
import type { ImageRow, SshKeyRow } from "../../catalog/table.ts";
import { whyNotTiny, whyUnreadable } from "../../drivers/machine/seed/userdata.ts";
import type { NetworkRow } from "../../network/table.ts";
import { hostNameOf } from "./hostname.ts";

/** Objects that the body of a request can refer to, limited to those that the project can see. */
export interface References {
  /** In order of id. */
  readonly images: readonly ImageRow[];
  /** The first is the default. */
  readonly locations: readonly string[];
  /** Networks of the project and shared networks, by id. */
  readonly networks: ReadonlyMap<number, NetworkRow>;
  readonly keys: ReadonlyMap<number, SshKeyRow>;
}

/** The fields of one server, and the JSON pointer of each in the body: `/CPU`, or `/Servers/2/CPU` in a group. */
export interface Member {
  readonly spec: Partial<CreateServerInput>;
  at(field: keyof CreateServerInput): string;
}

/** Returns the only server of a body. */
export const single = (spec: Partial<CreateServerInput>): Member => ({ spec, at: (field) => `/${field}` });

/** A valid new server with all defaults filled in. Sizes are cores, MB and GB. */
export interface ServerSpec {
  readonly name: string;
  /** Null: derived from the id of the server. */
  readonly hostName: string | null;
  readonly cpu: number;
  readonly ram: number;
  readonly hdd: number;
  readonly fast: boolean;
  readonly hddType: HddType;
  readonly location: string;
  readonly image: Pick<ImageRow, "id" | "name" | "family" | "guest">;
  /** Without duplicates. */
  readonly keys: readonly SshKeyRow[];
  /** Null: the shared network of the location. */
  readonly network: NetworkRow | null;
  /** Mbit/s; null: the default of the kind of network. */
  readonly bandwidth: number | null;
  /** Null: the lowest free address. */
  readonly ip: string | null;
  /** JSON pointer of `ip` in the body. */
  readonly ipPointer: string;
  readonly userData: string | null;
  readonly waitFor: WaitFor;
  readonly isProtected: boolean;
  readonly isBackupActive: boolean;
  readonly backupPeriod: number;
  readonly labels: Labels;
}

/** Returns the errors that the schema cannot express and that need no stored object. */
export function checkServerInput({ spec, at }: Pick<Member, "spec" | "at">): FieldError[] {
  const errors: FieldError[] = [];
  const bytes = Buffer.byteLength(spec.UserData ?? "");
  if (bytes > serverLimits.userData)
    errors.push(
      fieldError(
        at("UserData"),
        "too_long",
        `UserData must have at most ${serverLimits.userData} bytes, not ${bytes}.`,
      ),
    );
  if (spec.NetworkIP && !ipaddr.IPv4.isValidFourPartDecimal(spec.NetworkIP))
    errors.push(
      fieldError(
        at("NetworkIP"),
        "format_invalid",
        `NetworkIP must be an IPv4 address such as 10.0.0.5, not ${JSON.stringify(spec.NetworkIP)}.`,
      ),
    );
  return errors;
}

/** Returns an error for user data that cannot be read, or that the guest of the image would ignore: only Tiny Linux has such limits. */
export function checkUserData(
  image: Pick<ImageRow, "name" | "guest"> | null,
  userData: string | null | undefined,
  pointer: string,
): FieldError[] {
  if (!userData) return [];
  const refuse = (detail: string): FieldError[] => [fieldError(pointer, "value_not_allowed", detail)];
  if (image?.guest !== "tiny") {
    const broken = whyUnreadable(userData);
    return broken === null ? [] : refuse(`UserData cannot be read. ${broken}`);
  }
  const why = whyNotTiny(userData);
  if (why === null) return [];
  return refuse(
    `UserData must be a script that begins with #!, or a #cloud-config that image ${image.name} supports without cloud-init. ${why}`,
  );
}

const isFieldError = (found: object): found is FieldError => "pointer" in found;

/** Returns the SSH keys of a body without duplicates, and an error at `pointer` for each that does not exist or that the family cannot use. */
export function chooseKeys(
  ids: readonly number[],
  known: ReadonlyMap<number, SshKeyRow>,
  family: ImageRow["family"] | null,
  pointer: string,
): { readonly keys: SshKeyRow[]; readonly errors: FieldError[] } {
  const keys = new Map<number, SshKeyRow>();
  const errors: FieldError[] = [];
  for (const [index, id] of ids.entries()) {
    const at = `${pointer}/${index}`;
    const key = known.get(id);
    if (key === undefined)
      errors.push(fieldError(at, "unknown_reference", `SshKeys: SSH key ${id} does not exist in this project.`));
    else if (family === "Windows")
      errors.push(fieldError(at, "value_not_allowed", "SshKeys must be empty for an image of the family Windows."));
    else keys.set(id, key);
  }
  return { keys: [...keys.values()], errors };
}

/** Throws `location_mismatch` if the image is in another location. */
export function requireImageInLocation(image: ImageRow, location: string, pointer: string): void {
  if (image.location === null || image.location === location) return;
  const detail = `Image ${image.id} (${image.name}) is in ${image.location}, the server in ${location}.`;
  throw errorAt("location_mismatch", pointer, detail);
}

/** Throws `disk_too_small` if the disk of `hdd` GB is smaller than the image needs. */
export function requireDiskSize(image: ImageRow, hdd: number, pointer: string): void {
  if (hdd >= image.hdd) return;
  const detail = `Image ${image.id} (${image.name}) needs ${image.hdd} GB, the disk has ${hdd} GB.`;
  throw errorAt("disk_too_small", pointer, detail);
}

const upTo = (step: number, value: number): number => Math.ceil(value / step) * step;

/**
 * Returns the spec of a new server. Throws `validation_failed` with all invalid fields and missing objects; if there are none, throws
 * `image_not_ready`, `location_mismatch`, `network_deleting` or `disk_too_small`.
 */
export function planServer(member: Member, references: References): ServerSpec {
  const { spec, at } = member;
  const errors = checkServerInput(member);
  const take = <T extends object>(found: T | FieldError): T | null => {
    if (!isFieldError(found)) return found;
    errors.push(found);
    return null;
  };
  if (spec.Name === undefined) errors.push(fieldError(at("Name"), "field_required", "Name is required."));
  const image = take<ImageRow>(chooseImage(references.images, spec.ImageID, at("ImageID")));
  const network = spec.NetworkID === undefined ? null : (references.networks.get(spec.NetworkID) ?? null);
  if (spec.NetworkID !== undefined && network === null)
    errors.push(
      fieldError(
        at("NetworkID"),
        "unknown_reference",
        `NetworkID: network ${spec.NetworkID} does not exist in this project.`,
      ),
    );
  const title = spec.DCLocation || network?.location || references.locations[0] || "";
  const location = chooseLocation(references.locations, title, at("DCLocation"));
  if (typeof location !== "string") errors.push(location);
  const chosen = chooseKeys(spec.SshKeys ?? [], references.keys, image?.family ?? null, at("SshKeys"));
  errors.push(...chosen.errors, ...checkUserData(image, spec.UserData, at("UserData")));
  const least = upTo(sizes.RAM.step, image?.min_ram ?? 0);
  const ram = spec.RAM ?? Math.max(sizes.RAM.default, least);
  if (image !== null && ram < image.min_ram)
    errors.push(
      fieldError(at("RAM"), "out_of_range", `RAM must be at least ${least} MB for image ${image.name}, not ${ram}.`),
    );
  if (errors.length > 0 || image === null || typeof location !== "string") throw invalidFields(errors);

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
