/**
 * Handlers that create images from servers, import images, and delete images (docs/spec.md#image,
 * #image-location-key-and-private-network-endpoints, #backups-and-images).
 */

import type { imageOperations } from "@brume/api/catalog.ts";
import type { FieldError } from "@brume/api/errors.ts";
import type { Body } from "@brume/api/operation.ts";
import { requireQuota } from "../account/model/rules.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import { techNameOf } from "../catalog/model/rules.ts";
import { imageTag, showImage } from "../catalog/model/show.ts";
import { countImages, findImage, type ImageRow, listUploads, lockImage } from "../catalog/table.ts";
import type { ImageOrigin } from "../drivers/machine/interface.ts";
import type { Task } from "../engine/task.ts";
import { afterPreparing, type Caller, type Handlers, type Request } from "../http/handler.ts";
import type { Tx } from "../store/db.ts";
import { auditOnly, causeOf, getServer, openProject, queueOf, type ServerContext, waitForTasks } from "./context.ts";
import { findRefusal, type ImportFlow, insertImport, startImport } from "./flow/import.ts";
import { freeCapacity, type HostCapacity, readHostCached } from "./hostcapacity.ts";
import { requireCapacity } from "./model/capacity.ts";
import { requireRequest } from "./model/state.ts";
import { type Receiver, type UploadContext, uploadDue } from "./upload.ts";

type Names = "createImage" | "deleteImage";
type Spec = Body<typeof imageOperations.createImage>;

/** MB. */
const defaultMinRam = 128;

/** Returns the errors that the schema cannot express: exactly one origin, and a checksum for a download. */
function checkImage(body: Partial<Spec>): FieldError[] {
  const given = (["ServerID", "Url", "File", "Size"] as const).filter((field) => body[field] !== undefined);
  if (given.length > 1) {
    const invalid = given.slice(1);
    return invalid.map((field) =>
      fieldError(`/${field}`, "fields_conflict", `${field} must not be sent together with ${given[0]}.`),
    );
  }
  if (given.length === 0)
    return [fieldError("/ServerID", "field_required", "ServerID is required, or Url, File or Size instead.")];
  if (body.Url === undefined) return [];
  const errors: FieldError[] = [];
  if (body.Sha256 === undefined) errors.push(fieldError("/Sha256", "field_required", "Sha256 is required with Url."));
  if (!isAddress(body.Url))
    errors.push(
      fieldError("/Url", "format_invalid", `Url must be an http or https address, not "${body.Url.slice(0, 64)}".`),
    );
  return errors;
}

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

/** Returns the origin of an import; null: the image is created from a server. */
function originOf({ Url: url, File: file, Size: size, Sha256: sha256 }: Spec): ImageOrigin | null {
  if (url !== undefined) return { url, sha256: sha256 ?? "" };
  if (size !== undefined) return { upload: size, sha256: sha256 ?? null };
  return file === undefined ? null : { file, sha256: sha256 ?? null };
}

/** Throws `validation_failed` if the driver rejects the origin, and `no_capacity` if it has no space for an upload. */
async function requireOrigin(body: Spec, { images, log }: UploadContext): Promise<void> {
  const origin = originOf(body);
  const refusal = origin === null ? null : await findRefusal(images, log, origin);
  if (refusal === null) return;
  if (body.Size !== undefined) throw new ApiError("no_capacity", refusal);
  throw invalidFields([
    body.File === undefined
      ? fieldError("/Url", "value_not_allowed", refusal)
      : fieldError("/File", "unknown_reference", refusal),
  ]);
}

/** Returns the bytes that all uploads still expect. */
const sumMissing = async (tx: Tx): Promise<number> =>
  (await listUploads(tx)).reduce((sum, row) => sum + (row.upload_size ?? 0) - row.upload_received, 0);

