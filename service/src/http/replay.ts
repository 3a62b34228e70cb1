/**
 * The response to a repeated request (docs/spec.md#headers-and-queries-for-changes): the stored response, byte for byte. With
 * `Prefer: wait` it is the same object after its background work has ended. `resultOperation` of the contract names the operation that
 * reads this object. Without a stored response, because the service ended before it sent one, it is the object as it is now.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isSettled } from "@brume/api/wait.ts";
import { ApiError } from "../base/error.ts";
import type { Store } from "../store/db.ts";
import type { Bound, Ids } from "./bind.ts";
import type { Request } from "./handler.ts";
import type { StoredResponse } from "./idempotency.ts";
import type { Reply } from "./reply.ts";
import { showRead } from "./show.ts";
import type { Stop } from "./stop.ts";

const repeated = ["Idempotency-Replayed", "true"];

/** Returns a stored response with the header `Idempotency-Replayed`. */
export function repeat(stored: Reply): Reply {
  return { ...stored, headers: [...stored.headers, ...repeated] };
}

/** Dependencies of repeated requests. */
export interface ReplayContext {
  readonly store: Store;
  readonly stop: Stop;
  /** Folder for the files of large responses. */
  readonly spoolFolder: string;
  /** Resolves when these tasks have ended, or after `ms` milliseconds. */
  readonly ended: (tasks: readonly number[], ms: number) => Promise<void>;
}

/** Milliseconds between two reads of the object, doubled after each. */
const firstPause = 20;
const longestPause = 500;

/**
 * Waits up to `wait` milliseconds for the end of the work and returns the current object. Returns the stored response if there is no
 * `reader`, or if the object does not exist any more; without a stored response, rejects with the error of the reader.
 */
export async function repeatLater(
  { reply: stored, tasks = [] }: StoredResponse,
  reader: Bound | undefined,
  request: Request,
  { store, stop, ended, spoolFolder }: ReplayContext,
  wait: number,
): Promise<Reply> {
  const end = performance.now() + wait;
  await stop.race(ended(tasks, wait));
  if (reader?.handler.read === undefined) {
    if (stored === null) throw new Error("A request without a stored response has no operation that reads its object.");
    return repeat(stored);
  }
  const body = stored?.body ?? "";
  const params: Ids = { ...(request.params as Ids), ...(body !== "" && resultId(reader, body)) };
  const readRequest: Request = { ...request, params, otherMedia: false };
  try {
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      const found = await reader.handler.read(readRequest, store.read);
      const left = end - performance.now();
      if (left <= 0 || stop.requested || isSettled(found.answer))
        return repeat(stored?.body === "" ? stored : await showRead(found, spoolFolder));
      await sleep(Math.min(pause, left));
    }
  } catch (error) {
    if (stored !== null && error instanceof ApiError && error.status === 404) return repeat(stored);
    throw error;
  }
}

/** Returns the last path id of the reader, from the stored response. The ids before it are in the path of both operations. */
function resultId({ parameters }: Bound, body: string): Ids {
  const { ID, Id } = JSON.parse(body) as { readonly ID?: number; readonly Id?: number };
  return { [parameters.at(-1)?.name ?? ""]: ID ?? Id ?? 0 };
}
