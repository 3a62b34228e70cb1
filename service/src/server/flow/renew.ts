/**
 * Gives the guest on a copied disk a new identity: host keys, machine id and passwords. Guests with cloud-init and Tiny Linux take them
 * from the seed. From other disks the old identity is removed before the first start.
 */

import { findImage } from "../../catalog/table.ts";
import type { ServerRow } from "../table.ts";
import type { FlowContext } from "./context.ts";
import { attempt } from "./error.ts";

/** Removes the identity from the disk of a server that has not been started from it. Resolves to the detail of the step. */
export async function renewGuest(context: FlowContext, server: ServerRow, signal: AbortSignal): Promise<string> {
  const { id, guest, family, disk_version } = server;
  if (guest !== null) return "the guest creates a new identity at its first start";
  const kept = "identity of the source's guest not removed";
  if (family !== "Linux") return `${kept}: not supported for ${family} guests`;
  const { removed, detail } = await attempt("disk_failed", `Could not change the disk of server ${id}`, () =>
    context.machines.ensureIdentityRemoved(id, disk_version, signal),
  );
  return removed ? "host keys, machine id, password hashes, authorized keys and logs removed" : `${kept}: ${detail}`;
}

/** Does the same if the image is a backup of another server: only backups contain an identity. Resolves to the end of a detail. */
export async function renewBackup(context: FlowContext, server: ServerRow, signal: AbortSignal): Promise<string> {
  const image = await findImage(context.store.read, server.project_id, server.image_id);
  const isOfAnother = image?.type === "Backup" && image.server_id !== server.id;
  return isOfAnother ? `; ${await renewGuest(context, server, signal)}` : "";
}
