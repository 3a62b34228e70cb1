/**
 * A guest that comes from the disk of another server is another guest: with host keys, a machine id and passwords of its own. One with
 * cloud-init, and Tiny Linux, takes them from the seed. Out of the disk of any other they are removed before its first start.
 */

import { findImage } from "../../catalog/table.ts";
import type { ServerRow } from "../table.ts";
import { type FlowContext } from "./context.ts";
import { attempt } from "./error.ts";

/** Of a server that was never started from the disk of this version. Resolves to a sentence. */
export async function renewGuest(context: FlowContext, server: ServerRow, signal: AbortSignal): Promise<string> {
  const { id, guest, family, disk_version } = server;
  if (guest !== null) return "the guest renews itself at its first start";
  const kept = "identity of the source's guest not removed";
  if (family !== "Linux") return `${kept}: in a ${family} guest nothing is looked for`;
  const { removed, detail } = await attempt("disk_failed", `The disk of server ${id} could not be changed`, () =>
    context.machines.ensureIdentityRemoved(id, disk_version, signal),
  );
  return removed ? "host keys, machine id, password hashes, authorized keys and logs removed" : `${kept}: ${detail}`;
}

/** Of all images only backups keep the identity of the server that they were made of. Resolves to the end of a sentence. */
export async function renewBackup(context: FlowContext, server: ServerRow, signal: AbortSignal): Promise<string> {
  const image = await findImage(context.store.read, server.project_id, server.image_id);
  const isOfAnother = image?.type === "Backup" && image.server_id !== server.id;
  return isOfAnother ? `; ${await renewGuest(context, server, signal)}` : "";
}
