/**
 * What a repeated request gets (docs/spec.md#headers-and-queries-for-changes): the stored answer, byte for byte; or, if it asks to wait,
 * the same object as it is when the work on it has ended. That object is found through the contract: `shows` names the operation that reads
 * it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { isSettled } from "@brume/api/work.ts";
import { ApiError } from "../base/error.ts";
import type { Store } from "../store/db.ts";
import type { Bound, Ids } from "./bind.ts";
import { show } from "./change.ts";
import type { Request } from "./handler.ts";
import type { StoredResponse } from "./idempotency.ts";
import type { Reply } from "./reply.ts";
import type { Stop } from "./stop.ts";

const repeated = ["Idempotency-Replayed", "true"];

export function repeat(stored: Reply): Reply {
  return { ...stored, headers: [...stored.headers, ...repeated] };
}

export interface ReplayTools {
  readonly store: Store;
  readonly stop: Stop;
  /** Resolves when these tasks have ended, or `ms` are over. */
  readonly ended: (tasks: readonly number[], ms: number) => Promise<void>;
}

/** Milliseconds between looks, growing. */
const firstPause = 20;
const longestPause = 500;

/** Waits up to `wait` milliseconds. Without a reader, or when the object is gone, as it is wanted to be or again, it is the stored answer after all. */
export async function repeatLater(
  { reply: stored, tasks = [] }: StoredResponse,
  reader: Bound | undefined,
  request: Request,
  { store, stop, ended }: ReplayTools,
  wait: number,
): Promise<Reply> {
  const end = performance.now() + wait;
  await stop.race(ended(tasks, wait));
  if (reader?.handler.read === undefined) return repeat(stored);
  const params: Ids = { ...(request.params as Ids), ...(stored.body !== "" && ownId(reader, stored.body)) };
  const asked: Request = { ...request, params, otherMedia: false };
  try {
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      const found = await reader.handler.read(asked, store.read);
      const left = end - performance.now();
      if (left <= 0 || stop.asked || isSettled(found.answer)) return repeat(stored.body === "" ? stored : show(found));
      await sleep(Math.min(pause, left));
    }
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return repeat(stored);
    throw error;
  }
}

/** What was answered has the last id that its reader wants; those before it are in the path of both. */
function ownId({ parameters }: Bound, body: string): Ids {
  const { ID, Id } = JSON.parse(body) as { readonly ID?: number; readonly Id?: number };
  return { [parameters.at(-1)?.name ?? ""]: ID ?? Id ?? 0 };
}
