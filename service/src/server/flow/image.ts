/**
 * Flows that create an image from the disk of a server, on request or as a daily backup, and that remove images. The snapshot is taken in
 * the queue of the server. After it, the image is written while the server runs, changes or is deleted.
 */

import type { Labels } from "@brume/api/common.ts";
import { deleteImage, findImage, type ImageRow, insertImage, updateImage } from "../../catalog/table.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { cancel, find, start, type Task, type TaskError } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { prefixes } from "../model/imagefolder.ts";
import { retire } from "../orphantable.ts";
import { findAnyServer, type ServerRow, updateServer } from "../table.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";
import { attempt, errorFor } from "./error.ts";
import { emitImageEvent } from "./events.ts";
import { type QueueSlotFlow, releaseQueueSlot, reserveQueueSlot, snapshotStep } from "./queueslot.ts";
import { codeOf } from "./reconcile.ts";
import { changeServer } from "./serverrow.ts";

interface ImageInput {
  readonly server: number;
  readonly folder: string;
  readonly title: string;
  /** Whether the identity of the guest stays in the image, as in backups. */
  readonly keepsIdentity?: boolean;
}
interface RemovalInput {
  readonly folder: string;
}

/** Milliseconds for writing a complete disk. */
const longest = 6 * 3_600_000;
/** Returns the flows that create and remove images. */
export function imageFlows(context: FlowContext) {
  const { images, uploads } = context;

  /** The request has already deleted the row. The driver keeps the parts that disks of servers use. */
  const remove: Flow<RemovalInput> = flow<RemovalInput>({
    name: "image.remove",
    subject: "image",
    persistent: true,
    steps: [
      {
        name: "Remove",
        async do({ input: { folder } }) {
          await uploads.removeUpload(folder);
          await images.removeImage(folder);
        },
      },
    ],
  });

  const make = flow<ImageInput, Facts>({
    name: "image.make",
    subject: "image",
    steps: [
      snapshotStep<ImageInput>(context, ({ server }) => server, {
        take: (_, { server, folder }) =>
          attempt("snapshot_failed", `Could not take a snapshot of server ${server}`, () =>
            images.ensureSnapshot(server, folder),
          ),
        async store(tx, { subject, project, facts }, { image_id, family, guest }) {
          const row = await findImage(tx, project, subject);
          if (row === undefined) return;
          // Of an image that was deleted since, the row has these fields already.
          const { min_ram, os } = (await findImage(tx, project, image_id)) ?? row;
          const isSame = row.family === family && row.guest === guest && row.min_ram === min_ram && row.os === os;
          if (isSame) return;
          const changed = await updateImage(tx, subject, { family, guest, min_ram, os });
          await emitImageEvent(context, tx, changed, "changed", facts.by ?? null);
        },
        undo: ({ input: { folder } }) => images.removeImage(folder),
      }),
      {
        name: "Write",
        time: longest,
        async do({ input: { server, folder, title, keepsIdentity = false }, signal }) {
          const size = await attempt("snapshot_failed", `Could not write the image of server ${server}`, () =>
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
      const canceled = errorFor("superseded", `The creation of image ${subject} was canceled.`);
      const failure = ending === "Completed" ? null : ((await find(tx, task))?.error ?? canceled);
      if (row.type === "Backup") await noteBackup(context, tx, server, failure);
      if (failure === null) return;
      const error = JSON.stringify(failure);
      const failed = { state: "Failed", error } as const;
      await emitImageEvent(context, tx, await updateImage(tx, subject, failed), "changed", facts.by ?? null);
    },
  });

  return { make, remove };
}

/** The flows, by what they do. */
export type ImageFlows = ReturnType<typeof imageFlows>;

/** The image to create from a server. */
export interface CreateImageInput {
  readonly type: "Client" | "Backup";
  readonly name: string;
  readonly techName: string;
  readonly labels: Labels;
}

/** Inserts the image and queues its creation. The caller has checked the server's state and the quota, and appends the event. */
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

/** Deletes the row now and queues the removal of the disk. Cancels the creation of the image if it is not finished. */
export async function queueImageRemoval(
  context: FlowContext,
  tx: Tx,
  { remove }: ImageFlows,
  image: ImageRow,
  by: Cause | null,
): Promise<void> {
  const { id, project_id: project } = image;
  if (project === null) throw new Error(`image ${id} belongs to the operator`);
  const now = context.clock.now();
  await deleteImage(tx, id);
  await retire(tx, { kind: "Image", name: folderOf(image), uuid: "", date: now });
  await emitImageEvent(context, tx, image, "deleted", by);
  await cancel(tx, { kind: "image", id }, errorFor("superseded", `Image ${id} was deleted.`), now);
  await start(tx, remove, { subject: id, project, input: { folder: folderOf(image) }, now });
}

/** Returns the folder of the image: the stored one, as backups of earlier releases have other names, or the name by type and id. */
const folderOf = ({ id, type, folder }: Pick<ImageRow, "id" | "type" | "folder">): string =>
  folder ?? `${prefixes[type === "Backup" ? "Backup" : "Client"]}${id}`;

/**
 * Stores the result of a backup in the server: after a failure the time and the error, until a backup succeeds. The failure of a server
 * that is blocked meanwhile is not reported; its backup is due when it is active again.
 */
async function noteBackup(context: FlowContext, tx: Tx, id: number, failure: TaskError | null): Promise<void> {
  const server = await findAnyServer(tx, id);
  if (server === undefined || (server.state !== "Active" && server.state !== "Blocked")) return;
  const showsFailure = server.error !== null && codeOf(server.error) === "backup_failed";
  if (failure === null) {
    await changeServer(context, tx, id, { backup_failed: null, ...(showsFailure && { error: null }) }, null);
    return;
  }
  if (server.state === "Blocked") {
    await updateServer(tx, id, { backed_up: null });
    return;
  }
  const detail = `The backup of server ${id} failed and is tried again within the hour: ${failure.detail}`;
  context.log("warn", "A daily backup failed and will be tried again.", { server: id, detail: failure.detail });
  const error = JSON.stringify(errorFor("backup_failed", detail));
  const change = { backed_up: null, backup_failed: context.clock.now() };
  // Any other error of the server has precedence.
  await changeServer(context, tx, id, { ...change, ...((server.error === null || showsFailure) && { error }) }, null);
}
