/** Plans a rebuild: a new disk for a server (docs/spec.md#server-endpoints). */
import type { ServerRebuild } from "@brume/api/serverinput.ts";
import { ApiError, fieldError, invalidFields } from "../../base/error.ts";
import { chooseImage, isAbsent, requireUsable } from "../../catalog/model/rules.ts";
import type { ImageRow, SshKeyRow } from "../../catalog/table.ts";
import type { ServerRow } from "../table.ts";
import {
  checkServerInput,
  checkUserData,
  chooseKeys,
  type References,
  requireDiskSize,
  requireImageInLocation,
} from "./plan.ts";
import type { Sizes } from "./resize.ts";

/** The validated rebuild. */
export interface RebuildPlan {
  readonly image: ImageRow;
  /** Null: unchanged. */
  readonly keys: readonly SshKeyRow[] | null;
  /** Undefined: unchanged; null: none. */
  readonly userData: string | null | undefined;
}

/** Returns the errors that the schema cannot express and that need no stored object. */
export const checkRebuild = (body: Partial<ServerRebuild>) =>
  checkServerInput({
    spec: { ...(body.UserData !== undefined && { UserData: body.UserData }) },
    at: (field) => `/${field}`,
  });

/** Throws `server_protected` if the server is protected. */
export function requireUnprotected({ id, is_protected }: Pick<ServerRow, "id" | "is_protected">): void {
  if (is_protected === 1)
    throw new ApiError("server_protected", `Server ${id} is protected. Set IsProtected to false first.`);
}

/**
 * Returns the plan. `sizes` are those after all queued actions. Throws `validation_failed` with all errors of fields, else
 * `image_not_ready`, `location_mismatch` or `disk_too_small`.
 */
export function planRebuild(
  body: ServerRebuild,
  server: ServerRow,
  sizes: Sizes,
  references: Pick<References, "images" | "keys">,
): RebuildPlan {
  const errors = checkRebuild(body);
  const isGiven = body.ImageId !== undefined && !isAbsent(body.ImageId);
  const found = chooseImage(references.images, isGiven ? body.ImageId : String(server.image_id), "/ImageId");
  const image = "pointer" in found ? null : found;
  if ("pointer" in found) errors.push(found);
  const chosen = body.SshKeys && chooseKeys(body.SshKeys, references.keys, image?.family ?? null, "/SshKeys");
  errors.push(...(chosen?.errors ?? []), ...checkUserData(image, body.UserData, "/UserData"));
  if (image !== null && sizes.ram < image.min_ram)
    errors.push(
      fieldError(
        "/ImageId",
        "out_of_range",
        `ImageId must name an image for ${sizes.ram} MB: image ${image.id} (${image.name}) needs ${image.min_ram} MB.`,
      ),
    );
  if (errors.length > 0 || image === null) throw invalidFields(errors);
  requireUsable(image);
  requireImageInLocation(image, server.location, "/ImageId");
  requireDiskSize(image, sizes.hdd, "/ImageId");
  return {
    image,
    // Windows accepts no keys, so the keys of a previous Linux guest are removed.
    keys: chosen?.keys ?? (image.family === "Windows" ? [] : null),
    userData: body.UserData === undefined ? undefined : body.UserData || null,
  };
}
