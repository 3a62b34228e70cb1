/**
 * Content of any length as the body of a request: the handler gets it part by part, and the client is slowed down while the handler works, so
 * that only some parts are in memory. `Content-Range` (RFC 9110 section 14.4) gives its position in a longer whole.
 */
import { ApiError } from "../base/error.ts";
import type { Exchange } from "./exchange.ts";
import type { Content, ContentPosition } from "./handler.ts";
import { type Head, hasBody } from "./head.ts";
import { Gone } from "./payload.ts";
import type { Stop } from "./stop.ts";

const invalid = (detail: string): ApiError => new ApiError("content_range_invalid", detail);

/** Returns the position of the content. Throws `content_range_invalid`. */
export function readPosition({
  contentRange,
  contentLength,
}: Pick<Head, "contentRange" | "contentLength">): ContentPosition {
  const length = contentLength === undefined ? null : Number(contentLength);
  if (contentRange === undefined) return { from: 0, to: length, whole: length };
  const [, first, last, size] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(contentRange.trim()) ?? [];
  const [from, to, whole] = [Number(first), Number(last) + 1, size === "*" ? null : Number(size)];
  if (size === undefined)
    throw invalid(`Content-Range must be "bytes FIRST-LAST/SIZE", not ${JSON.stringify(contentRange.slice(0, 64))}.`);
  if (to <= from) throw invalid(`Content-Range: the last byte, ${last}, is before the first, ${first}.`);
  if (whole !== null && to > whole)
    throw invalid(`Content-Range: the last byte, ${last}, is not below the size, ${size}.`);
  if (length !== null && length !== to - from)
    throw invalid(`Content-Range names ${to - from} bytes, and Content-Length ${length}.`);
  return { from, to, whole };
}

/** Throws `media_type_not_supported` for a body that contains more than the content: another coding, or several parts. */
function requirePlain({ contentEncoding = "identity", contentType = "" }: Head): void {
  if (contentEncoding.trim().toLowerCase() !== "identity")
    throw new ApiError("media_type_not_supported", "Content-Encoding must be identity.");
  if (/^\s*multipart\//i.test(contentType))
    throw new ApiError("media_type_not_supported", "The content must be the body itself, not a part of a form.");
}

/** Prepares the reading of the body. `idleTime`: milliseconds without a byte after which the client counts as gone. */
export function openContent(exchange: Exchange, idleTime: number, stop: Stop): Content {
  const { head } = exchange;
  requirePlain(head);
  const position = readPosition(head);
  return {
    position,
    async read(take, signal) {
      if (!hasBody(head)) return checkEnd(position, 0);
      const { request, response, connection } = exchange;
      if (head.expect !== undefined && request.httpVersionMinor > 0 && head.expect.toLowerCase() === "100-continue")
        response.writeContinue();
      connection.isReadingContent = true;
      const ending = new AbortController();
      const unsubscribe = stop.onRequest(() => ending.abort(new ApiError("not_ready", "The service is stopping.")));
      try {
        await readParts(exchange, position, take, AbortSignal.any([signal, ending.signal]), idleTime);
      } finally {
        connection.isReadingContent = false;
        unsubscribe();
      }
    },
  };
}

function checkEnd({ from, to }: ContentPosition, size: number): void {
  if (to !== null && size !== to - from)
    throw invalid(`The content ended after ${size} of ${to - from} bytes. What arrived is stored.`);
}

function readParts(
  { request, connection }: Exchange,
  position: ContentPosition,
  take: (part: Uint8Array) => Promise<void>,
  signal: AbortSignal,
  idleTime: number,
): Promise<void> {
  const most = position.to === null ? Number.POSITIVE_INFINITY : position.to - position.from;
  return new Promise((resolve, reject) => {
    let size = 0;
    let taking: Promise<void> = Promise.resolve();
    let isOver = false;
    const stop = (): void => {
      isOver = true;
      clearTimeout(timer);
      connection.onBroken = null;
      signal.removeEventListener("abort", abort);
      request.off("data", accept).off("end", finish).off("close", leave).off("error", leave);
    };
    /** Ends the reading when the part that is being taken is done. */
    const fail = (reason: unknown): void => {
      if (isOver) return;
      stop();
      // Further input is read and dropped, otherwise the response could not be sent.
      request.on("error", () => {}).resume();
      void endWith(reason);
    };
    async function endWith(reason: unknown): Promise<void> {
      await Promise.allSettled([taking]);
      reject(reason);
    }
    async function takeNext(part: Uint8Array): Promise<void> {
      request.pause();
      try {
        await take(part);
      } catch (error) {
        return fail(error);
      }
      if (isOver) return;
      timer = watch();
      request.resume();
    }
    const abort = (): void => fail(signal.reason);
    const leave = (): void => fail(new Gone());
    const accept = (part: Uint8Array): void => {
      clearTimeout(timer);
      size += part.length;
      if (size > most) return fail(invalid(`The content has more than the ${most} bytes that its range names.`));
      taking = takeNext(part);
    };
    // The end, and after it the close, can be emitted while the last part is taken.
    const finish = (): void => {
      request.off("close", leave);
      void takeEnd();
    };
    async function takeEnd(): Promise<void> {
      await taking;
      if (isOver) return;
      stop();
      try {
        checkEnd(position, size);
        resolve();
      } catch (error) {
        reject(error);
      }
    }
    const watch = (): NodeJS.Timeout =>
      setTimeout(
        () => fail(new ApiError("request_timeout", `No content arrived for ${idleTime / 1000} seconds.`)),
        idleTime,
      );
    let timer = watch();
    connection.onBroken = () => fail(connection.broken ?? new Gone());
    if (signal.aborted) return abort();
    if (connection.broken !== null && connection.latest === request) return connection.onBroken();
    if (request.destroyed && !request.complete) return leave();
    signal.addEventListener("abort", abort, { once: true });
    request.on("data", accept).on("end", finish).on("close", leave).on("error", leave);
  });
}
