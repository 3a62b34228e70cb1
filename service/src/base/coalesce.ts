/**
 * Returns a function that shares runs of an expensive `work` between callers. Calls during a run share the next run, so each result was
 * computed after its call, and at most one run is active. `idle` is called after a run if no caller waits for the next one.
 */
export function coalesce<T>(work: () => Promise<T>, idle: () => void = () => {}): () => Promise<T> {
  let running: Promise<T> | null = null;
  let waiting: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    waiting = null;
    running = work().finally(() => {
      running = null;
      if (waiting === null) idle();
    });
    return running;
  };
  return () => {
    if (running === null) return begin();
    waiting ??= running.then(begin, begin);
    return waiting;
  };
}

/** Returns a function that calls `make` at its first call, and returns the same text at each later one. */
export function once(make: () => string): () => string {
  let text: string | undefined;
  return () => (text ??= make());
}
