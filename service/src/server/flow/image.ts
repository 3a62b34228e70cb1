/**
 * Images made of servers' disks, wished for or as daily backups, and their end. Making one takes its turn in the queue of its server:
 * the guest goes on meanwhile, but nobody changes the machine.
 */
import type { Labels } from "@brume/api/common.ts";
import { deleteImage, findImage, type ImageRow, insertImage, updateImage } from "../../catalog/table.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { find, queue, start, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import type { ServerRow } from "../table.ts";
import { cancelWork } from "./cancel.ts";
import { serverFlow, startOn } from "./form.ts";
import { tellImage } from "./tell.ts";
import { attempt, type Cause, errorFor, type FlowTools } from "./tools.ts";

interface ImageInput {
  readonly image: number;
  readonly folder: string;
  readonly title: string;
}
interface RemovalInput {
  readonly folder: string;
}

const imageName = "server.image";
const hour = 3_600_000;
/** Of folders that are not the stock's. */
const prefix = "own-";

/** Whether a folder of images is of an image that was made here, and not of the operator's stock. */
export const isOwnFolder = (folder: string): boolean => folder.startsWith(prefix);

export function imageFlows(tools: FlowTools) {
  const { machines } = tools;

  /** The row is gone already; servers that were made from it have what they need of it. */
  const remove: Flow<RemovalInput> = flow<RemovalInput>({
    name: "image.remove",
    subject: "image",
    persistent: true,
    steps: [{ name: "Remove", do: ({ input }) => machines.removeImage(input.folder) }],
  });

  const make = serverFlow<ImageInput>(tools, {
    name: imageName,
    steps: [
      {
        name: "Snapshot",
        time: hour,
        async do({ subject, input: { folder, title }, signal }) {
          const size = await attempt("snapshot_failed", `Server ${subject} gave no image`, () =>
            machines.ensureImage(subject, folder, { title }, signal),
          );
          return { facts: { gb: size.gb } };
        },
        async save(tx, { project, input: { image, folder }, facts }) {
          const row = await findImage(tx, project, image);
          if (row === undefined) return;
          const { gb: hdd = row.hdd } = facts;
          const done = { hdd, folder, state: "Active", progress: 100, error: null, version: row.version + 1 } as const;
          await tellImage(tools, tx, await updateImage(tx, image, done), "changed", facts.by ?? null);
        },
        undo: ({ input: { folder } }) => machines.removeImage(folder),
      },
    ],
    async ended(tx, { task, project, input: { image }, facts }, ending) {
      const row = await findImage(tx, project, image);
      // It was deleted while it was made.
      if (row === undefined) return orderRemoval(tools, tx, remove, image, project);
      if (ending === "Completed") return;
      const error = JSON.stringify((await find(tx, task))?.error ?? errorFor("superseded", ""));
      const failed = { state: "Failed", error, version: row.version + 1 } as const;
      await tellImage(tools, tx, await updateImage(tx, image, failed), "changed", facts.by ?? null);
    },
  });

  return { make, remove };
}

type ImageFlows = ReturnType<typeof imageFlows>;

export interface ImageWish {
  readonly type: "Client" | "Backup";
  readonly name: string;
  readonly techName: string;
  readonly labels: Labels;
}

/** The caller has held the order against the server's queue, and the quota; it tells of the new image. */
export async function orderImage(
  tools: FlowTools,
  tx: Tx,
  { make }: ImageFlows,
  server: ServerRow,
  { type, name, techName, labels }: ImageWish,
  by: Cause | null,
): Promise<{ readonly image: ImageRow; readonly task: Task }> {
  const { id, project_id, hdd, family, location } = server;
  const origin = await findImage(tx, project_id, server.image_id);
  const image = await insertImage(tx, {
    project_id,
    type,
    name,
    display_name: name,
    location,
    hdd,
    family,
    min_ram: origin?.min_ram ?? 128,
    os: origin?.os ?? family,
    tech_name: techName,
    state: "New",
    folder: null,
    server_id: id,
    progress: 0,
    error: null,
    created: tools.clock.now(),
    labels: JSON.stringify(labels),
    version: 1,
  });
  const input = { image: image.id, folder: folderOf(image.id), title: name };
  return { image, task: await startOn(tools, tx, make, server, input, by) };
}

/** The row goes at once, its disk in the background; one that is still being made is given up. */
export async function orderImageRemoval(
  tools: FlowTools,
  tx: Tx,
  { remove }: ImageFlows,
  image: ImageRow,
  by: Cause | null,
): Promise<void> {
  const { id, project_id, server_id, state } = image;
  if (project_id === null) throw new Error(`image ${id} is of the stock`);
  await deleteImage(tx, id);
  await tellImage(tools, tx, image, "deleted", by);
  if (state === "New" && server_id !== null) {
    const why = errorFor("superseded", `Image ${id} was deleted.`);
    for (const { id: task, name, input } of await queue(tx, { kind: "server", id: server_id }))
      if (name === imageName && (input as ImageInput).image === id)
        await cancelWork(tools, tx, server_id, why, { task });
  }
  await orderRemoval(tools, tx, remove, id, project_id);
}

const folderOf = (image: number): string => `${prefix}${image}`;

async function orderRemoval(
  { clock }: FlowTools,
  tx: Tx,
  remove: Flow<RemovalInput>,
  image: number,
  project: number,
): Promise<void> {
  await start(tx, remove, { subject: image, project, input: { folder: folderOf(image) }, now: clock.now() });
}
