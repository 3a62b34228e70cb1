/**
 * Bodies that may be large: they are created piece by piece, so that only a part is in memory and other requests are served in between. Every
 * response has a length, so a long body is first written to a temporary file and then sent from it, as fast as the client reads.
 */
import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { endLarge, limitLarge } from "../base/memory.ts";
import { printInTurns } from "../base/printjson.ts";
import { runInTurns, turn } from "../base/turn.ts";
import { StorageError } from "../store/db.ts";

/** Characters up to which a body is kept in memory. */
const mostUnsplit = 262_144;
/** Bytes that are sent at once. */
const partSize = 65_536;
/** Bytes that are written to the file at once. */
const writtenSize = 262_144;
/** Characters between two checks of the heap. */
const checkedSize = 65_536;

/** A body in a file without a name: it vanishes when it is closed, also with the process. */
export interface FileBody {
  readonly bytes: number;
  /** Sends the body and ends the response. */
  send(response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}

/** A complete body: a short one as text, a long one in a file. */
export type Body = string | FileBody;

/** Joins the pieces to a body. `folder`: for the file of a long one. Rejects as the source does, so that the client gets an error. */
export async function collect(pieces: AsyncIterable<string>, folder: string): Promise<Body> {
  let text = "";
  let file: PartFile | null = null;
  try {
    for await (const piece of pieces) {
      if (file !== null) await file.add(piece);
      else if ((text += piece).length > mostUnsplit) {
        file = partFile(await openNameless(folder));
        await file.add(text);
        text = "";
      }
      if (turn.isOver()) await turn.next();
    }
    return file === null ? text : await file.end();
  } catch (error) {
    await file?.close();
    throw error;
  } finally {
    if (file !== null) endLarge();
  }
}

/** A file that is written in parts. */
interface PartFile {
  add(text: string): Promise<void>;
  /** Writes the rest and returns the body. */
  end(): Promise<FileBody>;
  close(): Promise<void>;
}

/** Writes texts to a file. All use the same memory: new memory for each part would remain until the next collection of garbage. */
function partFile(file: FileHandle): PartFile {
  const encoder = new TextEncoder();
  const part = Buffer.allocUnsafeSlow(writtenSize);
  let used = 0;
  let bytes = 0;
  let unchecked = 0;
  const flush = async (): Promise<void> => {
    for (let at = 0; at < used; ) at += (await file.write(part, at, used - at).catch(throwStorage)).bytesWritten;
    bytes += used;
    used = 0;
  };
  return {
    async add(text) {
      unchecked += text.length;
      if (unchecked >= checkedSize) {
        limitLarge();
        unchecked = 0;
      }
      for (let at = 0; at < text.length; ) {
        const { read, written } = encoder.encodeInto(at === 0 ? text : text.slice(at), part.subarray(used));
        at += read;
        used += written;
        // The next character has more bytes than are left.
        if (at < text.length) await flush();
      }
    },
    async end() {
      await flush();
      return fileBody(file, bytes);
    },
    close: () => file.close(),
  };
}

async function openNameless(folder: string): Promise<FileHandle> {
  const path = join(folder, `response-${randomUUID()}`);
  const file = await open(path, "wx+", 0o600).catch(throwStorage);
  await unlink(path);
  return file;
}

/** A full disk is reported as the database reports it. */
function throwStorage(cause: unknown): never {
  throw new StorageError("the file of a large response cannot be written", { cause });
}

const fileBody = (file: FileHandle, bytes: number): FileBody => ({
  bytes,
  close: () => file.close(),
  async send(response) {
    // A part is read while the one before is sent.
    const parts = [0, 1].map(() => ({ memory: Buffer.allocUnsafeSlow(partSize), sent: Promise.resolve() }));
    try {
      for (let at = 0, index = 0; at < bytes; index++) {
        const part = parts[index % parts.length] as (typeof parts)[number];
        await part.sent;
        const { bytesRead } = await file.read(part.memory, 0, partSize, at);
        if (response.closed || response.destroyed) return;
        if (bytesRead === 0) throw new Error("the file of a large response is cut");
        at += bytesRead;
        part.sent = written(response, part.memory.subarray(0, bytesRead));
      }
      response.end();
    } finally {
      await file.close();
    }
  },
});

/** Writes bytes. Resolves when they are no longer needed: the system has them, or the response is closed. */
const written = (response: ServerResponse, bytes: Buffer): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off("close", done);
      resolve();
    };
    response.on("close", done);
    response.write(bytes, done);
  });

/** Whether a text is long enough for `sendTexts`: encoding and copying it at once takes a turn of the event loop. */
export const isLongText = (text: string): boolean => text.length > mostUnsplit;

/**
 * Sends texts one after the other in parts, as fast as the client reads, and ends the response. No part of a text ends in the middle of a
 * surrogate pair.
 */
export async function sendTexts(
  response: Pick<ServerResponse, "write" | "end" | "on" | "off" | "closed" | "destroyed">,
  texts: readonly string[],
  encoding: "latin1" | "utf8",
): Promise<void> {
  for (const text of texts)
    for (let at = 0; at < text.length; ) {
      if (response.closed || response.destroyed) return;
      const last = text.charCodeAt(at + partSize - 1);
      const end = at + partSize + (last >= 0xd8_00 && last <= 0xdb_ff ? 1 : 0);
      const isReady = response.write(text.slice(at, end), encoding);
      at = end;
      if (!isReady) await drained(response);
      if (turn.isOver()) await turn.next();
    }
  response.end();
}

/** Resolves when the response accepts more, or is closed, also if it was closed before. */
const drained = (response: Pick<ServerResponse, "on" | "off" | "closed" | "destroyed">): Promise<void> =>
  new Promise((resolve) => {
    if (response.closed || response.destroyed) return resolve();
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });

/** Yields a JSON array of the items: objects, or the pieces of their JSON. A long object is printed in slices. */
export async function* printList(items: AsyncIterable<unknown>): AsyncGenerator<string> {
  let before = "[";
  for await (const item of items) {
    yield before;
    if (isPieces(item)) yield* item;
    else yield (await runInTurns(printInTurns(item))) ?? "null";
    before = ",";
  }
  yield before === "[" ? "[]" : "]";
}

const isPieces = (item: unknown): item is AsyncIterable<string> =>
  typeof item === "object" && item !== null && Symbol.asyncIterator in item;
