/**
 * Answers of reads, kept as text until anything is committed: programs that wait ask for the same object again and again, and need
 * not wait for the database each time. Only answers that depend on nothing else are kept, only while this process alone
 * writes, and each only for the very token and request line that got it.
 */
import type { Bound } from "./bind.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import type { Reply } from "./reply.ts";

export interface Remembered {
  readonly caller: Caller;
  readonly bound: Bound;
  readonly reply: Reply;
}

export interface Memory {
  /** What the same request was answered since the last commit. */
  find(exchange: Exchange): Remembered | undefined;
  /** Where time stands now: what is read after this call may be kept with it. */
  moment(): number | null;
  /** Keeps the answer, unless something was committed since `moment`. */
  keep(exchange: Exchange, moment: number | null, remembered: Remembered): void;
}

/** Characters of all answers together; beyond it all are forgotten. */
const mostCharacters = 16 * 1024 * 1024;
/** What one answer costs beside its text. */
const overhead = 500;

/** `freshness` counts commits and whatever else an answer may show; null: others write too, so nothing can be kept. */
export function createMemory(freshness: () => number | null): Memory {
  const answers = new Map<string, Remembered>();
  let present: number | null = null;
  let characters = 0;

  const moment = (): number | null => {
    const now = freshness();
    if (now !== present) {
      present = now;
      if (answers.size > 0) answers.clear();
      characters = 0;
    }
    return now;
  };

  /** Null: a request that is more than its head line, its token and its media type. */
  const keyOf = ({ request, head }: Exchange): string | null =>
    request.method === "GET" &&
    head.authorization !== undefined &&
    head.contentLength === undefined &&
    head.transferEncoding === undefined &&
    head.prefer === undefined &&
    head.expect === undefined
      ? `${head.authorization}\n${head.accept ?? ""}\n${request.url}`
      : null;

  return {
    moment,
    find(exchange) {
      if (moment() === null || answers.size === 0) return undefined;
      const key = keyOf(exchange);
      return key === null ? undefined : answers.get(key);
    },
    keep(exchange, then, remembered) {
      if (then === null || moment() !== then) return;
      const key = keyOf(exchange);
      if (key === null) return;
      characters += key.length + remembered.reply.body.length + overhead;
      if (characters > mostCharacters) {
        answers.clear();
        characters = 0;
        return;
      }
      answers.set(key, remembered);
    },
  };
}
