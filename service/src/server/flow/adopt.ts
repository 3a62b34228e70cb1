/**
 * Adopts an orphan: inserts a row for a server that exists on the host only, in the project that an operator selects. The server is off and
 * keeps its number and its disk. Address and password are new, so its guest gets a new identity at the next start.
 */
import type { ImageRow } from "../../catalog/table.ts";
import type { Flow } from "../../engine/flow.ts";
import { updateLink } from "../../network/linktable.ts";
import { findShared } from "../../network/table.ts";
import type { Tx } from "../../store/db.ts";
import { hostNameOf, numberedHostName } from "../model/hostname.ts";
import { createPassword } from "../model/password.ts";
import { numberOf, type OrphanRow } from "../orphantable.ts";
import { insertServer, type ServerRow } from "../table.ts";
import type { Cause, FlowContext } from "./context.ts";
import { emitServerEvent } from "./events.ts";
import { joinNetwork } from "./network.ts";
import { queueReconcile } from "./reconcile.ts";

/** Sizes where the label of the disk does not contain them: cores, MB, GB. */
const least = { cpu: 1, ram: 512, hdd: 1 } as const;

/** Returns the sizes that the server gets and that count against quotas and capacity. */
export const sizesOfOrphan = ({ cpu, ram, hdd }: OrphanRow, { min_ram }: Pick<ImageRow, "min_ram">) => ({
  cpu: cpu || least.cpu,
  ram: ram || Math.max(least.ram, min_ram),
  hdd: hdd || least.hdd,
});

/** The new row. */
export interface AdoptInput {
  readonly project: number;
  readonly image: ImageRow;
  /** Whether the disk was created from that image, so that its guest is known. */
  readonly isOrigin: boolean;
  readonly name: string;
  readonly location: string;
}

/** Inserts the row with its link and queues a reconcile. The caller has checked quotas, capacity and image. Throws `network_full`. */
export async function adoptServer(
  context: FlowContext,
  tx: Tx,
  reconcile: Flow,
  orphan: OrphanRow,
  { project, image, isOrigin, name, location }: AdoptInput,
  by: Cause | null,
): Promise<ServerRow> {
  const { clock, sealer, random } = context;
  const id = numberOf(orphan);
  if (id === null) throw new Error(`${orphan.name} is no server`);
  const home = await findShared(tx, location);
  if (home === undefined) throw new Error(`${location} has no shared network`);
  const sizes = sizesOfOrphan(orphan, image);
  const hostName = hostNameOf(name) ?? numberedHostName(id);
  const now = clock.now();
  const server = await insertServer(tx, {
    id,
    project_id: project,
    batch_id: null,
    name,
    host_name: hostName,
    state: "Active",
    is_on: 0,
    ...sizes,
    held_cpu: sizes.cpu,
    held_ram: sizes.ram,
    held_hdd: sizes.hdd,
    is_high_performance: 0,
    hdd_type: "SSD",
    location,
    image_id: image.id,
    image_name: image.name,
    family: image.family,
    guest: isOrigin ? image.guest : null,
    admin_password: sealer.seal(createPassword(random)),
    user_data: null,
    disk_version: orphan.disk_version,
    boot: orphan.boot + 1,
    is_protected: 0,
    is_backup_active: 0,
    backup_period: 7,
    backed_up: null,
    error: null,
    created: now,
    labels: "{}",
    version: 1,
  });
  const [link] = await joinNetwork(context, tx, home.id, { server: id, hostName, now, pointer: "" });
  await updateLink(tx, link.id, { state: "Active" });
  await emitServerEvent(context, tx, server, "created", by);
  await queueReconcile(context, tx, reconcile, server);
  return server;
}
