/**
 * The wish to stop, known to whoever waits: a change that is stored and only held up for its effect is answered at once when the
 * service stops, instead of being cut off without a word.
 */
export interface Stop {
  readonly asked: boolean;
  ask(): void;
  /** Resolves as `work` does, or to undefined when the service stops first. */
  race<T>(work: Promise<T>): Promise<T | undefined>;
}

export function createStop(): Stop {
  const waiting = new Set<() => void>();
  let asked = false;
  return {
    get asked() {
      return asked;
    },
    ask() {
      asked = true;
      for (const give of waiting) give();
    },
    race(work) {
      return new Promise((resolve, reject) => {
        const give = (): void => resolve(undefined);
        waiting.add(give);
        // Not Promise.race with one lasting promise, which would remember every request for as long as the service runs.
        work.then(
          (value) => {
            waiting.delete(give);
            resolve(value);
          },
          (error: unknown) => {
            waiting.delete(give);
            reject(error);
          },
        );
        if (asked) give();
      });
    },
  };
}
