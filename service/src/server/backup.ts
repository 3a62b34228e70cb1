/** Reconciler of daily backups: creates an image of every server with backups, once a day, and deletes old ones (docs/spec.md#backups-and-images). */

import { formatDate } from "@brume/api/common.ts";
import { serverLimits } from "@brume/api/serverinput.ts";
import { since } from "../base/clock.ts";
import { readPages } from "../base/turn.ts";
import { techNameOf } from "../catalog/model/rules.ts";
import {
  type BackupAgeRow,
  backupsPerPage,
  findAnyImage,
  listFailedBackupsOf,
  lockImage,
  pageBackups,
} from "../catalog/table.ts";
import { defineReconciler, type Reconciler } from "../engine/flow.ts";
import type { PruneTime } from "../engine/prunetime.ts";
import { queue } from "../engine/task.ts";
import type { Tx } from "../store/db.ts";
import type { FlowContext } from "./flow/context.ts";
import { emitImageEvent } from "./flow/events.ts";
import { type ImageFlows, queueImage, queueImageRemoval } from "./flow/image.ts";
import type { QueueSlotFlow } from "./flow/queueslot.ts";
import { findAnyServer, pageServerBackups, type ServerBackupRow, statesPerPage, updateServer } from "./table.ts";

/** Milliseconds. */
const day = 86_400_000;
/** Milliseconds between checks for servers whose backup is due. */
const period = 600_000;
/** Days that backups are stored after their server was deleted. */
const daysAfterDelete = 28;

/** Milliseconds from a failed backup to the next attempt. */
const retry = 1_800_000;

const isDue = ({ state, is_backup_active, backed_up, backup_failed }: ServerBackupRow, now: number): boolean =>
  state === "Active" &&
  is_backup_active === 1 &&
  (backed_up === null || since(backed_up, now, period) >= day) &&
  (backup_failed === null || since(backup_failed, now, period) >= retry);

/** `days`: how long the server keeps backups; undefined: it does not exist. */
const isOld = ({ created }: BackupAgeRow, days: number | undefined, now: number): boolean =>
  created <= now - (days ?? Math.max(daysAfterDelete, serverLimits.backupDays)) * day;

/** Returns the reconciler that creates due backups and deletes old ones. */
export function backupReconciler(
  context: FlowContext,
  flows: ImageFlows & { readonly slot: QueueSlotFlow },
  pruneTime: PruneTime,
): Reconciler {
  const { store, clock } = context;

  async function begin(tx: Tx, id: number, now: number): Promise<void> {
    // A busy server is checked again in the next run.
    if ((await queue(tx, { kind: "server", id })).length > 0) return;
    const server = await findAnyServer(tx, id);
    if (server === undefined || !isDue(server, now)) return;
    // Failed images are removed; the error stays in the server.
    for (const image of await listFailedBackupsOf(tx, id)) await queueImageRemoval(context, tx, flows, image, null);
    const name = `${Array.from(server.name).slice(0, 52).join("")} ${formatDate(now).slice(0, 10)}`;
    const backup = { type: "Backup", name, techName: techNameOf(name), labels: {} } as const;
    const { image } = await queueImage(context, tx, flows, server, backup, null);
    await emitImageEvent(context, tx, image, "created", null);
    await updateServer(tx, id, { backed_up: now });
  }

  async function remove(tx: Tx, id: number): Promise<void> {
    await lockImage(tx, id);
    const image = await findAnyImage(tx, id);
    if (image !== undefined) await queueImageRemoval(context, tx, flows, image, null);
  }

  return defineReconciler({
    name: "server.backup",
    subject: "servers",
    single: true,
    period,
    async run() {
      const now = clock.now();
      const daysOf = new Map<number, number>();
      const pages = readPages(statesPerPage, (after) =>
        pageServerBackups.all(store.read, { after, limit: statesPerPage }),
      );
      for await (const page of pages)
        for (const server of page) {
          daysOf.set(server.id, server.backup_period);
          if (isDue(server, now)) await store.write((tx) => begin(tx, server.id, now));
        }
      const old = await pruneTime.read();
      const backups = readPages(backupsPerPage, (after) =>
        pageBackups.all(store.read, { after, limit: backupsPerPage }),
      );
      for await (const page of backups)
        for (const backup of page)
          if (isOld(backup, daysOf.get(backup.server_id ?? 0), old)) await store.write((tx) => remove(tx, backup.id));
    },
  });
}
