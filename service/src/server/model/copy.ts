/** The plan of a copy: the source's sizes and image, a name, a place and an identity of its own (docs/spec.md#server-endpoints). */
import type { ServerCopy } from "@brume/api/server.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import type { SshKeyRow } from "../../catalog/table.ts";
import type { ServerRow } from "../table.ts";
import { hostNameOf } from "./hostname.ts";
import { checkServerInput, checkUserData, chooseKeys, type Member, type References, type ServerSpec } from "./plan.ts";
import type { Sizes } from "./resize.ts";

const suffix = "-copy";
const mostCharacters = 64;

/** The source's name with `-copy` behind it, cut in front of that if need be. */
export const copyName = (name: string): string =>
  Array.from(name)
    .slice(0, mostCharacters - suffix.length)
    .join("") + suffix;

/** `NetworkId` is how clients in the field spell it here. */
const at: Member["at"] = (field) => (field === "NetworkID" ? "/NetworkId" : `/${field}`);

export const checkCopy = (body: Partial<ServerCopy>) => checkServerInput({ spec: body, at });

export interface Source {
  readonly server: ServerRow;
  /** As its disk will be when its turn comes. */
  readonly sizes: Sizes;
  /** What was put into it. */
  readonly keys: readonly SshKeyRow[];
}

/** Throws `validation_failed` with all that is not there; then, alone, `location_mismatch`, `network_deleting`. */
export function planCopy(
  body: ServerCopy,
  source: Source,
  references: Pick<References, "networks" | "keys">,
): ServerSpec {
  const { server, sizes } = source;
  const image = { id: server.image_id, name: server.image_name, family: server.family, guest: server.guest };
  const faults = checkCopy(body);
  const network = body.NetworkId === undefined ? null : (references.networks.get(body.NetworkId) ?? null);
  if (body.NetworkId !== undefined && network === null)
    faults.push(
      fieldError(
        "/NetworkId",
        "unknown_reference",
        `NetworkId must not be ${body.NetworkId}: there is no such network.`,
      ),
    );
  const chosen = body.SshKeys && chooseKeys(body.SshKeys, references.keys, server.family, "/SshKeys");
  faults.push(...(chosen?.faults ?? []), ...checkUserData(image, body.UserData, "/UserData"));
  if (faults.length > 0) throw invalidFields(faults);
  if (network !== null && network.location !== server.location)
    throw errorAt(
      "location_mismatch",
      "/NetworkId",
      `Network ${network.id} is in ${network.location}, server ${server.id} in ${server.location}.`,
    );
  if (network?.state === "Deleting") throw new ApiError("network_deleting", `Network ${network.id} is being deleted.`);
  const name = body.Name ?? copyName(server.name);
  return {
    name,
    hostName: body.HostName || hostNameOf(name),
    ...sizes,
    hddType: server.hdd_type,
    location: server.location,
    image,
    keys: chosen?.keys ?? source.keys,
    network,
    bandwidth: body.NetworkBandwidth ?? null,
    ip: body.NetworkIP || null,
    ipPointer: "/NetworkIP",
    userData: body.UserData || null,
    waitFor: body.WaitFor ?? "Power",
    isProtected: false,
    isBackupActive: false,
    backupPeriod: server.backup_period,
    labels: body.Labels ?? (JSON.parse(server.labels) as ServerSpec["labels"]),
  };
}
