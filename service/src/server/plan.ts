/**
 * A wish for a server and what it refers to, brought together to what will be made; or every fault of it at once
 * (docs/spec.md#server-endpoints, `POST /server`, step 1). What needs more than the wish itself (quotas, room, a free address) is held
 * after it.
 */
import type { WaitFor } from "@brume/api/action.ts";
import type { Labels } from "@brume/api/common.ts";
import type { FieldFault } from "@brume/api/errors.ts";
import { type HddType, type ServerWish, serverLimits, sizes } from "@brume/api/server.ts";
import ipaddr from "ipaddr.js";
import { Fault, faultAt, fieldFault, invalidFields } from "../base/fault.ts";
import { chooseImage, chooseLocation, holdUsable } from "../catalog/rules.ts";
import type { ImageRow, SshKeyRow } from "../catalog/table.ts";
import { whyNotTiny } from "../drivers/machine/userdata.ts";
import type { NetworkRow } from "../network/table.ts";
import { hostNameOf } from "./hostname.ts";

/** What wishes can refer to, as far as the project sees it. */
export interface Stock {
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
  readonly wish: Partial<ServerWish>;
  at(field: keyof ServerWish): string;
}

export const single = (wish: Partial<ServerWish>): Member => ({ wish, at: (field) => `/${field}` });

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
export function checkWish({ wish, at }: Pick<Member, "wish" | "at">): FieldFault[] {
  const faults: FieldFault[] = [];
  const bytes = Buffer.byteLength(wish.UserData ?? "");
  if (bytes > serverLimits.userData)
    faults.push(
      fieldFault(
        at("UserData"),
        "too_long",
        `UserData must have at most ${serverLimits.userData} bytes, not ${bytes}.`,
      ),
    );
  if (wish.NetworkIP && !ipaddr.IPv4.isValidFourPartDecimal(wish.NetworkIP))
    faults.push(
      fieldFault(
        at("NetworkIP"),
        "format_invalid",
        `NetworkIP must be an IPv4 address such as 10.0.0.5, not ${JSON.stringify(wish.NetworkIP)}.`,
      ),
    );
  return faults;
}

/** What the image's guests would not do of user data, which they otherwise leave out unseen. */
export function checkUserData(
  image: Pick<ImageRow, "name" | "guest"> | null,
  userData: string | null | undefined,
  pointer: string,
): FieldFault[] {
  if (image?.guest !== "tiny" || !userData) return [];
  const why = whyNotTiny(userData);
  if (why === null) return [];
  const detail = `UserData must be a script that begins with #!, or #cloud-config of what image ${image.name} does without cloud-init: ${why}.`;
  return [fieldFault(pointer, "value_not_allowed", detail)];
}

const isFault = (found: object): found is FieldFault => "pointer" in found;

/** The keys of a body, each once; those that are not there, or cannot be put into this family, are faults at `pointer`. */
export function chooseKeys(
  ids: readonly number[],
  known: ReadonlyMap<number, SshKeyRow>,
  family: ImageRow["family"] | null,
  pointer: string,
): { readonly keys: SshKeyRow[]; readonly faults: FieldFault[] } {
  const keys = new Map<number, SshKeyRow>();
  const faults: FieldFault[] = [];
  for (const [index, id] of ids.entries()) {
    const at = `${pointer}/${index}`;
    const key = known.get(id);
    if (key === undefined)
      faults.push(fieldFault(at, "unknown_reference", `SshKeys must not name SSH key ${id}: there is none.`));
    else if (family === "Windows")
      faults.push(fieldFault(at, "value_not_allowed", "SshKeys must be empty for an image of the family Windows."));
    else keys.set(id, key);
  }
  return { keys: [...keys.values()], faults };
}

/** Throws `location_mismatch` for an image that is not offered in the location. */
export function holdPlace(image: ImageRow, location: string, pointer: string): void {
  if (image.location === null || image.location === location) return;
  const detail = `Image ${image.id} (${image.name}) is in ${image.location}, the server in ${location}.`;
  throw faultAt("location_mismatch", pointer, detail);
}