export function imageRoutes(
  context: ServerContext,
  importContext: UploadContext,
  importer: ImportFlow,
  receiver: Pick<Receiver, "end">,
): Handlers<Names> {
  const { store, servers } = context;

  /** Inserts the image and queues its import or its creation from a server. */
  async function queueCreation(tx: Tx, request: Pick<Request, "caller" | "requestId">, body: Spec, host: HostCapacity) {
    const { caller } = request;
    const by = causeOf(request);
    const techName = body.TechName ?? techNameOf(body.Name);
    const origin = originOf(body);
    if (origin !== null) {
      const { Name: name, Family: family = "Linux", MinRAM: minRam = defaultMinRam, Size: size } = body;
      const promised = size === undefined ? 0 : size + (await sumMissing(tx));
      const gb = Math.max(1, Math.ceil(promised / 2 ** 30));
      requireCapacity(await freeCapacity(tx, host), { Servers: 0, CPU: 0, RAM: 0, HDD: gb });
      const labels = JSON.stringify(body.Labels ?? {});
      const spec = { project: caller.projectId, name, techName, family, minRam, labels };
      if (size !== undefined) {
        const upload = { upload_size: size, upload_sha256: body.Sha256?.toLowerCase() ?? null };
        const upload_due = uploadDue(importContext);
        return { image: await insertImport(importContext, tx, spec, { ...upload, upload_due }), task: null };
      }
      const image = await insertImport(importContext, tx, spec);
      return { image, task: await startImport(importContext, tx, importer, image, origin, by) };
    }
    const id = body.ServerID ?? 0;
    const before = await queueOf(tx, id);
    const server = await getServer(tx, caller, id).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      throw invalidFields([
        fieldError("/ServerID", "unknown_reference", `ServerID: server ${id} does not exist in this project.`),
      ]);
    });
    requireRequest(server, before, "Image");
    requireCapacity(await freeCapacity(tx, host), { Servers: 0, CPU: 0, RAM: 0, HDD: 1 });
    const spec = { type: "Client", name: body.Name, techName, labels: body.Labels ?? {} } as const;
    return servers.commands.image(tx, server, spec, by);
  }

  /** Waits for the task, at most `ms`. Resolves to the image as it is then. */
  const refreshImage =
    (caller: Caller, { id }: ImageRow, task: Task | null) =>
    async (ms: number) => {
      if (ms <= 0 || task === null) return undefined;
      await waitForTasks(context, [task], ms);
      const now = await findImage(store.read, caller.projectId, id);
      return now && showImage(now);
    };

  return {
    createImage: afterPreparing({
      check: checkImage,
      async prepare({ body }) {
        await requireOrigin(body, importContext);
        return readHostCached(context);
      },
      async change(request, tx, host) {
        const { body, caller, dryRun } = request;
        const project = await openProject(tx, caller);
        requireQuota(project.quotas, "Images", await countImages(tx, project.id), 1);
        const { image, task } = await queueCreation(tx, request, body, host);
        const row = dryRun ? { ...image, id: 0 } : image;
        const answer = showImage(row);
        return {
          answer,
          tag: imageTag(row),
          changes: [{ type: "image.created", id: row.id, parent: null, before: null, after: answer }],
          refresh: refreshImage(caller, image, task),
        };
      },
    }),
    deleteImage: {
      async change(request, tx) {
        const { params, caller, expect } = request;
        await lockImage(tx, params.id);
        const row = await findImage(tx, caller.projectId, params.id);
        if (row === undefined)
          throw new ApiError("image_not_found", `Image ${params.id} does not exist in this project.`);
        if (row.project_id === null)
          throw new ApiError(
            "stock_image",
            `Image ${row.id} (${row.name}) belongs to the operator and cannot be deleted.`,
          );
        expect(imageTag(row));
        await servers.commands.removeImage(tx, row, causeOf(request));
        return {
          answer: undefined,
          changes: [auditOnly("image.deleted", row.id, showImage(row), null)],
          async refresh() {
            receiver.end(row.id);
            return undefined;
          },
        };
      },
    },
  };
}
