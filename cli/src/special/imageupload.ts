/** `brume image upload`: sends a disk image of this computer, and continues an upload of the same file that was interrupted. */
import { createHash } from "node:crypto";
import { createReadStream, openAsBlob } from "node:fs";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import type { Family, Image } from "@brume/api/catalog.ts";
import type { UploadTarget } from "@brume/api/upload.ts";
import { parseValue, UsageError } from "../model/values.ts";
import { createProgress, type Progress } from "../progress.ts";
import { type Run, type Session, textArgument, textFlag } from "../session.ts";
import { settle } from "../settle.ts";

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB`;
const percent = (done: number, total: number): string => `${Math.floor((100 * done) / Math.max(1, total))} %`;

/** Returns the path and the size of the file. Throws `UsageError`, or the error of the system. */
async function findFile(session: Session): Promise<{ readonly path: string; readonly size: number }> {
  const path = textArgument(session, 0).replace(/^~(?=\/)/, session.host.home);
  const found = await stat(path);
  if (!found.isFile()) throw new UsageError(`${path} is not a file.`);
  if (found.size === 0) throw new UsageError(`${path} is empty.`);
  return { path, size: found.size };
}

async function digest(path: string, size: number, progress: Progress, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  let done = 0;
  for await (const part of createReadStream(path, { highWaterMark: 1 << 20, signal })) {
    hash.update(part as Buffer);
    done += (part as Buffer).length;
    progress.show(`computes the SHA-256: ${percent(done, size)}`);
  }
  return hash.digest("hex");
}

/** Returns the flags that describe the image, as fields of the request. */
async function readFields({ line, readText }: Session): Promise<Record<string, unknown>> {
  const fields: Record<string, unknown> = {};
  for (const { name, field, schema } of line.command.flags) {
    const texts = line.flags.get(name);
    if (texts !== undefined && /^[A-Z]/.test(field))
      fields[field] = await parseValue(`--${name}`, field, schema, texts, readText);
  }
  return fields;
}

/** Returns a function that shows how much the service has received, and how fast since the first call. */
function createReport({ host }: Session, progress: Progress): (image: Image) => void {
  let start: { readonly at: number; readonly bytes: number } | null = null;
  return ({ Upload: upload }) => {
    if (upload === null) return progress.show("is being checked");
    const { Received: bytes, Size: size } = upload;
    start ??= { at: host.now(), bytes };
    const seconds = (host.now() - start.at) / 1000;
    const speed = seconds < 1 ? "" : `  ${megabytes((bytes - start.bytes) / seconds)}/s`;
    progress.show(`${percent(bytes, size)}  ${megabytes(bytes)} of ${megabytes(size)}${speed}`);
  };
}

export const run: Run = async (session) => {
  const { host, options, print } = session;
  const { signal } = host;
  const { path, size } = await findFile(session);
  const fields = await readFields(session);
  const Name = (fields["Name"] as string | undefined) ?? basename(path).replace(/\.(qcow2|raw|img|iso)$/i, "");
  const client = await session.client();
  const progress = createProgress(host, options, Name);
  try {
    const Sha256 = await digest(path, size, progress, signal);
    const wanted = textFlag(session, "sha256")?.toLowerCase();
    if (wanted !== undefined && wanted !== Sha256)
      throw new UsageError(`The SHA-256 of ${path} is ${Sha256}, not ${wanted}.`, "Download the file again.");
    const body = { ...(fields as { Family?: Family }), Name, Size: size, Sha256 };
    if (options.dryRun) {
      const dry = await client.createImage({ body }, { dryRun: true, signal });
      print.note("Valid. Nothing was changed (--dry-run).");
      return await print.result(dry, "Image", false);
    }
    const begun = (await client.listImages({ query: { state: "Uploading" } }, { signal })).find(
      (image) => image.Name === Name && image.Upload?.Size === size && image.Upload.Sha256 === Sha256,
    );
    if (begun !== undefined) print.note(`Continues the upload of image ${begun.ID} (${Name}).`);
    const target: UploadTarget = begun === undefined ? body : { ID: begun.ID };
    const onProgress = createReport(session, progress);
    const image = await client.uploadImage(target, await openAsBlob(path), { signal, onProgress });
    progress.end();
    const final = options.wait ? await settle(session, "writeImageContent", { id: image.ID }, image, Name) : image;
    await print.result(final, "Image", false);
    const { State, Error: failure } = final as Image;
    if (State !== "Failed") return;
    host.err.write(`${Name}: ${failure?.detail ?? ""}\n`);
    return 1;
  } finally {
    progress.end();
  }
};
