/** Those who wait for a task: told by the worker of this process, or found by looking when another process did the work. */

import type { Log } from "../base/log.ts";
import type { Reader } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";

export interface Waiters {
  add(task: number, wake: number, signal?: AbortSignal): Promise<void>;
  /** The flow has ended, or the reconciler has served the nudge. */
  tell(task: number, served: number): void;
  /** Asks the database for all of them. */
  look(): Promise<void>;
  /** Nobody will be told any more. */
  release(): void;
}

interface Waiter {
  readonly wake: number;
  readonly resolve: () => void;
}

/** Looks every `poll` milliseconds, as long as anybody waits. */
export function createWaiters(read: Reader, alarm: Alarm, poll: number, log: Log): Waiters {
  const waiting = new Map<number, Set<Waiter>>();
  let released = false;
  let callOff: (() => void) | null = null;

  function watch(): void {
    callOff ??= alarm.at(alarm.now() + poll, () => {
      callOff = null;
      if (waiting.size === 0) return;
      look().catch((error: unknown) => log("warn", "those who wait for a task are told later", { error }));
      watch();
    });
  }

  function tell(task: number, served: number): void {
    for (const waiter of waiting.get(task) ?? []) if (waiter.wake <= served) waiter.resolve();
  }

  async function lookAt(tasks: number[]): Promise<void> {
    const rows = await read.selectFrom("task").select(["id", "end_date", "served"]).where("id", "in", tasks).execute();
    const rowOf = new Map(rows.map((row) => [row.id, row]));
    for (const task of tasks) {
      const row = rowOf.get(task);
      tell(task, row === undefined || row.end_date !== null ? Infinity : row.served);
    }
  }

  async function look(): Promise<void> {
    const tasks = [...waiting.keys()];
    for (let at = 0; at < tasks.length; at += 500) await lookAt(tasks.slice(at, at + 500));
  }

  return {
    async add(task, wake, signal) {
      if (released || signal?.aborted) return;
      const own = waiting.get(task) ?? new Set();
      waiting.set(task, own);
      const { promise, resolve } = Promise.withResolvers<void>();
      // A nudge counts from 1 and a flow serves none, so 1 waits for its end.
      const waiter = { wake: Math.max(1, wake), resolve };
      const stop = () => resolve();
      own.add(waiter);
      watch();
      signal?.addEventListener("abort", stop, { once: true });
      try {
        await lookAt([task]);
        await promise;
      } finally {
        signal?.removeEventListener("abort", stop);
        own.delete(waiter);
        if (own.size === 0 && waiting.get(task) === own) waiting.delete(task);
      }
    },
    tell,
    look,
    release() {
      released = true;
      callOff?.();
      for (const task of waiting.keys()) tell(task, Infinity);
    },
  };
}
