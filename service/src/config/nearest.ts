/** "Did you mean" for keys of the settings file. */

/** Returns the number of insertions, deletions and replacements that turn one word into the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Returns the word that differs least, at most by a third of its letters; null: there is none. */
export function nearest(word: string, words: readonly string[]): string | null {
  const scores = words.map((one) => ({ one, score: distance(word, one) }));
  const best = scores.toSorted((a, b) => a.score - b.score)[0];
  return best !== undefined && best.score <= Math.max(1, Math.floor(word.length / 3)) ? best.one : null;
}
