/**
 * Keeps values that are read from the database until the next commit. For values that several responses show, or that a response shows
 * together with more than stored rows.
 */

/** Values by key. */
export interface Memo<T> {
  /** Returns the value that was read since the last commit, else the result of `read`. */
  get(key: string, read: () => Promise<T>): Promise<T>;
}

/**
 * Creates a memo. `position` returns a number that changes with each commit; null: other processes write, so nothing is kept. `most`: the
 * maximum sum of the sizes that `sizeOf` returns; beyond it the memo is cleared.
 */
export function createMemo<T>(position: () => number | null, most: number, sizeOf: (value: T) => number): Memo<T> {
  const values = new Map<string, T>();
  let current: number | null = null;
  let size = 0;
  const clear = (): void => {
    values.clear();
    size = 0;
  };
  const moment = (): number | null => {
    const now = position();
    if (now !== current) clear();
    current = now;
    return now;
  };
  return {
    async get(key, read) {
      const at = moment();
      const known = at === null ? undefined : values.get(key);
      if (known !== undefined) return known;
      const value = await read();
      // A commit in between may have changed what was read first.
      if (at === null || moment() !== at) return value;
      if (size + sizeOf(value) > most) clear();
      if (sizeOf(value) > most || values.has(key)) return value;
      size += sizeOf(value);
      values.set(key, value);
      return value;
    },
  };
}
