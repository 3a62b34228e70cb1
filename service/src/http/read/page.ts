/**
 * Where the next page of a list begins (docs/spec.md#lists). All lists page by id, so a cursor is an id in a wrapping that invites
 * nobody to build one; its version lets a later Brume refuse it rather than misread it.
 */
import { errorAt } from "../../base/error.ts";
import { decodePart, splitPairs } from "./form.ts";
import { asciiLower } from "./text.ts";

export interface Position {
  /** The last id of the page before: not negative, exact. */
  readonly id: number;
}

const version = 1;
const maxLength = 64;

/** base64url (RFC 4648 section 5) of JSON. */
export function encodeCursor(position: Position): string {
  return Buffer.from(JSON.stringify({ v: version, id: position.id })).toString("base64url");
}

/** Throws `query_invalid` for everything that `encodeCursor` did not make. */
export function decodeCursor(text: string): Position {
  const position = text.length > maxLength ? null : parse(text);
  if (position === null || encodeCursor(position) !== text)
    throw errorAt("query_invalid", "?cursor", "cursor must come from the Link header of an earlier answer.");
  return position;
}

function parse(text: string): Position | null {
  try {
    const { v, id } = JSON.parse(Buffer.from(text, "base64url").toString()) as { v?: unknown; id?: unknown };
    return v === version && typeof id === "number" && Number.isSafeInteger(id) && id >= 0 ? { id } : null;
  } catch {
    return null;
  }
}

/**
 * Value of a `Link` header (RFC 8288) to the page that begins at `cursor`: the same path and raw query with another cursor.
 * Whatever could end the link early is percent-encoded.
 */
export function linkNext(path: string, query: string, cursor: string): string {
  const kept: string[] = [];
  for (const [name, value] of splitPairs(query)) {
    if (asciiLower(decodePart(name) ?? name) === "cursor") continue;
    kept.push(value === null ? name : `${name}=${value}`);
  }
  kept.push(`cursor=${encodeURIComponent(cursor)}`);
  return `<${path}?${encodeOdd(kept.join("&"))}>; rel="next"`;
}

/** node:http hands raw bytes over as Latin-1, so each odd character below 0x100 is a byte. */
function encodeOdd(query: string): string {
  return query
    .toWellFormed()
    .replace(/[\u0100-\uffff]+/g, encodeURIComponent)
    .replace(
      /[^\w.~!$'()*+,;:@/?%&=-]/g,
      (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    );
}
