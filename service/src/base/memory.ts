/**
 * Gives the free memory of this thread's JavaScript heap back to the system. V8 keeps what a large piece of work needed once, such as the
 * load of a million records at a start, because it expects more of it. Node has no call for that, only the function that V8 offers to
 * tests.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
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

/** Bytes from which on the space of new objects no longer grows: two halves of 16 MB. V8 would let it grow to 128 MB, and keep that. */
const mostNew = 32 * 2 ** 20;
/** Milliseconds between two checks. The space doubles at most once per collection of new objects. */
const checkPeriod = 50;

/** Keeps the space of new objects small from now on, in all threads. It holds what a request needs, also that for a large one. */
export function limitNewSpace(): void {
  let isFixed = false;
  const check = (): void => {
    const size = getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")?.space_size ?? 0;
    if (size >= mostNew === isFixed) return;
    isFixed = !isFixed;
    setFlagsFromString(`--semi-space-growth-factor=${isFixed ? 1 : 2}`);
  };
  setInterval(check, checkPeriod).unref();
}
