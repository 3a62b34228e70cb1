/**
 * Makes commits audible inside the process, so that the engine and the event feed start at once instead of polling.
 * It also gives a transaction a last word: what must hold a lock until the commit (the order of events) is done at its very
 * end, which keeps that lock short and always taken last, so that two transactions can never wait for each other over it.
 */
import type { Store, Tx } from "../store/db.ts";

export type Topic = "task" | "cancel" | "event";

/** A store whose commits can be listened to. All writers of a process share one. */
export interface HeardStore extends Store {
  /** Calls after every commit that touched the topic, before the writer itself goes on. Returns how to stop. */
  onCommit(topic: Topic, listener: () => void): () => void;
  /** How many writes this process has committed. Raised before the writer itself goes on. */
  commits(): number;
}

interface Marks {
  readonly topics: Set<Topic>;
  readonly last: (() => Promise<void>)[];
}

/** Where a transaction keeps its marks: one WeakMap of all would cost the collector more than a statement. */
const marksKey = Symbol("marks");

type Heard = Tx & { [marksKey]?: Marks };

/** Says that this transaction changes something others wait for. Without effect on a store that nobody listens to. */
export function touch(tx: Tx, topic: Topic): void {
  (tx as Heard)[marksKey]?.topics.add(topic);
}

/** Puts `work` at the end of the transaction. False when the transaction does not know the end: then do it now. */
export function doLast(tx: Tx, work: () => Promise<void>): boolean {
  const marks = (tx as Heard)[marksKey];
  marks?.last.push(work);
  return marks !== undefined;
}

/** Listeners must not throw. */
export function hearCommits(store: Store): HeardStore {
  const listeners: Record<Topic, Set<() => void>> = { task: new Set(), cancel: new Set(), event: new Set() };
  let commits = 0;
  return {
    commits: () => commits,
    kind: store.kind,
    read: store.read,
    close: () => store.close(),
    async write(work) {
      let marks: Marks | undefined;
      const result = await store.write(async (tx) => {
        marks = { topics: new Set(), last: [] };
        (tx as Heard)[marksKey] = marks;
        const value = await work(tx);
        for (const each of marks.last) await each();
        return value;
      });
      commits += 1;
      for (const topic of marks?.topics ?? []) for (const listener of listeners[topic]) listener();
      return result;
    },
    onCommit(topic, listener) {
      listeners[topic].add(listener);
      return () => listeners[topic].delete(listener);
    },
  };
}
