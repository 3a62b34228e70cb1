/** Makes commits audible inside the process, so that the engine and the event feed start at once instead of polling. */
import type { Store, Tx } from "../store/db.ts";

export type Topic = "task" | "cancel" | "event";

/** A store whose commits can be listened to. All writers of a process share one. */
export interface ObservedStore extends Store {
  /** Calls after every commit that touched the topic, before the writer itself goes on. Returns how to stop. */
  onCommit(topic: Topic, listener: () => void): () => void;
  /** How many writes this process has committed, but those that were hidden. Raised before the writer itself goes on. */
  commits(): number;
}

/** On the transaction itself: a WeakMap by transaction would cost the collector more than a statement costs. */
const topicsKey = Symbol("topics");

type TestResponse = Tx & { [topicsKey]?: (Topic | "hidden")[] };

/** Says that this transaction changes something others wait for. Without effect on a store that nobody listens to. */
export function notifyTopic(tx: Tx, topic: Topic): void {
  const topics = (tx as TestResponse)[topicsKey];
  if (topics?.includes(topic) === false) topics.push(topic);
}

/** Says that no answer shows anything of this transaction: reconcilers note every few seconds that all is well. */
export function skipFreshness(tx: Tx): void {
  (tx as TestResponse)[topicsKey]?.push("hidden");
}

/** Whether the transaction was said to be hidden. */
export const isHidden = (tx: Tx): boolean => (tx as TestResponse)[topicsKey]?.includes("hidden") === true;

/** Listeners must not throw. */
export function observeCommits(store: Store): ObservedStore {
  const listeners: Record<Topic, Set<() => void>> = { task: new Set(), cancel: new Set(), event: new Set() };
  let commits = 0;
  return {
    commits: () => commits,
    kind: store.kind,
    processes: store.processes,
    alone: store.alone,
    read: store.read,
    trouble: () => store.trouble(),
    blocked: () => store.blocked(),
    close: () => store.close(),
    write(work) {
      let topics: (Topic | "hidden")[] = [];
      const written = store.write((tx) => {
        topics = [];
        (tx as TestResponse)[topicsKey] = topics;
        return work(tx);
      });
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
