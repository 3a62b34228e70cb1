/** Images that are not on the host yet: fetched by the first step that needs one, with what callers see of it meanwhile. */

import type { Clock } from "../../base/clock.ts";
import { findImage, makeAvailable, noteFetched, updateImage } from "../../catalog/table.ts";
import type { TransferOptions } from "../../drivers/machine/interface.ts";
import type { Run } from "../../engine/flow.ts";
import type { Store } from "../../store/db.ts";
import type { ServerRow } from "../table.ts";
import { type FlowContext } from "./context.ts";
import { attempt, stepErrorOf } from "./error.ts";

/** Milliseconds between two writes of how far a download is. */
const noteTime = 1000;

type Progress = NonNullable<TransferOptions["progress"]>;

/** While `work` runs, writes percents into the row of an image, at most once a second, one write after the other. */
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
    if (isOver || isWriting || percent <= last || clock.now() < noted + noteTime) return;
    [noted, last, isWriting] = [clock.now(), percent, true];
    writing = store
      .write((tx) => noteFetched(tx, image, percent))
      // The next write says more.
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

/** How far a download is, in MB of 10^6 bytes. */
function describeProgress(name: string, done: number, total: number | null): string {
  const sizeOf = (bytes: number) => `${Math.floor(bytes / 1e6)} MB`;
  if (total === null || total <= 0) return `fetches image ${name}: ${sizeOf(done)}`;
  return `fetches image ${name}: ${Math.min(100, Math.floor((100 * done) / total))} % of ${sizeOf(total)}`;
}

/** The folder of the image of a server's disk. An operator's image that is not on the host yet is fetched. */
export async function ensureImageFolder(
  context: FlowContext,
  { image_id, project_id }: ServerRow,
  { signal, note }: Pick<Run, "signal" | "note">,
): Promise<string> {
  const { store, images } = context;
  const gone = () => stepErrorOf("disk_failed", `Image ${image_id} is not there any more.`, { final: true });
  const image = await findImage(store.read, project_id, image_id);
  if (image === undefined) throw gone();
  const { id, name } = image;
  if (image.folder !== null) return image.folder;
  if (image.project_id !== null) throw gone();
  await store.write((tx) => noteFetched(tx, id, 0));
  let folder: string;
  try {
    folder = await withProgress(context, id, async (progress) =>
      attempt("disk_failed", `Image ${name} could not be fetched`, () =>
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
    // If this fails, the next fetch or the next start of the service puts it right.
    await store.write((tx) => makeAvailable(tx, id)).catch(() => {});
    throw error;
  }
  await store.write((tx) => updateImage(tx, id, { folder, state: "Active", progress: 100, error: null }));
  return folder;
}
