/**
 * The queue of those who want to boot. Booting guests compete for cores, so only so many do at once; and one who starts a hundred
 * servers must not keep his neighbour waiting for all of them, so owners take turns, each in the order of his own asking.
 */
export interface Queue {
  /**
   * Resolves when it is one's turn, to a function that ends it and may be called twice. Rejects with the signal's reason, and then
   * nothing is to be ended.
   */
  enter(owner: number, signal?: AbortSignal): Promise<() => void>;
}

interface Waiting {
  readonly go: () => void;
}

/** `places`: how many may be in at once. */
export function createQueue(places: number): Queue {
  let inside = 0;
  // A map keeps the order of insertion: the owner who was served last goes to its end.
  const waiting = new Map<number, Waiting[]>();

  function admit(): void {
    while (inside < places) {
      const [first] = waiting;
      if (first === undefined) return;
      const [owner, list] = first;
      const next = list.shift();
      waiting.delete(owner);
      if (list.length > 0) waiting.set(owner, list);
      if (next === undefined) continue;
      inside++;
      next.go();
    }
  }

  function leave(): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      inside--;
      admit();
    };
  }

  return {
    enter(owner, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true) return reject(signal.reason as Error);
        const abort = () => {
          const list = (waiting.get(owner) ?? []).filter((one) => one !== entry);
          if (list.length > 0) waiting.set(owner, list);
          else waiting.delete(owner);
          reject(signal?.reason as Error);
        };
        const entry: Waiting = {
          go() {
            signal?.removeEventListener("abort", abort);
            resolve(leave());
          },
        };
        signal?.addEventListener("abort", abort, { once: true });
        const list = waiting.get(owner);
        if (list === undefined) waiting.set(owner, [entry]);
        else list.push(entry);
        admit();
      });
    },
  };
}
