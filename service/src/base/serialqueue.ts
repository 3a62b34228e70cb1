/** Runs work sequentially, in the order of the calls. A failure rejects only the promise of its caller. */
export interface SerialQueue {
  /** Runs `work` after all earlier work, and resolves or rejects as it does. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Resolves when all work of earlier calls has ended. */
  settle(): Promise<void>;
}

export function createSerialQueue(): SerialQueue {
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(work) {
      const mine = last.then(work, work);
      last = mine.catch(() => {});
      return mine;
    },
    async settle() {
      await last;
    },
  };
}

/** One queue per key, deleted when it is empty. Work with several keys acquires them in a fixed order, so that no deadlock is possible. */
export interface KeyedQueue {
  /** Runs `work` when it is first in the queues of all keys. */
  run<Result>(keys: readonly number[], work: () => Promise<Result>): Promise<Result>;
  /** Resolves when all work of earlier calls has ended. */
  settle(): Promise<void>;
}

export function createKeyedQueue(): KeyedQueue {
  const queues = new Map<number, Promise<unknown>>();

  function runOne<Result>(key: number, work: () => Promise<Result>): Promise<Result> {
    const mine = (queues.get(key) ?? Promise.resolve()).then(work, work);
    queues.set(key, mine);
    const leave = () => {
      if (queues.get(key) === mine) queues.delete(key);
    };
    mine.then(leave, leave);
    return mine;
  }

  return {
    run(keys, work) {
      const order = [...new Set(keys)].sort((a, b) => b - a);
      return order.reduce<typeof work>((inner, key) => () => runOne(key, inner), work)();
    },
    async settle() {
      await Promise.allSettled(queues.values());
    },
  };
}
