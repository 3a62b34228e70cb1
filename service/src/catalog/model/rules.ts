/** Which image and which location a body means, and what an own image is called. */
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
}

/** An `Available` one is fetched by the first server that is made from it. Others wait for an operator's image that is being fetched. */
const isUsable = ({ state, project_id }: NamedImage): boolean =>
  state === "Active" || state === "Available" || (state === "New" && project_id === null);

/** An id that is absent, in the texts that say so. */
export const isAbsent = (reference: string): boolean => reference === "" || reference === "0";

const fieldOf = (pointer: string): string => pointer.slice(pointer.lastIndexOf("/") + 1);

/**
 * The image that a body names at `pointer` by its id, its id as text or its name, among those that the project sees, in order of
 * id; nothing (also as empty text or 0) names the stock image with the lowest id. Whether it can be used is for `holdUsable` to say.
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
    : fieldError(pointer, "field_required", `${field} is required: there is no stock image.`);
}

/** Throws `image_not_ready`. */
export function requireUsable(image: NamedImage): void {
  if (isUsable(image)) return;
  throw new ApiError("image_not_ready", `Image ${image.id} (${image.name}) is ${image.state}, not Active.`);
}

function named<I extends NamedImage>(images: readonly I[], reference: string): I[] {
  const id = /^\d{1,10}$/.test(reference) ? Number(reference) : maxId + 1;
  const byId = images.filter((image) => image.id === id);
  return byId.length > 0 ? byId : images.filter((image) => image.name === reference);
}

/** The location of this title in any letter case, as it is written; undefined: there is none. */
export function findLocation(locations: readonly string[], title: string): string | undefined {
  const wanted = title.toLowerCase();
  return locations.find((location) => location.toLowerCase() === wanted);
}

/** As `findLocation`, but what is not there is the caller's fault. */
export function chooseLocation(locations: readonly string[], title: string, pointer: string): string | FieldError {
  const found = findLocation(locations, title);
  if (found !== undefined) return found;
  const detail = `${fieldOf(pointer)} must be one of ${locations.join(", ")}, not ${quote(title)}.`;
  return fieldError(pointer, "unknown_reference", detail);
}

/** `TechName` of an image called so, if none is given. */
export function techNameOf(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, "-").slice(0, 64);
}
