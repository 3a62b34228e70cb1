/** Downloads operator images that are not on the host yet, in the first step that needs one, and stores the progress. */

import { type Clock, steadyOf } from "../../base/clock.ts";
import { findImage, makeAvailable, noteFetched, updateImage } from "../../catalog/table.ts";
import type { TransferOptions } from "../../drivers/machine/interface.ts";
import type { Run } from "../../engine/flow.ts";
import type { Store } from "../../store/db.ts";
import type { ServerRow } from "../table.ts";
import type { FlowContext } from "./context.ts";
import { attempt, stepErrorOf } from "./error.ts";

/** Milliseconds between two writes of the progress. */
const noteTime = 1000;

type Progress = NonNullable<TransferOptions["progress"]>;

/** Runs `work` and writes its progress in percent into the row of the image, at most once a second. Resolves to the result of `work`. */
export async function withProgress<T>(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  image: number,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  let noted = -Infinity;
  let last = 0;
  let writing = Promise.resolve();
  let isWriting = false;
  let isOver = false;
  const progress: Progress = (done, total) => {
    const percent = total === null || total <= 0 ? 0 : Math.min(99, Math.floor((100 * done) / total));
    if (isOver || isWriting || percent <= last || steadyOf(clock) < noted + noteTime) return;
    [noted, last, isWriting] = [steadyOf(clock), percent, true];
    writing = store
      .write((tx) => noteFetched(tx, image, percent))
      // The next write contains newer progress.
      .catch(() => {})
      .finally(() => {
        isWriting = false;
      });
  };
  try {
    return await work(progress);
  } finally {
    isOver = true;
    await writing;
  }
}

/** Returns the progress of a download as a detail; sizes are MB of 10^6 bytes. */
function describeProgress(name: string, done: number, total: number | null): string {
  const sizeOf = (bytes: number) => `${Math.floor(bytes / 1e6)} MB`;
  if (total === null || total <= 0) return `fetches image ${name}: ${sizeOf(done)}`;
  return `fetches image ${name}: ${Math.min(100, Math.floor((100 * done) / total))} % of ${sizeOf(total)}`;
}

/** Resolves to the folder of the server's image. Downloads an operator image that is not on the host yet. Throws `disk_failed`. */
export async function ensureImageFolder(
  context: FlowContext,
  { image_id, project_id }: ServerRow,
  { signal, note }: Pick<Run, "signal" | "note">,
): Promise<string> {
  const { store, images } = context;
  const gone = () => stepErrorOf("disk_failed", `Image ${image_id} does not exist any more.`, { final: true });
  const image = await findImage(store.read, project_id, image_id);
  if (image === undefined) throw gone();
  const { id, name } = image;
  if (image.folder !== null) return image.folder;
  if (image.project_id !== null) throw gone();
  await store.write((tx) => noteFetched(tx, id, 0));
  let folder: string;
  try {
    folder = await withProgress(context, id, async (progress) =>
      attempt("disk_failed", `Could not fetch image ${name}`, () =>
        images.ensureFetched(name, {
          signal,
          progress(done, total) {
            progress(done, total);
            note?.(describeProgress(name, done, total));
          },
        }),
      ),
    );
  } catch (error) {
    // If this write fails, the next download or the next start of the service corrects the row.
    await store.write((tx) => makeAvailable(tx, id)).catch(() => {});
    throw error;
  }
  await store.write((tx) => updateImage(tx, id, { folder, state: "Active", progress: 100, error: null }));
  return folder;
}
