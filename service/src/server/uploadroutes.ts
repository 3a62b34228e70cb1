/** Handler of the content of images that clients upload (docs/images.md#uploads). With the last byte, the import of the file is queued. */
import { ApiError } from "../base/error.ts";
import { imageStateOf, imageTag, showImage } from "../catalog/model/show.ts";
import { findImage, type ImageRow, updateImage } from "../catalog/table.ts";
import type { Handlers, Request } from "../http/handler.ts";
import type { Reader, Tx } from "../store/db.ts";
import { causeOf, openProject, type ServerContext, waitForTasks } from "./context.ts";
import { type ImportFlow, startImport } from "./flow/import.ts";
import { type Receiver, requireContinuation, type UploadContext, type Uploading } from "./upload.ts";

/** Returns an image that waits for content. Throws `image_not_found` or `upload_conflict`. */
async function findUploading(db: Reader, { caller, params, expect }: Request): Promise<Uploading> {
  const { id } = params as { readonly id: number };
  const row = await findImage(db, caller.projectId, id);
  if (row === undefined) throw new ApiError("image_not_found", `Image ${id} does not exist in this project.`);
  expect(imageTag(row));
  const { upload_size } = row;
  if (upload_size === null)
    throw new ApiError("upload_conflict", `Image ${id} is ${imageStateOf(row)}, so it waits for no content.`);
  return { ...row, upload_size };
}

export function uploadRoutes(
  context: ServerContext,
  uploadContext: UploadContext,
  importer: ImportFlow,
  receiver: Receiver,
): Handlers<"writeImageContent"> {
  /** Returns the image with its complete upload, whose import is queued. */
  async function complete(tx: Tx, request: Request, row: ImageRow) {
    const origin = { upload: row.upload_received, sha256: row.upload_sha256 };
    const now = await updateImage(tx, row.id, { upload_size: null, upload_received: 0, upload_due: null });
    const task = await startImport(uploadContext, tx, importer, now, origin, causeOf(request));
    return { now, task };
  }

  return {
    writeImageContent: {
      async prepare(request) {
        const { caller, content, dryRun } = request;
        if (content === null) throw new Error("the operation has no content");
        const find = () => findUploading(context.store.read, request);
        if (dryRun)
          return async (tx) => {
            await openProject(tx, caller);
            const row = await findUploading(tx, request);
            requireContinuation(row, content.position);
            const received = content.position.to ?? row.upload_received;
            return { answer: showImage({ ...row, upload_received: received }), tag: imageTag(row), changes: [] };
          };
        const part = await receiver.receive(find, content);
        const change = async (tx: Tx) => {
          await openProject(tx, caller);
          const row = await part.store(tx);
          const tag = imageTag(row);
          if (row.upload_received !== row.upload_size) return { answer: showImage(row), tag, changes: [] };
          const before = showImage(row);
          const { now, task } = await complete(tx, request, row);
          const answer = showImage(now);
          return {
            answer,
            tag,
            changes: [{ type: "image.changed" as const, id: row.id, parent: null, before, after: answer }],
            async refresh(ms: number) {
              if (ms <= 0) return undefined;
              await waitForTasks(context, [task], ms);
              const later = await findImage(context.store.read, caller.projectId, row.id);
              return later && showImage(later);
            },
          };
        };
        return Object.assign(change, { release: part.release });
      },
    },
  };
}
