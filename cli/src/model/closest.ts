/** "Did you mean": the words that are closest to a word with a typing error. */

/** Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Returns at most three of the words that begin with `word` or differ from it by at most a third of its letters. */
export function closest(word: string, words: readonly string[]): string[] {
  const most = Math.max(1, Math.floor(word.length / 3));
  return [...new Set(words)]
    .map((one) => ({ one, score: one.startsWith(word) && word.length > 1 ? 0 : distance(word, one) }))
    .filter(({ score }) => score <= most)
    .toSorted((a, b) => a.score - b.score)
    .slice(0, 3)
    .map(({ one }) => one);
}

/** Returns the sentence with the suggestions; empty: there are none. `synonyms`: words of the same meaning, which precede. */
export function suggest(word: string, words: readonly string[], synonyms: readonly string[] = []): string {
  const found = [...new Set([...words.filter((one) => synonyms.includes(one)), ...closest(word, words)])].slice(0, 3);
  return found.length === 0 ? "" : `Did you mean ${found.join(" or ")}?`;
}
