/**
 * Cache of the responses to reads, as text, until the next commit or change of the power of a VM: clients that poll one object do not wait
 * for the database each time. Only responses that depend on nothing else are cached, only while this process alone writes, and each for one token and request line.
 */
import type { Bound } from "./bind.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import type { Reply } from "./reply.ts";

/** A response with the data that is needed to send it again. */
export interface CachedResponse {
  /** The token as it was sent. */
  readonly token: string;
  readonly caller: Caller;
  readonly bound: Bound;
  readonly reply: Reply;
}

/** Responses by token and request, each valid until the next commit. */
export interface ResponseCache {
  /** Returns the response to the same request since the last commit. */
  find(exchange: Exchange): CachedResponse | undefined;
  /** Returns the current count of commits, to be taken before a read; null: nothing can be cached. */
  moment(): number | null;
  /** Stores the response, unless there was a commit since `moment`. */
  store(exchange: Exchange, moment: number | null, response: CachedResponse): void;
}

/** Maximum size of the cache in characters; beyond it the cache is cleared. */
const mostCharacters = 16 * 1024 * 1024;
/** Characters that an entry counts in addition to its text. */
const overhead = 500;

/** `accept`: the `Accept` header of the request. */
type Entry = CachedResponse & { readonly accept: string | undefined };

/** Creates the cache. `freshness` counts commits and all other changes of responses; null: other processes write, so nothing is cached. */
export function createResponseCache(freshness: () => number | null): ResponseCache {
  /** By `Authorization`, then by target. */
  const entries = new Map<string, Map<string, Entry>>();
  let current: number | null = null;
  let characters = 0;

  const clear = (): void => {
    if (entries.size > 0) entries.clear();
    characters = 0;
  };

  const moment = (): number | null => {
    const now = freshness();
    if (now !== current) {
      current = now;
      clear();
    }
    return now;
  };

  /** Returns true if only request line, token and media type decide the response. */
  const isPlain = ({ request, head }: Exchange): boolean =>
    request.method === "GET" &&
    head.contentLength === undefined &&
    head.transferEncoding === undefined &&
    head.prefer === undefined &&
    head.expect === undefined;

  return {
    moment,
    find(exchange) {
      if (moment() === null || entries.size === 0 || !isPlain(exchange)) return undefined;
      const { head, request } = exchange;
      const entry = entries.get(head.authorization ?? "")?.get(request.url ?? "");
      // Only an operation with a second media type depends on `Accept`.
      return entry === undefined || entry.bound.otherMedia === null || entry.accept === head.accept ? entry : undefined;
    },
    store(exchange, readAt, response) {
      if (readAt === null || moment() !== readAt) return;
      const { authorization, accept } = exchange.head;
      const { url } = exchange.request;
      if (authorization === undefined || url === undefined || !isPlain(exchange)) return;
      characters += authorization.length + url.length + (accept?.length ?? 0) + response.reply.body.length + overhead;
      if (characters > mostCharacters) return clear();
      let ofToken = entries.get(authorization);
      if (ofToken === undefined) {
        ofToken = new Map();
        entries.set(authorization, ofToken);
      }
      ofToken.set(url, { ...response, accept });
    },
  };
}
