/**
 * What a repeated request gets (api section 1.11): the stored answer, byte for byte; or, if it asks to wait, the same object as
 * it is when the work on it has ended. That object is found through the contract: `shows` names the operation that reads it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Fault } from "../base/fault.ts";
import type { Reader } from "../store/db.ts";
import type { Bound, Ids } from "./bind.ts";
import { show } from "./change.ts";
import type { Request } from "./handler.ts";
import type { Reply } from "./reply.ts";
import type { Stop } from "./stop.ts";

const repeated = ["Idempotency-Replayed", "true"];

export function repeat(stored: Reply): Reply {
  return { ...stored, headers: [...stored.headers, ...repeated] };
}

/** Milliseconds between looks, growing. */
const firstPause = 20;
const longestPause = 500;

const unfinished = new Set<unknown>(["New", "FromPool", "Postponed", "InProgress"]);

type Shown = Readonly<Record<string, unknown>>;

/** Whether nothing is under way for the object, as far as it shows. */
function isSettled(answer: unknown): boolean {
  const { State, Generation, AppliedGeneration } = answer as Shown;
  return !unfinished.has(State) && Generation === AppliedGeneration;
}

/** Waits up to `wait` milliseconds. Without a reader, or when the object is gone again, it is the stored answer after all. */
export async function repeatLater(
  stored: Reply,
  reader: Bound | undefined,
  request: Request,
  db: Reader,
  wait: number,
  stop: Stop,
): Promise<Reply> {
  const own = reader?.parameters.at(-1);
  const shown: unknown = stored.body === "" ? null : JSON.parse(stored.body);
  if (reader?.handler.read === undefined || own === undefined || typeof shown !== "object" || shown === null)
    return repeat(stored);
  const id = Number((shown as Shown)["ID"] ?? (shown as Shown)["Id"]);
  const params: Ids = { ...(request.params as Ids), [own.name]: id };
  const asked: Request = { ...request, params, otherMedia: false };
  const end = performance.now() + wait;
  try {
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      const found = await reader.handler.read(asked, db);
      const left = end - performance.now();
      if (left <= 0 || stop.asked || isSettled(found.answer)) return repeat(show(found));
      await sleep(Math.min(pause, left));
    }
  } catch (error) {
    if (error instanceof Fault && error.status === 404) return repeat(stored);
    throw error;
  }
}
