/** Requests that wait for a task. Workers of this process notify them; work of other processes is found by polling. */

import type { Log } from "../base/log.ts";
import { prepareList, type Reader } from "../store/db.ts";
import type { Alarm } from "./alarm.ts";

const listEnded = prepareList<object, number>()((db, _, ids) =>
  db.selectFrom("task").select(["id", "end_date", "served"]).where("id", "in", ids),
);

/** Callers that wait for the end of a task. */
export interface Waiters {
  /** Resolves when the flow has ended, the reconciler has served the request `wake`, the signal aborts, or after `release`. */
  add(task: number, wake: number, signal?: AbortSignal): Promise<void>;
  /** Resolves the waiters of a task up to the request `served`; `Infinity` if the flow has ended. */
  notify(task: number, served: number): void;
  /** Reads the state of all awaited tasks and notifies their waiters. */
  poll(): Promise<void>;
  /** Resolves all waiters, and accepts no more. */
  release(): void;
}

interface Waiter {
  readonly wake: number;
  readonly resolve: () => void;
}

/** Returns waiters that poll every `period` milliseconds while a task is awaited. */
export function createWaiters(read: Reader, alarm: Alarm, period: number, log: Log): Waiters {
  const waiting = new Map<number, Set<Waiter>>();
  let released = false;
  let cancelTimer: (() => void) | null = null;

  function watch(): void {
    cancelTimer ??= alarm.at(alarm.now() + period, () => {
      cancelTimer = null;
      if (waiting.size === 0) return;
      poll().catch((error: unknown) =>
        log("warn", "Could not poll awaited tasks; the next poll notifies the waiters.", { error }),
      );
      watch();
    });
  }

  function notify(task: number, served: number): void {
    for (const waiter of waiting.get(task) ?? []) if (waiter.wake <= served) waiter.resolve();
  }

  async function check(tasks: number[]): Promise<void> {
    const rows = tasks.length === 0 ? [] : await listEnded.all(read, {}, tasks);
    const rowOf = new Map(rows.map((row) => [row.id, row]));
    for (const task of tasks) {
      const row = rowOf.get(task);
      notify(task, row === undefined || row.end_date !== null ? Infinity : row.served);
    }
  }

  async function poll(): Promise<void> {
    const tasks = [...waiting.keys()];
    for (let at = 0; at < tasks.length; at += 500) await check(tasks.slice(at, at + 500));
  }

  return {
    async add(task, wake, signal) {
      if (released || signal?.aborted) return;
      const ofTask = waiting.get(task) ?? new Set();
      waiting.set(task, ofTask);
      const { promise, resolve } = Promise.withResolvers<void>();
      // Requests count from 1, and a flow serves none: 1 waits for the end of a flow.
      const waiter = { wake: Math.max(1, wake), resolve };
      const stop = () => resolve();
      ofTask.add(waiter);
      watch();
      signal?.addEventListener("abort", stop, { once: true });
      try {
        await check([task]);
        await promise;
      } finally {
        signal?.removeEventListener("abort", stop);
        ofTask.delete(waiter);
        if (ofTask.size === 0 && waiting.get(task) === ofTask) waiting.delete(task);
      }
    },
    notify,
    poll,
    release() {
      released = true;
      cancelTimer?.();
      for (const task of waiting.keys()) notify(task, Infinity);
    },
  };
}
