/**
 * Divides long work into slices, so that the event loop serves requests in between. The caller checks after each small part whether its
 * slice is over; only then does it wait for the next one.
 */
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";

/** A slice of work. */
export interface Turn {
  /** True if the work has run for the time of a slice. */
  isOver(): boolean;
  /** Resolves when the event loop has served what was ready, and starts the next slice. */
  next(): Promise<void>;
}

/** Milliseconds of a slice. */
const sliceTime = 5;

/** Starts the first slice. `now` returns milliseconds. */
export function createTurn(now: () => number = () => performance.now()): Turn {
  let begun = now();
  return {
    isOver: () => now() - begun >= sliceTime,
    async next() {
      await nextTurn();
      begun = now();
    },
  };
}

/** Runs many short works one after the other: each of them fits into a turn of the event loop, but not all of them. */
export interface Pacer {
  /** Resolves when the work may continue, in the order of the calls: when earlier ones wait for something else, and the turn is not over. */
  pass(): Promise<void>;
}

/** Creates a pacer. Its time in a turn begins with the first work. `now` returns milliseconds. */
export function createPacer(now: () => number = () => performance.now()): Pacer {
  const waiting: (() => void)[] = [];
  let isPlanned = false;
  let begun: number | null = null;
  /** Ticks run when there are no microtasks left: a work that awaits only results that are there has then come to its end. */
  const plan = (): void => {
    if (isPlanned || waiting.length === 0) return;
    isPlanned = true;
    queueMicrotask(() => process.nextTick(resume));
  };
  const resume = (): void => {
    isPlanned = false;
    if (begun === null) {
      begun = now();
      setImmediate(() => {
        begun = null;
        plan();
      });
    }
    if (now() - begun >= sliceTime) return;
    waiting.shift()?.();
    plan();
  };
  return {
    pass: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        plan();
      }),
  };
}

/** Calls `act` for each item, in slices. */
export async function forEachInTurns<T>(items: Iterable<T>, act: (item: T) => void): Promise<void> {
  const turn = createTurn();
  for (const item of items) {
    act(item);
    if (turn.isOver()) await turn.next();
  }
}

/** Runs work that yields where it can be interrupted, in slices. */
export async function runInTurns<T>(work: Generator<void, T>): Promise<T> {
  const turn = createTurn();
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
    if (turn.isOver()) await turn.next();
  }
}

/** Milliseconds between two slices of work that runs aside: others get four fifths of the time. */
const asidePause = 4 * sliceTime;

/** Runs work that yields where it can be interrupted, in slices with pauses; after `hurry` has ended without pauses. */
export async function runAside<T>(
  work: Generator<void, T>,
  hurry: Promise<unknown>,
  rest: () => Promise<unknown> = () => pause(asidePause),
): Promise<T> {
  let isHurried = false;
  const end = (): void => void (isHurried = true);
  const ended = hurry.then(end, end);
  for (;;) {
    await (isHurried ? nextTurn() : Promise.race([ended, rest()]));
    for (const turn = createTurn(); !turn.isOver(); ) {
      const { done, value } = work.next();
      if (done === true) return value;
    }
  }
}

/** Runs work that yields where it can be interrupted, without interruption. */
export function runAtOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

/**
 * Yields the rows of a query by ascending id, page by page, in slices. `read` returns at most `size` rows with ids above `after`. It runs
 * only when the caller has processed the page before.
 */
export async function* readPages<Row extends { readonly id: number }>(
  size: number,
  read: (after: number) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  const turn = createTurn();
  for (let after = 0; ; ) {
    const page = await read(after);
    if (page.length > 0) yield page;
    if (page.length < size) return;
    after = page.at(-1)?.id ?? after;
    if (turn.isOver()) await turn.next();
  }
}
