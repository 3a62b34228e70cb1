/**
 * Answers of reads, kept as text until anything is committed: programs that wait ask for the same object again and again, and need
 * not wait for the database each time. Only answers that depend on nothing else are kept, only while this process alone
 * writes, and each only for the very token and request line that got it.
 */
import type { Bound } from "./bind.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import type { Reply } from "./reply.ts";

export interface CachedResponse {
  /** As it was sent. */
  readonly token: string;
  readonly caller: Caller;
  readonly bound: Bound;
  readonly reply: Reply;
}

export interface ResponseCache {
  /** What the same request was answered since the last commit. */
  find(exchange: Exchange): CachedResponse | undefined;
  /** Where time stands now: what is read after this call may be kept with it. */
  moment(): number | null;
  /** Keeps the answer, unless something was committed since `moment`. */
  keep(exchange: Exchange, moment: number | null, remembered: CachedResponse): void;
}

/** Characters of all answers together; beyond it all are forgotten. */
const mostCharacters = 16 * 1024 * 1024;
/** What one answer costs beside its text. */
const overhead = 500;

/** `accept`: what the request said that got it. */
type Kept = CachedResponse & { readonly accept: string | undefined };

/** `freshness` counts commits and whatever else an answer may show; null: others write too, so nothing can be kept. */
export function createResponseCache(freshness: () => number | null): ResponseCache {
  /** By `Authorization`, then by target. */
  const answers = new Map<string, Map<string, Kept>>();
  let present: number | null = null;
  let characters = 0;

  const forget = (): void => {
    if (answers.size > 0) answers.clear();
    characters = 0;
  };

  const moment = (): number | null => {
    const now = freshness();
    if (now !== present) {
      present = now;
      forget();
    }
    return now;
  };

  /** Whether the request is no more than its head line, its token and its media type. */
  const isPlain = ({ request, head }: Exchange): boolean =>
    request.method === "GET" &&
    head.contentLength === undefined &&
    head.transferEncoding === undefined &&
    head.prefer === undefined &&
    head.expect === undefined;

  return {
    moment,
    find(exchange) {
      if (moment() === null || answers.size === 0 || !isPlain(exchange)) return undefined;
      const { head, request } = exchange;
      const kept = answers.get(head.authorization ?? "")?.get(request.url ?? "");
      // Only an operation with a second form looks at the media type.
      return kept === undefined || kept.bound.otherMedia === null || kept.accept === head.accept ? kept : undefined;
    },
    keep(exchange, then, remembered) {
      if (then === null || moment() !== then) return;
      const { authorization, accept } = exchange.head;
      const { url } = exchange.request;
      if (authorization === undefined || url === undefined || !isPlain(exchange)) return;
      characters += authorization.length + url.length + (accept?.length ?? 0) + remembered.reply.body.length + overhead;
      if (characters > mostCharacters) return forget();
      let ofToken = answers.get(authorization);
      if (ofToken === undefined) {
        ofToken = new Map();
        answers.set(authorization, ofToken);
      }
      ofToken.set(url, { ...remembered, accept });
    },
  };
}
