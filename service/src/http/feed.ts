/**
 * Streams of events (docs/spec.md#event-endpoints): server-sent events (WHATWG HTML section 9.2). A stream keeps only the id of its last
 * event and reads the next ones from the table. So a slow client falls behind instead of filling the memory, and a client that connects
 * again continues at its last event.
 */
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import type { Feed } from "../engine/event.ts";
import type { EventFilter, EventRow } from "../engine/eventquery.ts";
import { type EventQuery, type FilterEvent, filterOf, printEvent } from "./events.ts";
import type { Exchange } from "./exchange.ts";
import type { Caller } from "./handler.ts";
import { head } from "./reply.ts";

/** Dependencies and limits of the streams. */
export interface StreamContext {
  readonly feed: Feed;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the caller of a token. Throws if the token is no longer valid. */
  readonly authenticate: (value: string, address: string) => Caller | Promise<Caller>;
  /** Filters the events of restricted tokens. */
  readonly filterEvent: FilterEvent;
  /** Milliseconds between the comments that keep a connection open. */
  readonly ping: number;
  /** Milliseconds after which the connection of a client that does not read is closed. */
  readonly stall: number;
  /** Maximum number of streams per token. */
  readonly most: number;
}

/** The open event streams. */
export interface Streams {
  /** Responds with a stream, which continues after this resolves. Throws `rate_limited` if the token has too many streams. */
  open(exchange: Exchange, caller: Caller, token: string, query: EventQuery): Promise<void>;
  /** Returns the number of open streams. */
  count(): number;
  /** Ends all streams. */
  close(): void;
}

/** Rows per query: few, because a row may contain a large object. */
const batch = 50;

const frame = (row: EventRow): string => `id: ${row.id}\nevent: ${row.type}\ndata: ${printEvent(row)}\n\n`;
/**
 * Sets the last event id of the client without an event, so that a client without a matching event continues here too. There is no blank
 * after `id:`, so that a script that searches for `id: ` finds only events.
 */
const positionFrame = (last: number): string => `: position\nid:${last}\n\n`;
const resetFrame = (oldest: number): string => `event: reset\ndata: {"Oldest":${oldest}}\n\n`;

/** Returns the id of the last event that the client has received; null: the stream begins with the next new event. */
function readStart(lastEventId: string | undefined, after: number | undefined): number | null {
  if (lastEventId === undefined || lastEventId === "") return after ?? null;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw new ApiError("query_invalid", "Last-Event-ID must be the ID of an event: 1 to 15 digits.");
  return Number(lastEventId);
}

interface Start {
  /** The stream continues after this event. */
  readonly last: number;
  /** Id of the oldest stored event, if the client has missed events; null: it has missed none. */
  readonly reset: number | null;
}

async function findStart(feed: Feed, requested: number | null): Promise<Start> {
  const oldest = await feed.oldest();
  const newest = await feed.newest();
  const last = requested ?? newest;
  // The client was away for too long, or it knows events that this database never had: it must read everything again.
  return last < oldest - 1 || last > newest ? { last: oldest - 1, reset: oldest } : { last, reset: null };
}

/** Creates the streams of a server. */
export function createStreams(context: StreamContext): Streams {
  const perToken = new Map<number, number>();
  const endings = new Set<() => void>();
  let open = 0;
  let closed = false;

  const countIn = (tokenId: number): void => {
    const current = perToken.get(tokenId) ?? 0;
    if (current >= context.most)
      throw new ApiError(
        "rate_limited",
        `The token has ${current} open event streams, the maximum is ${context.most}. Close one of them.`,
        [],
        5,
      );
    perToken.set(tokenId, current + 1);
    open += 1;
  };
  const countOut = (tokenId: number): void => {
    const current = perToken.get(tokenId) ?? 1;
    if (current > 1) perToken.set(tokenId, current - 1);
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
      const requested = readStart(exchange.head.lastEventId, query.after);
      countIn(caller.tokenId);
      try {
        const start = await findStart(context.feed, requested);
        const end = follow(context, exchange, caller, token, filter, start, () => {
          endings.delete(end);
          countOut(caller.tokenId);
        });
        endings.add(end);
        // The service may have stopped, or the client gone, while the start was looked up.
        if (closed || exchange.response.destroyed) end();
      } catch (error) {
        countOut(caller.tokenId);
        throw error;
      }
    },
  };
}

/** Sends events until the client leaves, its token is no longer valid, or the returned function is called. */
function follow(
  { feed, clock, log, authenticate, filterEvent, ping, stall }: StreamContext,
  { id, response, headers, address }: Exchange,
  caller: Caller,
  token: string,
  filter: EventFilter,
  start: Start,
  onEnd: () => void,
): () => void {
  let { last } = start;
  let ended = false;
  let hasNews = false;
  let wake = (): void => {};

  /** Resolves when `ready` returns true after a wake-up, or the stream ends. */
  const until = (ready: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      wake = () => {
        if (ended || ready()) resolve();
      };
      wake();
    });
  const notify = (): void => {
    hasNews = true;
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
  const unsubscribe = feed.subscribe(notify);
  const pinging = setInterval(() => {
    if (!response.writableNeedDrain) response.write(`: ping\n\n${positionFrame(last)}`);
    notify();
  }, ping);
  const expiring = setExpiry(caller, clock.now(), end);

  /** Sends `reset` if the next events of a slow client have been deleted, and continues at the oldest stored event. */
  const skipDeleted = async (): Promise<void> => {
    const oldest = await feed.oldest();
    if (last >= oldest - 1 || ended) return;
    response.write(resetFrame(oldest));
    last = oldest - 1;
  };

  const run = async (): Promise<void> => {
    while (!ended) {
      hasNews = false;
      const newest = await feed.newest();
      const rows = await feed.find(filter, { after: last }, batch);
      // The event of its deletion wakes the streams of a token. Checked after reading, so that this event is not sent.
      await authenticate(token, address);
      for (const row of rows) {
        const visible = caller.restriction === null ? row : filterEvent(caller, row);
        if (ended) return;
        if (visible !== null && !response.write(frame(visible))) await until(() => !response.writableNeedDrain);
        last = row.id;
      }
      if (rows.length === batch) await skipDeleted();
      else {
        last = Math.max(last, newest);
        await until(() => hasNews);
      }
    }
  };

  response.on("close", end).on("error", end);
  response.on("drain", () => wake());
  // A stream is the last response of its connection, so the connection closes with it.
  response.shouldKeepAlive = false;
  response.setTimeout(stall);
  response.writeHead(200, [...head(id, "text/event-stream"), ...headers]);
  response.write("retry: 2000\n\n");
  if (start.reset !== null) response.write(resetFrame(start.reset));
  response.write(positionFrame(last));
  run().then(end, (error: unknown) => {
    if (!(error instanceof ApiError)) log("error", "An event stream failed.", { request: id, error });
    end();
  });
  return end;
}

/** The longest delay of a timer in ms. Later expiry is found when the stream authenticates after a ping. */
const longestTimer = 2 ** 31 - 1;

function setExpiry(caller: Caller, now: number, end: () => void): NodeJS.Timeout | undefined {
  if (caller.expiresAt === null || caller.expiresAt - now > longestTimer) return undefined;
  return setTimeout(end, Math.max(0, caller.expiresAt - now));
}
