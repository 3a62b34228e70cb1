/** Notifies listeners of commits inside the process, so that the engine and the event feed start at once instead of polling. */
import type { Batched, Store, Tx } from "../store/db.ts";

/** What a commit notifies other processes of: new tasks, cancellations, or events. */
export type Topic = "task" | "cancel" | "event";

/** A store with notifications of its commits. All writers of a process share one. */
export interface ObservedStore extends Store {
  /** Calls `listener` after every commit that notified the topic, before the writer continues. Returns a function that unsubscribes. */
  onCommit(topic: Topic, listener: () => void): () => void;
  /** Returns how many writes this process has committed, without hidden ones. Raised before the writer continues. */
  commits(): number;
  /** Returns a number that grows with each such write and each change by another process; null: one may write at any time. */
  position(): number | null;
}

/** A property of the transaction: a WeakMap by transaction would cost the garbage collector more than a statement costs. */
const topicsKey = Symbol("topics");

type ObservedTx = Tx & { [topicsKey]?: (Topic | "hidden")[] };

/** Notifies listeners of the topic when this transaction commits. No effect on a store without `observeCommits`. */
export function notifyTopic(tx: Tx, topic: Topic): void {
  const topics = (tx as ObservedTx)[topicsKey];
  if (topics?.includes(topic) === false) topics.push(topic);
}

/** Hides this transaction from `commits()`, because no API response shows its rows: reconcilers store their runs every few seconds. */
export function hideCommit(tx: Tx): void {
  (tx as ObservedTx)[topicsKey]?.push("hidden");
}

/** Returns whether `hideCommit` was called for the transaction. */
export const isHidden = (tx: Tx): boolean => (tx as ObservedTx)[topicsKey]?.includes("hidden") === true;

/** Wraps a store so that its commits notify listeners. Listeners must not throw. */
export function observeCommits(store: Store): ObservedStore {
  const listeners: Record<Topic, Set<() => void>> = { task: new Set(), cancel: new Set(), event: new Set() };
  let commits = 0;
  return {
    commits: () => commits,
    position() {
      const foreign = store.foreignWrites();
      return foreign === null ? null : commits + foreign;
    },
    kind: store.kind,
    processes: store.processes,
    foreignWrites: () => store.foreignWrites(),
    alone: store.alone,
    read: store.read,
    snapshot: () => store.snapshot(),
    unavailable: () => store.unavailable(),
    blocked: () => store.blocked(),
    close: () => store.close(),
    write<T, O>(work: (tx: Tx, output?: O) => Promise<T>, batched?: Batched<O>): Promise<T> {
      let topics: (Topic | "hidden")[] = [];
      const written = store.write((tx, output?: O) => {
        topics = [];
        (tx as ObservedTx)[topicsKey] = topics;
        return work(tx, output);
      }, batched);
      return written.then((result) => {
        if (!topics.includes("hidden")) commits += 1;
        for (const topic of topics) if (topic !== "hidden") for (const listener of listeners[topic]) listener();
        return result;
      });
    },
    onCommit(topic, listener) {
      listeners[topic].add(listener);
      return () => listeners[topic].delete(listener);
    },
  };
}
