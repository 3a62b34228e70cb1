/** Counts what a process sends to PostgreSQL, so that tests do not depend on the time that a round trip takes. */
import { setImmediate as nextTurn } from "node:timers/promises";
import pg from "pg";

/** A transaction of the writer. */
export interface Sent {
  /** Texts of its statements, with begin and commit. */
  readonly texts: string[];
  /** Number of statements that were sent when no result was awaited: each costs a round trip. */
  trips: number;
  /** The texts of these statements. */
  readonly starts: string[];
}

/**
 * Turns of the event loop without a statement after which a program waits for a result. A write that rests continues in the next turn, and
 * on a slow host each of the writes in a commit rests several times before the next statement: together at most some hundred times.
 */
const quietTurns = 1000;

/** Runs `act`, and returns the transactions that contain a statement with this text. */
export async function listSent(text: string, act: () => Promise<unknown>): Promise<Sent[]> {
  const all: Sent[] = [];
  let statements = 0;
  /** Passes a result on when the program sends nothing more without it. */
  const hold = async (running: Promise<unknown>): Promise<unknown> => {
    await running.catch(() => {});
    for (let [turns, seen] = [0, statements]; turns < quietTurns; turns++) {
      await nextTurn();
      if (seen !== statements) [turns, seen] = [0, statements];
    }
    return running;
  };
  const awaited = new WeakMap<pg.Client, number>();
  const { query } = pg.Client.prototype;
  const counting = function (this: pg.Client & { readonly pipeline: boolean }, ...input: unknown[]) {
    const running = Reflect.apply(query, this, input) as unknown;
    if (!this.pipeline || !(running instanceof Promise)) return running;
    statements += 1;
    const held = hold(running);
    const before = awaited.get(this) ?? 0;
    const sent = (input[0] as { readonly text?: string }).text ?? String(input[0]);
    if (sent.startsWith("begin")) all.push({ texts: [], trips: 0, starts: [] });
    const last = all.at(-1);
    last?.texts.push(sent);
    if (last !== undefined && before === 0) {
      last.trips += 1;
      last.starts.push(sent);
    }
    awaited.set(this, before + 1);
    const end = () => void awaited.set(this, (awaited.get(this) ?? 1) - 1);
    held.then(end, end);
    return held;
  };
  pg.Client.prototype.query = counting as typeof query;
  try {
    await act();
  } finally {
    pg.Client.prototype.query = query;
  }
  return all.filter(({ texts }) => texts.some((each) => each.includes(text)));
}
