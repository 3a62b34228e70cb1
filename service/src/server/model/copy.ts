/** Plans a copy of a server: sizes and image of the source, with a new name, network and identity (docs/spec.md#server-endpoints). */
import type { ServerCopy } from "@brume/api/serverinput.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import type { SshKeyRow } from "../../catalog/table.ts";
import type { ServerRow } from "../table.ts";
import { hostNameOf } from "./hostname.ts";
import { checkServerInput, checkUserData, chooseKeys, type Member, type References, type ServerSpec } from "./plan.ts";
import type { Sizes } from "./resize.ts";

const suffix = "-copy";
const mostCharacters = 64;

/** Returns the name of the source with `-copy` appended, shortened to the longest valid name. */
export const copyName = (name: string): string =>
  Array.from(name)
    .slice(0, mostCharacters - suffix.length)
    .join("") + suffix;

/** The legacy interface spells this field `NetworkId` in copies. */
const at: Member["at"] = (field) => (field === "NetworkID" ? "/NetworkId" : `/${field}`);

/** Returns the errors that the schema cannot express and that need no stored object. */
export const checkCopy = (body: Partial<ServerCopy>) => checkServerInput({ spec: body, at });

/** The server to copy. */
export interface Source {
  readonly server: ServerRow;
  /** Sizes after all actions that are queued before the copy. */
  readonly sizes: Sizes;
  /** Keys of the source. */
  readonly keys: readonly SshKeyRow[];
}

/** Returns the spec of the copy. Throws `validation_failed` with all errors of fields, else `location_mismatch` or `network_deleting`. */
export function planCopy(
  body: ServerCopy,
  source: Source,
  references: Pick<References, "networks" | "keys">,
): ServerSpec {
  const { server, sizes } = source;
  const image = { id: server.image_id, name: server.image_name, family: server.family, guest: server.guest };
  const errors = checkCopy(body);
  const network = body.NetworkId === undefined ? null : (references.networks.get(body.NetworkId) ?? null);
  if (body.NetworkId !== undefined && network === null)
    errors.push(
      fieldError(
        "/NetworkId",
        "unknown_reference",
        `NetworkId: network ${body.NetworkId} does not exist in this project.`,
      ),
    );
  const chosen = body.SshKeys && chooseKeys(body.SshKeys, references.keys, server.family, "/SshKeys");
  errors.push(...(chosen?.errors ?? []), ...checkUserData(image, body.UserData, "/UserData"));
  if (errors.length > 0) throw invalidFields(errors);
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
