/**
 * The stop signal for requests that wait: when the service stops, a committed change that waits for its effect gets its response soon,
 * instead of a closed connection.
 */

/** Milliseconds that a committed change still waits for its effect after the stop was requested. */
const lastWait = 250;

/** The stop signal of the HTTP server. */
export interface Stop {
  /** The service is stopping. */
  readonly requested: boolean;
  /** Sets `requested` and ends all waits soon. */
  request(): void;
  /** Calls the listener when the stop is requested, or now if it was. Returns a function that unsubscribes. */
  onRequest(listener: () => void): () => void;
  /** Resolves or rejects as `work` does, or resolves to undefined if the service stops first. */
  race<T>(work: Promise<T>): Promise<T | undefined>;
}

/** Creates the stop signal. */
export function createStop(): Stop {
  const waiting = new Set<() => void>();
  const listeners = new Set<() => void>();
  let requested = false;
  return {
    get requested() {
      return requested;
    },
    request() {
      requested = true;
      for (const listener of listeners) listener();
      setTimeout(() => {
        for (const release of waiting) release();
      }, lastWait).unref();
    },
    onRequest(listener) {
      if (requested) listener();
      else listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    race(work) {
      return new Promise((resolve, reject) => {
        const release = (): void => resolve(undefined);
        waiting.add(release);
        // Promise.race with one promise for the whole life of the service would keep every request in memory.
        void work.then(resolve, reject).then(() => waiting.delete(release));
        if (requested) setTimeout(release, lastWait).unref();
      });
    },
  };
}
