/**
 * A server that was found without a row gets one, in the project that an operator names. It is switched off; its number and its disk stay,
 * while address and password are new, and with them the identity that its guest is given at the next start.
 */
import { listStock } from "../../catalog/table.ts";
import type { Flow } from "../../engine/flow.ts";
import { findShared, updateLink } from "../../network/table.ts";
import type { Tx } from "../../store/db.ts";
import { hostNameOf, numberedHostName } from "../hostname.ts";
import { numberOf, type OrphanRow } from "../orphantable.ts";
import { createPassword } from "../password.ts";
import { insertServer, type ServerRow } from "../table.ts";
import { joinNetwork } from "./network.ts";
import { orderSettle } from "./settle.ts";
import { tellServer } from "./tell.ts";
import type { Cause, FlowTools } from "./tools.ts";

/** Where nothing is known of what it had. */
const least = { cpu: 1, ram: 512, hdd: 1 } as const;

export interface AdoptWish {
  readonly project: number;
  readonly name: string;
  readonly location: string;
}

/** Throws `network_full`. */
export async function adoptServer(
  tools: FlowTools,
  tx: Tx,
  settle: Flow,
  orphan: OrphanRow,
  { project, name, location }: AdoptWish,
  by: Cause | null,
): Promise<ServerRow> {
  const { clock, sealer, random } = tools;
  const id = numberOf(orphan);
  if (id === null) throw new Error(`${orphan.name} is no server`);
  const stock = await listStock(tx);
  const origin = stock.find(({ folder, name: own }) => [folder, own].includes(orphan.image));
  const image = origin ?? stock[0];
  if (image === undefined) throw new Error("there is no image in the stock");
  const home = await findShared(tx, location);
  if (home === undefined) throw new Error(`${location} has no shared network`);
  const sizes = {
    cpu: orphan.cpu || least.cpu,
    ram: orphan.ram || Math.max(least.ram, image.min_ram),
    hdd: orphan.hdd || least.hdd,
  };
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
    image_name: orphan.image || image.name,
    family: image.family,
    guest: origin?.guest ?? null,
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
  const [link] = await joinNetwork(tools, tx, home.id, { server: id, hostName, now, pointer: "" });
  await updateLink(tx, link.id, { state: "Active" });
  await tellServer(tools, tx, server, "created", by);
  await orderSettle(tools, tx, settle, server);
  return server;
}
