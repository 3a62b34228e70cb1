/**
 * One thing at a time per server: two who change one machine would not see each other's half-done work. Whoever needs several at
 * once takes them in the order of their numbers, so that no two ever wait for each other.
 */
export interface Turns {
  take<Result>(ids: readonly number[], work: () => Promise<Result>): Promise<Result>;
  /** Resolves when all that was begun has ended. */
  settle(): Promise<void>;
}

export function createTurns(): Turns {
  const queues = new Map<number, Promise<unknown>>();

  function takeOne<Result>(id: number, work: () => Promise<Result>): Promise<Result> {
    const turn = (queues.get(id) ?? Promise.resolve()).then(work, work);
    queues.set(id, turn);
    const leave = () => {
      if (queues.get(id) === turn) queues.delete(id);
    };
    turn.then(leave, leave);
    return turn;
  }

  return {
    take(ids, work) {
      const order = [...new Set(ids)].sort((a, b) => b - a);
      return order.reduce<typeof work>((inner, id) => () => takeOne(id, inner), work)();
    },
    async settle() {
      await Promise.allSettled(queues.values());
    },
  };
}
