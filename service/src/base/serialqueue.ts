/** Work that runs one after the other, in the order in which it was asked for. A failure is the caller's own and stops nothing. */
export interface SerialQueue {
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Resolves when all that was begun before this call has ended. */
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

/**
 * One queue for each key, forgotten when it is empty. Work that needs several keys takes them in one order, so that no two ever wait
 * for each other.
 */
export interface KeyedQueue {
  run<Result>(keys: readonly number[], work: () => Promise<Result>): Promise<Result>;
  /** Resolves when all that was begun before this call has ended. */
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
