/**
 * Events as a stream (docs/spec.md#event-endpoints): server-sent events (WHATWG HTML section 9.2). A stream holds nothing but
 * the id it has got to and reads on from the table, so a slow reader falls behind instead of filling the memory, and a
 * reader that comes back goes on where it was.
 */
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import type { EventFilter, EventRow, Feed } from "../engine/event.ts";
import { type EventQuery, type FilterEvent, filterOf, printEvent } from "./events.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import { head } from "./reply.ts";

export interface StreamTools {
  readonly feed: Feed;
  readonly clock: Clock;
  readonly log: Log;
  /** Asks again who the token belongs to; throws when it is no longer good. */
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  /** For restricted tokens. */
  readonly filterEvent: FilterEvent;
  /** Milliseconds between comments. */
  readonly ping: number;
  /** Milliseconds after which a reader that takes nothing of what waits for it is cut off. */
  readonly stall: number;
  /** Streams per token. */
  readonly most: number;
}

export interface Streams {
  /** Answers with a stream that goes on after this returns. Throws `rate_limited` when the token has too many. */
  open(exchange: Exchange, caller: Caller, token: string, query: EventQuery): Promise<void>;
  count(): number;
  close(): void;
}

/** Rows read at once: few, since one may hold a large object. */
const batch = 50;

const frame = (row: EventRow): string => `id: ${row.id}\nevent: ${row.type}\ndata: ${printEvent(row)}\n\n`;
const resetFrame = (oldest: number): string => `event: reset\ndata: {"Oldest":${oldest}}\n\n`;

/** Where a stream begins: after the event that the client saw last; null: with the next one. */
function readStart(lastEventId: string | undefined, after: number | undefined): number | null {
  if (lastEventId === undefined || lastEventId === "") return after ?? null;
  if (!/^\d{1,15}$/.test(lastEventId)) throw new ApiError("query_invalid", "Last-Event-ID must be the ID of an event.");
  return Number(lastEventId);
}

interface Start {
  /** The stream goes on after this event. */
  readonly last: number;
  /** The oldest event kept, if the reader must be told that it missed some. */
  readonly reset: number | null;
}

async function findStart(feed: Feed, asked: number | null): Promise<Start> {
  const oldest = await feed.oldest();
  const newest = await feed.newest();
  const last = asked ?? newest;
  // Either it was away for too long, or it knows events that this database never had: what it holds may be wrong.
  return last < oldest - 1 || last > newest ? { last: oldest - 1, reset: oldest } : { last, reset: null };
}

export function createStreams(tools: StreamTools): Streams {
  const perToken = new Map<number, number>();
  const endings = new Set<() => void>();
  let open = 0;
  let closed = false;

  const enter = (tokenId: number): void => {
    const present = perToken.get(tokenId) ?? 0;
    if (present >= tools.most)
      throw new ApiError(
        "rate_limited",
        `The token has ${present} open event streams, and may have ${tools.most}.`,
        [],
        5,
      );
    perToken.set(tokenId, present + 1);
    open += 1;
  };
  const leave = (tokenId: number): void => {
    const present = perToken.get(tokenId) ?? 1;
    if (present > 1) perToken.set(tokenId, present - 1);
    else perToken.delete(tokenId);
    open -= 1;
  };

  return {
    count: () => open,
    close() {
      closed = true;
      for (const end of endings) end();
    },
    async open(exchange, caller, token, query) {
      const filter = filterOf(caller, query);
      const asked = readStart(exchange.head.lastEventId, query.after);
      enter(caller.tokenId);
      try {
        const start = await findStart(tools.feed, asked);
        const end = follow(tools, exchange, caller, token, filter, start, () => {
          endings.delete(end);
          leave(caller.tokenId);
        });
        endings.add(end);
        // Service or client may have gone while the start was looked up.
        if (closed || exchange.response.destroyed) end();
      } catch (error) {
        leave(caller.tokenId);
        throw error;
      }
    },
  };
}

/** Sends events until the reader leaves, its token is no longer good, or the function that this returns is called. */
function follow(
  { feed, clock, log, authenticate, filterEvent, ping, stall }: StreamTools,
  { id, response, headers, address }: Exchange,
  caller: Caller,
  token: string,
  filter: EventFilter,
  start: Start,
  onEnd: () => void,
): () => void {
  let { last } = start;
  let ended = false;
  let news = false;
  let wake = (): void => {};

  /** Resolves when there is something to do: room to write, something to read, or the end. */
  const until = (ready: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      wake = () => {
        if (ended || ready()) resolve();
      };
      wake();
    });
  const look = (): void => {
    news = true;
    wake();
  };
  const end = (): void => {
    if (ended) return;
    ended = true;
    unsubscribe();
    clearInterval(pinging);
    clearTimeout(expiring);
    response.end();
    wake();
    onEnd();
  };
  const unsubscribe = feed.subscribe(look);
  const pinging = setInterval(() => {
    if (!response.writableNeedDrain) response.write(": ping\n\n");
    look();
  }, ping);
  const expiring = setExpiry(caller, clock.now(), end);

  /** A reader so slow that its next events are deleted before it comes to them has a gap, and is told. */
  const skipForgotten = async (): Promise<void> => {
    const oldest = await feed.oldest();
    if (last >= oldest - 1 || ended) return;
    response.write(resetFrame(oldest));
    last = oldest - 1;
  };

  const run = async (): Promise<void> => {
    while (!ended) {
      news = false;
      const newest = await feed.newest();
      const rows = await feed.after(filter, last, batch);
      // A deleted token wakes its own streams by the event of its deletion. Asked after reading, so that the event itself is not sent.
      await authenticate(token, address);
      for (const row of rows) {
        const seen = caller.restriction === null ? row : filterEvent(caller, row);
        if (ended) return;
        if (seen !== null && !response.write(frame(seen))) await until(() => !response.writableNeedDrain);
        last = row.id;
      }
      if (rows.length === batch) await skipForgotten();
      else {
        last = Math.max(last, newest);
        await until(() => news);
      }
    }
  };

  response.on("close", end).on("error", end);
  response.on("drain", () => wake());
  // A stream is the last thing on its connection, so that its end is the connection's.
  response.shouldKeepAlive = false;
  response.setTimeout(stall);
  response.writeHead(200, [...head(id, "text/event-stream"), ...headers]);
  response.write("retry: 2000\n\n");
  if (start.reset !== null) response.write(resetFrame(start.reset));
  run().then(end, (error: unknown) => {
    if (!(error instanceof ApiError)) log("error", "an event stream ended early", { request: id, error });
    end();
  });
  return end;
}

/** The longest time that a timer can be set to; what is later is found by the pings. */
const longestTimer = 2 ** 31 - 1;

function setExpiry(caller: Caller, now: number, end: () => void): NodeJS.Timeout | undefined {
  if (caller.expiresAt === null || caller.expiresAt - now > longestTimer) return undefined;
  return setTimeout(end, Math.max(0, caller.expiresAt - now));
}
