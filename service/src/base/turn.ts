/**
 * Divides long work into slices, so that the event loop serves requests in between. All long works of a thread share one slice of each turn
 * of the event loop: many of them at once, or many short ones after each other, do not make a turn longer.
 */
import { setTimeout as pause } from "node:timers/promises";

/** A slice of each turn of the event loop, for works that share it. The caller checks after each small part whether it is over. */
export interface Turn {
  /** Returns true if the works have run for the time of a slice in this turn of the event loop. Begins the slice if none has run yet. */
  isOver(): boolean;
  /** Resolves when the work may continue, in the order of the calls: in a later turn if the slice is over. */
  next(): Promise<void>;
}

/** Milliseconds of a slice. */
const sliceTime = 5;

/** Creates slices for works that do not share those of `turn`, and begins the first one. `now` returns milliseconds. */
export function createTurn(now: () => number = () => performance.now()): Turn {
  const waiting: (() => void)[] = [];
  let isPlanned = false;
  /** Ticks run when there are no microtasks left: a work that awaits only results that are there has then come to its end. */
  const plan = (): void => {
    if (isPlanned || waiting.length === 0) return;
    isPlanned = true;
    queueMicrotask(() => process.nextTick(resume));
  };
  /** Immediates run once in each turn, after input was read. A slice that began before them ends with those of the next turn. */
  const endSlice = (): void => {
    begun = null;
    if (waiting.length === 0) return;
    begun = now();
    setImmediate(endSlice);
    plan();
  };
  const begin = (): number => {
    setImmediate(() => setImmediate(endSlice));
    return now();
  };
  let begun: number | null = begin();
  const isOver = (): boolean => now() - (begun ??= begin()) >= sliceTime;
  const resume = (): void => {
    isPlanned = false;
    // The next turn plans it again.
    if (isOver()) return;
    waiting.shift()?.();
    plan();
  };
  return {
    isOver,
    next: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        plan();
      }),
  };
}

/** The slices of this thread. */
export const turn: Turn = createTurn();

/** Calls `act` for each item, in slices. */
export async function forEachInTurns<T>(items: Iterable<T>, act: (item: T) => void): Promise<void> {
  for (const item of items) {
    act(item);
    if (turn.isOver()) await turn.next();
  }
}

/** Runs work that yields where it can be interrupted, in slices. */
export async function runInTurns<T>(work: Generator<void, T>): Promise<T> {
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
    await (isHurried ? turn.next() : Promise.race([ended, rest()]));
    do {
      const { done, value } = work.next();
      if (done === true) return value;
    } while (!turn.isOver());
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
  for (let after = 0; ; ) {
    const page = await read(after);
    if (page.length > 0) yield page;
    if (page.length < size) return;
    after = page.at(-1)?.id ?? after;
    if (turn.isOver()) await turn.next();
  }
}

/** Yields the rows of `ids`, at most `size` at a time, in slices. */
export async function* readByIds<Row>(
  ids: readonly number[],
  size: number,
  read: (some: readonly number[]) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  for (let from = 0; from < ids.length; from += size) {
    yield await read(ids.slice(from, from + size));
    if (turn.isOver()) await turn.next();
  }
}
