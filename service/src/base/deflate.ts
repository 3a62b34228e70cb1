/** Compresses texts of megabytes with yields, so that the event loop can serve others in between. */
import { constants, deflateRawSync, inflateRawSync } from "node:zlib";

/** Characters that are compressed without a yield: it takes less than a millisecond. */
const together = 65_536;

/**
 * Compresses the texts, one after the other, to one text (DEFLATE of RFC 1951 in base64), with a yield after each part. `inflateText`
 * returns the texts as one.
 */
export function* deflateInTurns(texts: Iterable<string>): Generator<void, string> {
  const parts: Buffer[] = [];
  let part = "";
  for (const text of texts) {
    for (let at = 0; at < text.length; ) {
      let end = Math.min(text.length, at + together - part.length);
      // A part does not end in the middle of a surrogate pair.
      const last = text.charCodeAt(end - 1);
      if (end < text.length && last >= 0xd8_00 && last <= 0xdb_ff) end += 1;
      part += text.slice(at, end);
      at = end;
      if (part.length < together) continue;
      // Each part ends at a byte, so that they can be joined.
      parts.push(deflateRawSync(part, { level: 1, finishFlush: constants.Z_SYNC_FLUSH }));
      part = "";
      yield;
    }
  }
  parts.push(deflateRawSync(part, { level: 1 }));
  return Buffer.concat(parts).toString("base64");
}

/** Returns the text that `deflateInTurns` compressed. */
export const inflateText = (text: string): string => inflateRawSync(Buffer.from(text, "base64")).toString();
