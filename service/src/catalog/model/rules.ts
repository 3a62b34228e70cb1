/** Rules that find the image and location that a request body refers to, and names of a project's images. */
import type { ImageState } from "@brume/api/catalog.ts";
import { maxId } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { ApiError, fieldError } from "../../base/error.ts";
import { quote } from "../../base/quote.ts";

interface NamedImage {
  readonly id: number;
  readonly name: string;
  readonly project_id: number | null;
  readonly state: ImageState | "Withdrawn";
  /** Absent or null: the image waits for no upload. */
  readonly upload_size?: number | null;
}

/** Returns whether a server can be created from the image. The first server fetches an `Available` image; others wait for the fetch. */
const isUsable = ({ state, project_id }: NamedImage): boolean =>
  state === "Active" || state === "Available" || (state === "New" && project_id === null);

/** Returns whether a reference is absent: clients send "" or 0. */
export const isAbsent = (reference: string): boolean => reference === "" || reference === "0";

const fieldOf = (pointer: string): string => pointer.slice(pointer.lastIndexOf("/") + 1);

/**
 * Returns the image that the field `pointer` refers to by id, id as text, or name. `images` are those that the project sees, by id. An absent
 * reference means the operator's image with the lowest id. Callers check it with `requireUsable`.
 */
export function chooseImage<I extends NamedImage>(
  images: readonly I[],
  reference: string | undefined,
  pointer: string,
): I | FieldError {
  const seen = images.filter(({ state }) => state !== "Withdrawn");
  const isNamed = reference !== undefined && !isAbsent(reference);
  const found = isNamed ? named(seen, reference) : seen.filter((image) => image.project_id === null);
  const image = found.find(isUsable) ?? found[0];
  if (image !== undefined) return image;
  const field = fieldOf(pointer);
  return isNamed
    ? fieldError(pointer, "unknown_reference", `${field} must be the id or name of an image, not ${quote(reference)}.`)
    : fieldError(pointer, "field_required", `${field} is required: the operator has installed no image.`);
}

/** Throws `image_not_ready` if no server can be created from the image. */
export function requireUsable(image: NamedImage): void {
  if (isUsable(image)) return;
  const state = image.upload_size ? "Uploading" : image.state;
  throw new ApiError("image_not_ready", `Image ${image.id} (${image.name}) is ${state}, not Active.`);
}

function named<I extends NamedImage>(images: readonly I[], reference: string): I[] {
  const id = /^\d{1,10}$/.test(reference) ? Number(reference) : maxId + 1;
  const byId = images.filter((image) => image.id === id);
  return byId.length > 0 ? byId : images.filter((image) => image.name === reference);
}

/** Returns the location with this title, in any letter case; undefined: there is none. */
export function findLocation(locations: readonly string[], title: string): string | undefined {
  const wanted = title.toLowerCase();
  return locations.find((location) => location.toLowerCase() === wanted);
}

/** Does the same as `findLocation`, but returns an error for an unknown title. */
export function chooseLocation(locations: readonly string[], title: string, pointer: string): string | FieldError {
  const found = findLocation(locations, title);
  if (found !== undefined) return found;
  const detail = `${fieldOf(pointer)} must be one of ${locations.join(", ")}, not ${quote(title)}.`;
  return fieldError(pointer, "unknown_reference", detail);
}

/** Returns the default `TechName` of an image with this name. */
export function techNameOf(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 64);
}
