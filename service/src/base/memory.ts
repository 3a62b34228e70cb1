/**
 * Gives the free memory of this thread's JavaScript heap back to the system. V8 keeps what a large piece of work needed once, such as the
 * load of a million records at a start, because it expects more of it. Node has no call for that, only the function that V8 offers to
 * tests.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Heaps up to this size in bytes are left as they are. */
const WORTHWHILE = 100 * 2 ** 20;

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/** Collects garbage and releases free memory, if the heap is large. It takes 0.1 to 0.3 s, in which the thread does nothing else. */
export function releaseMemory(): void {
  if (process.memoryUsage().heapTotal < WORTHWHILE) return;
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
