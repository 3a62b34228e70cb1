/** Rates of counters that are read again and again, while a page is open: the API counts, and stores no series of them. */
import { useEffect, useRef, useState } from "react";

/** Rates that are kept of each counter. */
const most = 60;

export type Counters = ReadonlyMap<string, number>;
/** Per second, from the oldest to the newest. */
export type Rates = ReadonlyMap<string, readonly number[]>;

/** Returns the rates with those between two reads. `seconds`: between the reads. A counter that is lower than before has started again. */
export function addRates(rates: Rates, before: Counters, now: Counters, seconds: number): Rates {
  const next = new Map<string, readonly number[]>();
  for (const [key, count] of now) {
    const last = before.get(key);
    // A counter that did not exist was 0, but a page that has just opened knows nothing about it.
    const rate = last === undefined ? 0 : Math.max(0, count >= last ? count - last : count) / seconds;
    next.set(key, [...(rates.get(key) ?? []), rate].slice(-most));
  }
  return next;
}

/** Returns the rates of the counters by key. `at`: when they were read, in ms; 0: not yet. */
export function useRates(counters: Counters, at: number): Rates {
  const before = useRef<{ readonly at: number; readonly counters: Counters } | null>(null);
  const [rates, setRates] = useState<Rates>(new Map());
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new read has a new time
  useEffect(() => {
    const last = before.current;
    if (at === 0 || last?.at === at) return;
    before.current = { at, counters };
    if (last !== null) setRates((all) => addRates(all, last.counters, counters, (at - last.at) / 1000));
  }, [at]);
  return rates;
}
