/**
 * Resolves to the result of `work`, or to `otherwise` when it takes longer than `ms` milliseconds. Rejects as `work` does. When the process
 * itself could not execute for that long, a result that has arrived meanwhile is read first and counts.
 */
export async function within<T, U>(work: Promise<T>, ms: number, otherwise: U): Promise<T | U> {
  const late = Promise.withResolvers<U>();
  // The event loop executes timers before it reads what has arrived, and immediates after it.
  const timer = setTimeout(() => setImmediate(() => late.resolve(otherwise)), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
