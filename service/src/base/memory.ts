/**
 * Keeps the memory of the process near what it needs. V8 expects more of the work that it saw last, such as an import, and keeps free memory
 * for it. Node has no calls for that, only flags of V8 and the function that V8 offers to tests.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Heaps up to this size in bytes are left as they are. */
const WORTHWHILE = 100 * 2 ** 20;

type Flavor = "regular" | "last-resort";
type Collect = (options: { type: "major"; execution: "sync"; flavor: Flavor }) => void;

function collectGarbage(flavor: Flavor): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  collect({ type: "major", execution: "sync", flavor });
}

/** Collects garbage and releases free memory, if the heap is large. It takes 0.1 to 0.3 s, in which the thread does nothing else. */
export function releaseMemory(): void {
  if (process.memoryUsage().heapTotal >= WORTHWHILE) collectGarbage("last-resort");
}

/** Bytes to which the space of new objects may grow: two halves of 16 MB. V8 would let it grow to 128 MB, and keep that. */
const mostNew = 32 * 2 ** 20;
/** The same while a large response is created. It needs little at a time, but creates gigabytes, which V8 takes for a need. */
const mostNewOfLarge = 8 * 2 ** 20;
/** Milliseconds between two checks. The space doubles at most once per collection of new objects. */
const checkPeriod = 50;
/** Percent by which the heap grows before the next collection of all objects; by default up to 300. */
const growth = 50;

/** Returns the bytes of the space of new objects of this thread. */
const sizeOfNew = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space")?.space_size ?? 0;

/** True if the space of new objects may double. V8 has shrunk it to any size before. */
const mayDouble = (most: number): boolean => 2 * sizeOfNew() <= most;

const letGrow = (mayGrow: boolean): void => setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`);

/** Keeps the heaps of all threads small from now on: the space of new objects, which holds what a large request needs, and all garbage. */
export function limitHeap(): void {
  setFlagsFromString(`--heap-growing-percent=${growth}`);
  let isFixed = false;
  const check = (): void => {
    if (mayDouble(mostNew) !== isFixed) return;
    isFixed = !isFixed;
    letGrow(!isFixed);
  };
  setInterval(check, checkPeriod).unref();
}

/** Keeps the space of new objects small while a large response is created, if it is called often. `endLarge` ends it. */
export const limitLarge = (): void => letGrow(mayDouble(mostNewOfLarge));

/** Lets the space of new objects grow again. Another response that is still created limits it with its next call. */
export const endLarge = (): void => letGrow(mayDouble(mostNew));

/** Part of a period in which the thread may be busy and still counts as idle. */
const idle = 0.2;
/** Heaps of up to this many bytes in use are released: it takes 2 ms for each MB. */
const mostReleased = 40 * 2 ** 20;
/** Factor, and bytes in addition, by which the heap must have grown since it was released; by these bytes also the process. */
const grown = { factor: 1.5, more: 16 * 2 ** 20 };

/**
 * Returns a function that gives the system back what native code has freed, such as buffers of requests: malloc keeps it between blocks that are
 * in use. It takes 3 ms. Does nothing where libc has no `malloc_trim`, as on Alpine.
 */
async function loadTrim(): Promise<() => void> {
  try {
    const { default: koffi } = await import("koffi");
    const trim: (pad: number) => number = koffi.load(null).func("int malloc_trim(size_t)");
    return () => void trim(0);
  } catch {
    return () => {};
  }
}

/**
 * Gives the memory that a burst of work needed back to the system, when the thread has been idle for a period in milliseconds. It stops the
 * thread for up to 80 ms of processor time; larger heaps only get the shorter collection, which keeps their memory for later.
 */
export function releaseWhenIdle(period = 5000): void {
  let before = performance.eventLoopUtilization();
  let limit = WORTHWHILE / 2;
  let lowest = Number.POSITIVE_INFINITY;
  let trim: Promise<() => void> | null = null;
  /** Gives back what malloc keeps, if the process has grown since. */
  const trimGrown = async (): Promise<void> => {
    const resident = process.memoryUsage.rss();
    const isGrown = resident > lowest + grown.more;
    lowest = Math.min(lowest, resident);
    if (!isGrown) return;
    (await (trim ??= loadTrim()))();
    lowest = process.memoryUsage.rss();
  };
  const check = (): void => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > idle) return;
    void trimGrown();
    if (process.memoryUsage().heapTotal < limit) return;
    collectGarbage("regular");
    setImmediate(() => {
      if (process.memoryUsage().heapUsed <= mostReleased) collectGarbage("last-resort");
      limit = process.memoryUsage().heapTotal * grown.factor + grown.more;
    });
  };
  setInterval(check, period).unref();
}
