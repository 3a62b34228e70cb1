/**
 * The wish to stop, known to whoever waits: a change that is stored and only held up for its effect is answered soon when the
 * service stops, instead of being cut off without a word.
 */
/** Milliseconds that a change which is stored still gets for its effect: what acts at once acts in time. */
const lastWait = 250;

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
      setTimeout(() => {
        for (const give of waiting) give();
      }, lastWait).unref();
    },
    race(work) {
      return new Promise((resolve, reject) => {
        const give = (): void => resolve(undefined);
        waiting.add(give);
        // Not Promise.race with one lasting promise, which would remember every request for as long as the service runs.
        void work.then(resolve, reject).then(() => waiting.delete(give));
        if (asked) setTimeout(give, lastWait).unref();
      });
    },
  };
}
