/**
 * The boot queue. Booting guests compete for cores, so only a limited number boots at once. Owners take turns, so that an owner who starts
 * a hundred servers does not delay others; the servers of one owner boot in order of arrival. The queue notifies no one: a waiting caller
 * polls, and a server that is not polled for `waitTimeout` is removed.
 */

/** The boot queue; ids are those of servers. */
export interface Queue {
  /**
   * Requests a slot. Returns a function that releases the slot (idempotent), or the number of servers before this one. A server that has a
   * slot keeps it and gets a new release function; the old one has no effect.
   */
  enter(id: number, owner: number): (() => void) | number;
  /** Removes a waiting server. */
  quit(id: number): void;
}

/** Milliseconds without a poll after which a server leaves; longer than the longest pause between retries of an undo. */
const waitTimeout = 90_000;

/** Creates a queue with this number of slots. `now` is in ms. */
export function createQueue(slots: number, now: () => number): Queue {
  const admitted = new Map<number, symbol>();
  /** Waiting servers by owner: id and time of the last poll, in order of arrival. The owner served last is at the end. */
  const waiting = new Map<number, Map<number, number>>();

  function quit(id: number): void {
    for (const [owner, own] of waiting) if (own.delete(id) && own.size === 0) waiting.delete(owner);
  }

  /** Returns all waiting servers: the first of each owner, then the second of each, and so on. */
  function inOrder(): number[] {
    const lists = [...waiting.values()].map((own) => [...own.keys()]);
    const longest = Math.max(0, ...lists.map((list) => list.length));
    return Array.from({ length: longest }, (_, round) => lists.flatMap((list) => list.slice(round, round + 1))).flat();
  }

  function admit(id: number): () => void {
    const token = Symbol();
    admitted.set(id, token);
    return () => void (admitted.get(id) === token && admitted.delete(id));
  }

  return {
    quit,
    enter(id, owner) {
      if (admitted.has(id)) return admit(id);
      const ofOwner = waiting.get(owner) ?? new Map<number, number>();
      waiting.set(owner, ofOwner.set(id, now()));
      for (const [one, polled] of [...waiting.values()].flatMap((each) => [...each]))
        if (now() - polled > waitTimeout) quit(one);
      const position = inOrder().indexOf(id);
      if (position >= slots - admitted.size) return position;
      quit(id);
      if (waiting.delete(owner) && ofOwner.size > 0) waiting.set(owner, ofOwner);
      return admit(id);
    },
  };
}
