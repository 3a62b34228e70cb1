/**
 * Cursors and links of the pages of lists (docs/spec.md#lists). All lists page by id, so a cursor is an encoded id. It is opaque, so that
 * clients do not construct one, and has a version, so that a later release can reject it.
 */
import { errorAt } from "../../base/error.ts";
import { decodePart, splitPairs } from "./form.ts";
import { asciiLower } from "./text.ts";

/** Position in a list. */
export interface Position {
  /** The last id of the previous page: a safe integer from 0. */
  readonly id: number;
}

const version = 1;
const maxLength = 64;

/** Returns the cursor of a position: base64url (RFC 4648 section 5) of JSON. */
export function encodeCursor(position: Position): string {
  return Buffer.from(JSON.stringify({ v: version, id: position.id })).toString("base64url");
}

/** Decodes a cursor. Throws `query_invalid` for any text that `encodeCursor` does not return. */
export function decodeCursor(text: string): Position {
  const position = text.length > maxLength ? null : parse(text);
  if (position === null || encodeCursor(position) !== text)
    throw errorAt("query_invalid", "?cursor", "cursor must come from the Link header of an earlier response.");
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
 * Returns the `Link` header (RFC 8288) to the page of `cursor`: the same path and raw query with another cursor. Characters that could
 * end the link are percent-encoded.
 */
export function linkNext(path: string, query: string, cursor: string): string {
  const pairs: string[] = [];
  for (const [name, value] of splitPairs(query)) {
    if (asciiLower(decodePart(name) ?? name) === "cursor") continue;
    pairs.push(value === null ? name : `${name}=${value}`);
  }
  pairs.push(`cursor=${encodeURIComponent(cursor)}`);
  return `<${path}?${encodeUnsafe(pairs.join("&"))}>; rel="next"`;
}

/** Percent-encodes unsafe characters. node:http passes raw bytes as Latin-1, so a character below 0x100 is one byte. */
function encodeUnsafe(query: string): string {
  return query
    .toWellFormed()
    .replace(/[\u0100-\uffff]+/g, encodeURIComponent)
    .replace(
      /[^\w.~!$'()*+,;:@/?%&=-]/g,
      (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    );
}