/** Throws `disk_too_small`. */
export function holdDisk(image: ImageRow, hdd: number, pointer: string): void {
  if (hdd >= image.hdd) return;
  const detail = `Image ${image.id} (${image.name}) needs ${image.hdd} GB, the disk has ${hdd} GB.`;
  throw faultAt("disk_too_small", pointer, detail);
}

const upTo = (step: number, value: number): number => Math.ceil(value / step) * step;

/**
 * Throws `validation_failed` with all that is not there; then, alone, `image_not_ready`, `location_mismatch`, `network_deleting`,
 * `disk_too_small`.
 */
export function planServer(member: Member, stock: Stock): ServerSpec {
  const { wish, at } = member;
  const faults = checkWish(member);
  const take = <T extends object>(found: T | FieldFault): T | null => {
    if (!isFault(found)) return found;
    faults.push(found);
    return null;
  };
  if (wish.Name === undefined) faults.push(fieldFault(at("Name"), "field_required", "Name is required."));
  const image = take<ImageRow>(chooseImage(stock.images, wish.ImageID, at("ImageID")));
  const network = wish.NetworkID === undefined ? null : (stock.networks.get(wish.NetworkID) ?? null);
  if (wish.NetworkID !== undefined && network === null)
    faults.push(
      fieldFault(
        at("NetworkID"),
        "unknown_reference",
        `NetworkID must not be ${wish.NetworkID}: there is no such network.`,
      ),
    );
  const title = wish.DCLocation || network?.location || stock.locations[0] || "";
  const location = chooseLocation(stock.locations, title, at("DCLocation"));
  if (typeof location !== "string") faults.push(location);
  const chosen = chooseKeys(wish.SshKeys ?? [], stock.keys, image?.family ?? null, at("SshKeys"));
  faults.push(...chosen.faults, ...checkUserData(image, wish.UserData, at("UserData")));
  const least = upTo(sizes.RAM.step, image?.min_ram ?? 0);
  const ram = wish.RAM ?? Math.max(sizes.RAM.default, least);
  if (image !== null && ram < image.min_ram)
    faults.push(
      fieldFault(at("RAM"), "out_of_range", `RAM must be at least ${least} MB for image ${image.name}, not ${ram}.`),
    );
  if (faults.length > 0 || image === null || typeof location !== "string") throw invalidFields(faults);

  holdUsable(image);
  holdPlace(image, location, at("ImageID"));
  if (network !== null && network.location !== location)
    throw faultAt(
      "location_mismatch",
      at("NetworkID"),
      `Network ${network.id} is in ${network.location}, the server in ${location}.`,
    );
  if (network?.state === "Deleting") throw new Fault("network_deleting", `Network ${network.id} is being deleted.`);
  const hdd = wish.HDD ?? Math.max(sizes.HDD.default, image.hdd);
  holdDisk(image, hdd, at("HDD"));

  const name = wish.Name ?? "";
  const { HDDType: hddType = "SSD" } = wish;
  return {
    name,
    hostName: wish.HostName || hostNameOf(name),
    cpu: wish.CPU ?? sizes.CPU.default,
    ram,
    hdd,
    fast: wish.IsHighPerformance ?? false,
    hddType: hddType === "HDD" ? "SAS" : hddType,
    location,
    image,
    keys: chosen.keys,
    network,
    bandwidth: wish.NetworkBandwidth ?? null,
    ip: wish.NetworkIP || null,
    ipPointer: at("NetworkIP"),
    userData: wish.UserData || null,
    waitFor: wish.WaitFor ?? "Power",
    isProtected: wish.IsProtected ?? false,
    isBackupActive: wish.isBackupActive ?? false,
    backupPeriod: wish.BackupPeriod ?? serverLimits.backupDays,
    labels: wish.Labels ?? {},
  };
}
