/**
 * Images made of servers' disks, wished for or as daily backups, and their end. BatchCreation one takes its turn in the queue of its server
 * for the moment of the snapshot; what that has kept is written out while the server goes on, changes or goes away.
 */

import type { Labels } from "@brume/api/common.ts";
import { deleteImage, findImage, type ImageRow, insertImage, updateImage } from "../../catalog/table.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { cancel, find, start, type Task, type TaskError } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { retire } from "../orphantable.ts";
import { findAnyServer, type ServerRow } from "../table.ts";
import { type Cause, type Facts, type FlowContext } from "./context.ts";
import { attempt, errorFor } from "./error.ts";
import { emitImageEvent } from "./events.ts";
import { type QueueSlotFlow, releaseQueueSlot, reserveQueueSlot, snapshotStep } from "./queueslot.ts";
import { codeOf } from "./reconcile.ts";
import { changeServer } from "./serverrow.ts";

interface ImageInput {
  readonly server: number;
  readonly folder: string;
  readonly title: string;
  /** As a backup does. */
  readonly keepsIdentity?: boolean;
}
interface RemovalInput {
  readonly folder: string;
}

/** Milliseconds for the whole of a disk. */
const longest = 6 * 3_600_000;
/** Of folders that are not the stock's; those of backups may be kept elsewhere. */
const prefixes = { Client: "own-", Backup: "backup-" } as const;

/** Whether a folder of images is of an image that was made here, and not of the operator's stock. */
export const isOwnFolder = (folder: string): boolean =>
  Object.values(prefixes).some((prefix) => folder.startsWith(prefix));
export const isBackupFolder = (folder: string): boolean => folder.startsWith(prefixes.Backup);

export function imageFlows(context: FlowContext) {
  const { images } = context;

  /** The row is gone already; servers that were made from it have what they need of it. */
  const remove: Flow<RemovalInput> = flow<RemovalInput>({
    name: "image.remove",
    subject: "image",
    persistent: true,
    steps: [{ name: "Remove", do: ({ input }) => images.removeImage(input.folder) }],
  });

  const make = flow<ImageInput, Facts>({
    name: "image.make",
    subject: "image",
    steps: [
      snapshotStep<ImageInput>(context, ({ server }) => server, {
        take: (_, { server, folder }) =>
          attempt("snapshot_failed", `Server ${server} gave no image`, () => images.ensureSnapshot(server, folder)),
        undo: ({ input: { folder } }) => images.removeImage(folder),
      }),
      {
        name: "Write",
        time: longest,
        async do({ input: { server, folder, title, keepsIdentity = false }, signal }) {
          const size = await attempt("snapshot_failed", `The image of server ${server} could not be written`, () =>
            images.ensureImage(server, folder, { title, keepsIdentity }, signal),
          );
          return { facts: { gb: size.gb, identity: size.identity } };
        },
        async save(tx, { subject, project, input: { folder }, facts }) {
          const row = await findImage(tx, project, subject);
          if (row === undefined) return;
          const { gb: hdd = row.hdd } = facts;
          const identity = facts.identity === undefined ? null : JSON.stringify(facts.identity);
          const done = { hdd, folder, identity, state: "Active", progress: 100, error: null } as const;
          await emitImageEvent(context, tx, await updateImage(tx, subject, done), "changed", facts.by ?? null);
        },
      },
    ],
    async ended(tx, { task, subject, project, input: { server }, facts }, ending) {
      await releaseQueueSlot(context, tx, server, task);
      const row = await findImage(tx, project, subject);
      if (row === undefined) return;
      const trouble = ending === "Completed" ? null : ((await find(tx, task))?.error ?? errorFor("superseded", ""));
      if (row.type === "Backup") await noteBackup(context, tx, server, trouble);
      if (trouble === null) return;
      const error = JSON.stringify(trouble);
      const failed = { state: "Failed", error } as const;
      await emitImageEvent(context, tx, await updateImage(tx, subject, failed), "changed", facts.by ?? null);
    },
  });

  return { make, remove };
}

export type ImageFlows = ReturnType<typeof imageFlows>;

export interface CreateImageInput {
  readonly type: "Client" | "Backup";
  readonly name: string;
  readonly techName: string;
  readonly labels: Labels;
}

/** The caller has held the order against the server's queue, and the quota; it tells of the new image. */
export async function queueImage(
  context: FlowContext,
  tx: Tx,
  { make, slot }: ImageFlows & { readonly slot: QueueSlotFlow },
  server: ServerRow,
  { type, name, techName, labels }: CreateImageInput,
  by: Cause | null,
): Promise<{ readonly image: ImageRow; readonly task: Task }> {
  const { id, project_id, hdd, family, guest, location } = server;
  const origin = await findImage(tx, project_id, server.image_id);
  const image = await insertImage(tx, {
    project_id,
    type,
    name,
    display_name: name,
    location,
    hdd,
    family,
    guest,
    min_ram: origin?.min_ram ?? 128,
    os: origin?.os ?? family,
    tech_name: techName,
    state: "New",
    folder: null,
    server_id: id,
    progress: 0,
    error: null,
    created: context.clock.now(),
    labels: JSON.stringify(labels),
    identity: null,
    version: 1,
  });
  const input = { server: id, folder: folderOf(image), title: name, keepsIdentity: type === "Backup" };
  const now = context.clock.now();
  const task = await start(tx, make, { subject: image.id, project: project_id, input, now, facts: { by } });
  await reserveQueueSlot(context, tx, slot, server, task, by);
  return { image, task };
}

/** The row goes at once, its disk in the background; one that is still being made is given up. */
export async function queueImageRemoval(
  context: FlowContext,
  tx: Tx,
  { remove }: ImageFlows,
  image: ImageRow,
  by: Cause | null,
): Promise<void> {
  const { id, project_id: project } = image;
  if (project === null) throw new Error(`image ${id} is of the stock`);
  const now = context.clock.now();
  await deleteImage(tx, id);
  await retire(tx, { kind: "Image", name: folderOf(image), uuid: "", date: now });
  await emitImageEvent(context, tx, image, "deleted", by);
  await cancel(tx, { kind: "image", id }, errorFor("superseded", `Image ${id} was deleted.`), now);
  await start(tx, remove, { subject: id, project, input: { folder: folderOf(image) }, now });
}

/** Backups of an earlier release are where they were made. */
const folderOf = ({ id, type, folder }: Pick<ImageRow, "id" | "type" | "folder">): string =>
  folder ?? `${prefixes[type === "Backup" ? "Backup" : "Client"]}${id}`;

/** The server says when its backup failed and why, until one succeeds; the next try is made on the same day. */
async function noteBackup(context: FlowContext, tx: Tx, id: number, trouble: TaskError | null): Promise<void> {
  const server = await findAnyServer(tx, id);
  if (server === undefined || server.state !== "Active") return;
  const isTold = server.error !== null && codeOf(server.error) === "backup_failed";
  if (trouble === null) {
    await changeServer(context, tx, id, { backup_failed: null, ...(isTold && { error: null }) }, null);
    return;
  }
  const detail = `The backup of server ${id} failed and is tried again within the hour: ${trouble.detail}`;
  context.log("warn", "A daily backup failed, and is tried again.", { server: id, detail: trouble.detail });
  const error = JSON.stringify(errorFor("backup_failed", detail));
  const change = { backed_up: null, backup_failed: context.clock.now() };
  // Another trouble of the server counts for more.
  await changeServer(context, tx, id, { ...change, ...((server.error === null || isTold) && { error }) }, null);
}
