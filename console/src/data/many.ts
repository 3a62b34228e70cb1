/** The same kind of request for many objects: a few at the same time, with the progress and the error of each. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useData } from "./data.tsx";

/** `waiting`: not sent yet. `running`: accepted, and its work has not ended. */
export type Phase = "waiting" | "sending" | "running" | "done" | "failed";

export interface Progress {
  readonly phase: Phase;
  /** Why it failed. */
  readonly error?: unknown;
}

/** What has been accepted: `action` is its number, or `deletion`; null: it is done already. */
type Accepted = { readonly action: number } | { readonly deletion: number } | null;

/** Requests that run at the same time. */
const atOnce = 4;

/** Does the work for each object, for a few at the same time. Rejects with the first error of the work. */
export async function eachOf<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const rest = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of rest) await work(one);
    }),
  );
}

/** Returns the progress by id of the object, and the functions that send the requests and stop sending. */
export function useMany() {
  const { arrived } = useData();
  const progress = useRef(new Map<number, Progress>());
  const [shown, setShown] = useState<ReadonlyMap<number, Progress>>(new Map());
  const frame = useRef(0);
  const isStopped = useRef(false);
  // Objects that wait for an event, by its key; and events that came before the response.
  const waiting = useRef(new Map<string, number>());
  const ended = useRef(new Map<string, Progress>());
  const set = useCallback((id: number, next: Progress): void => {
    progress.current.set(id, next);
    if (frame.current !== 0) return;
    // Once per frame: thousands of objects may end together.
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      setShown(new Map(progress.current));
    });
  }, []);
  useEffect(() => {
    const follow = (): void => {
      for (const { Type, Resource, ResourceID, Data } of arrived.get()) {
        const state = (Data as { readonly State?: string } | null)?.State;
        const isEnd =
          Resource === "action" ? ["Completed", "Failed", "Canceled"].includes(state ?? "") : Type.endsWith(".deleted");
        if (!isEnd) continue;
        const key = `${Resource}:${ResourceID}`;
        const error = (Data as { readonly Error?: { readonly detail: string } | null } | null)?.Error?.detail;
        const end: Progress =
          Resource === "action" && state !== "Completed"
            ? { phase: "failed", error: new Error(error ?? state) }
            : { phase: "done" };
        const id = waiting.current.get(key);
        if (id === undefined) ended.current.set(key, end);
        else set(id, end);
      }
    };
    const unsubscribe = arrived.subscribe(follow);
    return () => {
      unsubscribe();
      isStopped.current = true;
      cancelAnimationFrame(frame.current);
    };
  }, [arrived, set]);
  const run = useCallback(
    async (ids: readonly number[], send: (id: number) => Promise<Accepted>): Promise<void> => {
      isStopped.current = false;
      for (const id of ids) set(id, { phase: "waiting" });
      await eachOf(ids, async (id) => {
        if (isStopped.current) return;
        set(id, { phase: "sending" });
        try {
          const accepted = await send(id);
          const key =
            accepted === null ? "" : "action" in accepted ? `action:${accepted.action}` : `server:${accepted.deletion}`;
          waiting.current.set(key, id);
          set(id, accepted === null ? { phase: "done" } : (ended.current.get(key) ?? { phase: "running" }));
        } catch (error) {
          set(id, { phase: "failed", error });
        }
      });
    },
    [set],
  );
  const stop = useCallback(() => {
    isStopped.current = true;
  }, []);
  return useMemo(() => ({ progress: shown, run, stop }), [shown, run, stop]);
}
