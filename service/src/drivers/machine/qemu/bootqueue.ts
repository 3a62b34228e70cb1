/**
 * The queue of those who want to boot. Booting guests compete for cores, so only so many do at once; and one who starts a hundred
 * servers must not keep his neighbour waiting for all of them, so owners take turns, each in the order of his own asking. Nobody is
 * called: who waits asks again now and then, and holds nothing but a number meanwhile.
 */

export interface Queue {
  /**
   * Its turn: a function that ends it and may be called twice. Else how many are before it; who does not ask again in time has left.
   * One who is in already stays in, and what it was told before ends nothing any more.
   */
  enter(id: number, owner: number): (() => void) | number;
  /** It does not wait any more. */
  quit(id: number): void;
}

/** Milliseconds: longer than the longest pause between two tries of an undoing. */
const patience = 90_000;

/** `places`: how many may be in at once. */
export function createQueue(places: number, now: () => number): Queue {
  const inside = new Map<number, symbol>();
  /** By owner, who was served last at the end: when each of his asked last, in the order in which they came. */
  const waiting = new Map<number, Map<number, number>>();

  function quit(id: number): void {
    for (const [owner, own] of waiting) if (own.delete(id) && own.size === 0) waiting.delete(owner);
  }

  /** All who wait: of each owner the first, then of each the second. */
  function inOrder(): number[] {
    const lists = [...waiting.values()].map((own) => [...own.keys()]);
    const longest = Math.max(0, ...lists.map((list) => list.length));
    return Array.from({ length: longest }, (_, round) => lists.flatMap((list) => list.slice(round, round + 1))).flat();
  }

  function admit(id: number): () => void {
    const place = Symbol();
    inside.set(id, place);
    return () => void (inside.get(id) === place && inside.delete(id));
  }

  return {
    quit,
    enter(id, owner) {
      if (inside.has(id)) return admit(id);
      const own = waiting.get(owner) ?? new Map<number, number>();
      waiting.set(owner, own.set(id, now()));
      for (const [one, asked] of [...waiting.values()].flatMap((each) => [...each]))
        if (now() - asked > patience) quit(one);
      const before = inOrder().indexOf(id);
      if (before >= places - inside.size) return before;
      quit(id);
      if (waiting.delete(owner) && own.size > 0) waiting.set(owner, own);
      return admit(id);
    },
  };
}
