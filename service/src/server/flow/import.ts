/** Flow that imports an image: a file of the operator, a download whose checksum is given, or a complete upload. */

import type { Family } from "@brume/api/catalog.ts";
import type { Clock } from "../../base/clock.ts";
import { ApiError } from "../../base/error.ts";
import type { Log } from "../../base/log.ts";
import { reasonOf } from "../../base/reason.ts";
import { findImage, type ImageRow, insertImage, updateImage } from "../../catalog/table.ts";
import type { Uploads } from "../../drivers/content/interface.ts";
import type { ImageOrigin, Images, ImportText } from "../../drivers/machine/interface.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { find, start, type Task } from "../../engine/task.ts";
import type { Store, Tx } from "../../store/db.ts";
import { prefixes } from "../model/imagefolder.ts";
import type { Cause } from "./context.ts";
import { attempt, errorFor, stepErrorOf } from "./error.ts";
import { emitImageEvent } from "./events.ts";
import { withProgress } from "./fetch.ts";

/** Dependencies of the flow. */
export interface ImportContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly images: Pick<Images, "ensureImported" | "removeImage" | "checkOrigin">;
  readonly uploads: Uploads;
}

/** Returns why the host rejects the origin; null: it does not. Throws `engine_unavailable` if the host does not respond. */
export async function findRefusal(
  images: ImportContext["images"],
  log: Log,
  origin: ImageOrigin,
): Promise<string | null> {
  const found = await images.checkOrigin(origin).catch((error: unknown) => {
    log("warn", "The host could not check where an image comes from.", { error });
    throw new ApiError(
      "engine_unavailable",
      `The host could not check the image: ${reasonOf(error)}. Repeat the request later.`,
    );
  });
  return found?.refused ?? null;
}

/** Stored in task rows, so the keys keep their names. */
interface ImportInput {
  readonly wish: ImportText & { /** Name of the folder of the image on the host. */ readonly folder: string };
  readonly origin: ImageOrigin;
}
interface ImportFacts {
  readonly by: Cause | null;
  /** Smallest disk of a server that is created from the image, in GB. */
  readonly hdd: number;
}
/** The flow that imports an image. */
export type ImportFlow = Flow<ImportInput, ImportFacts>;

/** Milliseconds. */
const day = 24 * 3_600_000;

/** Returns the flow. Its end sets the image to `Active` or `Failed`. */
export function importFlow(context: ImportContext): ImportFlow {
  const { images, uploads } = context;
  return flow<ImportInput, ImportFacts>({
    name: "image.import",
    subject: "image",
    steps: [
      {
        name: "Fetch",
        time: day,
        async do({ subject, input: { wish, origin }, signal }) {
          const { folder, ...about } = wish;
          const result = await withProgress(context, subject, async (progress) =>
            attempt("disk_failed", `Could not import image ${subject}`, () =>
              images.ensureImported(folder, about, origin, { signal, progress }),
            ),
          );
          if ("refused" in result) throw stepErrorOf("disk_failed", result.refused, { final: true });
          if ("upload" in origin)
            await attempt("disk_failed", `Could not remove the upload of image ${subject}`, () =>
              uploads.removeUpload(folder),
            );
          return { facts: { hdd: result.hdd } };
        },
        async save(tx, { subject, project, input: { wish }, facts }) {
          const row = await findImage(tx, project, subject);
          if (row === undefined) return;
          const { hdd = row.hdd } = facts;
          const done = { hdd, folder: wish.folder, state: "Active", progress: 100 } as const;
          await emitImageEvent(context, tx, await updateImage(tx, subject, done), "changed", facts.by ?? null);
        },
        async undo({ input: { wish, origin } }) {
          if ("upload" in origin) await uploads.removeUpload(wish.folder);
          await images.removeImage(wish.folder);
        },
      },
    ],
    async ended(tx, { task, subject, project, facts }, ending) {
      const row = await findImage(tx, project, subject);
      if (ending === "Completed" || row === undefined) return;
      const error = JSON.stringify((await find(tx, task))?.error ?? errorFor("superseded", "The import was canceled."));
      const failed = { state: "Failed", error } as const;
      await emitImageEvent(context, tx, await updateImage(tx, subject, failed), "changed", facts.by ?? null);
    },
  });
}

/** The image to import. */
export interface NewImport {
  readonly project: number;
  readonly name: string;
  readonly techName: string;
  readonly family: Family;
  /** MB. */
  readonly minRam: number;
  /** JSON. */
  readonly labels: string;
}

/** Inserts an image without content; `more` are further columns. */
export const insertImport = (
  { clock }: Pick<ImportContext, "clock">,
  tx: Tx,
  { project, name, techName, family, minRam, labels }: NewImport,
  more: Partial<Parameters<typeof insertImage>[1]> = {},
): Promise<ImageRow> =>
  insertImage(tx, {
    project_id: project,
    type: "Client",
    name,
    display_name: name,
    location: null,
    hdd: 1,
    min_ram: minRam,
    family,
    os: family,
    tech_name: techName,
    state: "New",
    folder: null,
    server_id: null,
    progress: 0,
    error: null,
    created: clock.now(),
    labels,
    identity: null,
    version: 1,
    ...more,
  });

/** Queues the import of an image. */
export const startImport = (
  { clock }: Pick<ImportContext, "clock">,
  tx: Tx,
  flow: ImportFlow,
  image: ImageRow,
  origin: ImageOrigin,
  by: Cause | null,
): Promise<Task> =>
  start(tx, flow, {
    subject: image.id,
    project: image.project_id ?? 0,
    input: {
      wish: { folder: importFolder(image), title: image.name, family: image.family, minRam: image.min_ram },
      origin,
    },
    facts: { by },
    now: clock.now(),
  });

/** Returns the folder of an imported image on the host, which is also the name of its upload. */
export const importFolder = ({ id }: Pick<ImageRow, "id">): string => `${prefixes.Client}${id}`;
