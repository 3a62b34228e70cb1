/**
 * Images made of servers' disks, wished for or as daily backups, and their end. Making one takes its turn in the queue of its server
 * for the moment of the snapshot; what that has kept is written out while the server goes on, changes or goes away.
 */
import type { Labels } from "@brume/api/common.ts";
import { deleteImage, findImage, type ImageRow, insertImage, updateImage } from "../../catalog/table.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { cancel, find, start, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { retire } from "../orphantable.ts";
import type { ServerRow } from "../table.ts";
import { tellImage } from "./tell.ts";
import { attempt, type Cause, errorFor, type Facts, type FlowTools } from "./tools.ts";
import { endTurn, orderTurn, snapshotStep, type TurnFlow } from "./turn.ts";

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

  const make = flow<ImageInput, Facts>({
    name: "image.make",
    subject: "image",
    steps: [
      snapshotStep<ImageInput>(tools, ({ server }) => server, {
        take: (_, { server, folder }) =>
          attempt("snapshot_failed", `Server ${server} gave no image`, () => machines.ensureSnapshot(server, folder)),
        undo: ({ input: { folder } }) => machines.removeImage(folder),
      }),
      {
        name: "Write",
        time: longest,
        async do({ input: { server, folder, title, keepsIdentity = false }, signal }) {
          const size = await attempt("snapshot_failed", `The image of server ${server} could not be written`, () =>
            machines.ensureImage(server, folder, { title, keepsIdentity }, signal),
          );
          return { facts: { gb: size.gb, identity: size.identity } };
        },
        async save(tx, { subject, project, input: { folder }, facts }) {
          const row = await findImage(tx, project, subject);
          if (row === undefined) return;
          const { gb: hdd = row.hdd } = facts;
          const identity = facts.identity === undefined ? null : JSON.stringify(facts.identity);
          const done = { hdd, folder, identity, state: "Active", progress: 100, error: null } as const;
          await tellImage(tools, tx, await updateImage(tx, subject, done), "changed", facts.by ?? null);
        },
      },
    ],
    async ended(tx, { task, subject, project, input: { server }, facts }, ending) {
      await endTurn(tools, tx, server, task);
      const row = await findImage(tx, project, subject);
      if (ending === "Completed" || row === undefined) return;
      const error = JSON.stringify((await find(tx, task))?.error ?? errorFor("superseded", ""));
      const failed = { state: "Failed", error } as const;
      await tellImage(tools, tx, await updateImage(tx, subject, failed), "changed", facts.by ?? null);
    },
  });

  return { make, remove };
}

export type ImageFlows = ReturnType<typeof imageFlows>;

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
  { make, turn }: ImageFlows & { readonly turn: TurnFlow },
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
    identity: null,
    version: 1,
  });
  const input = { server: id, folder: folderOf(image.id), title: name, keepsIdentity: type === "Backup" };
  const now = tools.clock.now();
  const task = await start(tx, make, { subject: image.id, project: project_id, input, now, facts: { by } });
  await orderTurn(tools, tx, turn, server, task, by);
  return { image, task };
}

/** The row goes at once, its disk in the background; one that is still being made is given up. */
export async function orderImageRemoval(
  tools: FlowTools,
  tx: Tx,
  { remove }: ImageFlows,
  image: ImageRow,
  by: Cause | null,
): Promise<void> {
  const { id, project_id: project } = image;
  if (project === null) throw new Error(`image ${id} is of the stock`);
  const now = tools.clock.now();
  await deleteImage(tx, id);
  await retire(tx, { kind: "Image", name: folderOf(id), uuid: "", date: now });
  await tellImage(tools, tx, image, "deleted", by);
  await cancel(tx, { kind: "image", id }, errorFor("superseded", `Image ${id} was deleted.`), now);
  await start(tx, remove, { subject: id, project, input: { folder: folderOf(id) }, now });
}

const folderOf = (image: number): string => `${prefix}${image}`;
