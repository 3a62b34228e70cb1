/**
 * A question that is costly to answer, asked by many: those who ask while an answer is under way share the next one, so that no answer
 * began before its question, and at most one runs at a time. `idle` is called when an answer has ended and no caller waits for the next.
 */
export function coalesce<T>(ask: () => Promise<T>, idle: () => void = () => {}): () => Promise<T> {
  let running: Promise<T> | null = null;
  let waiting: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    waiting = null;
    running = ask().finally(() => {
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
