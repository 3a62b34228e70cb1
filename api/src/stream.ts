/**
 * Reads the event stream (WHATWG HTML, section 9.2 "Server-sent events") and resumes it after a lost connection. `EventSource` of
 * browsers cannot send a token, and Node has none.
 */
import type { Event } from "./event.ts";
import { ApiError, isPassing, type Transport } from "./transport.ts";

/** Returned by the stream if events after the requested one are no longer stored: read the lists again. */
export interface Reset {
  readonly Type: "reset";
  /** Id of the oldest stored event. */
  readonly Oldest: number;
}

/** Options of an event stream. */
export interface StreamOptions {
  /** Start with the first event after this event id. Default: the next event. */
  readonly after?: number;
  /** Event types: `["domain.*", "record.created"]`. Default: all. */
  readonly types?: readonly string[];
  /** Objects: `["domain:3"]`. Default: all. */
  readonly resources?: readonly string[];
  /** Ends the stream. */
  readonly signal?: AbortSignal;
}

/** One frame of an event stream. */
export interface Frame {
  /** Last event id of the stream so far; null: none. */
  readonly id: string | null;
  readonly event: string;
  /** Data of the frame. Empty if the frame has only an id or a retry time. */
  readonly data: string;
  /** Reconnection time in milliseconds, if the frame sets it. */
  readonly retry: number | null;
}

/** The service sends a ping every 15 s. After three missed pings the connection counts as lost. */
const longestSilence = 45_000;
const longestPause = 60_000;

/** Returns a function that takes the next piece of text and returns the frames that it completes. */
export function createFrameReader(): (piece: string) => Frame[] {
  let rest = "";
  let id: string | null = null;
  let event = "";
  let data: string[] = [];
  let retry: number | null = null;
  let isEmpty = true;

  function take(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "id" && !value.includes("\0")) id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
    else if (name === "retry" && /^\d+$/.test(value)) retry = Number(value);
    else return;
    isEmpty = false;
  }

  return (piece) => {
    rest += piece;
    // A CR at the end may be the first half of a CRLF that is not complete yet.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    const frames: Frame[] = [];
    for (const line of lines) {
      if (line !== "") take(line);
      else if (!isEmpty) {
        frames.push({ id, event: event || "message", data: data.join("\n"), retry });
        event = "";
        data = [];
        retry = null;
        isEmpty = true;
      }
    }
    return frames;
  };
}

/**
 * Yields the frames of a response, those of one piece together. Ends with the response, or if nothing has arrived for 45 s. Throws an error
 * of the connection.
 */
export async function* readFrames({ body }: Response, sleep: Transport["sleep"]): AsyncGenerator<Frame[], void> {
  if (!body) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const push = createFrameReader();
  try {
    for (;;) {
      const received = new AbortController();
      const timeout = sleep(longestSilence, received.signal).then(
        () => null,
        () => null,
      );
      const chunk = await Promise.race([reader.read(), timeout]).finally(() => received.abort());
      if (chunk === null || chunk.done) return;
      yield push(decoder.decode(chunk.value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function writeQuery({ types, resources }: StreamOptions): string {
  const query = new URLSearchParams();
  if (types && types.length > 0) query.set("type", types.join(","));
  if (resources && resources.length > 0) query.set("resource", resources.join(","));
  return query.size > 0 ? `?${query}` : "";
}

/**
 * Streams events. Ends when the signal aborts. Throws an error that a retry cannot solve (a deleted token), and an error that prevents
 * the first connection after all retries. Once connected, it reconnects without a time limit.
 */
export async function* follow(
  path: string,
  transport: Transport,
  options: StreamOptions,
): AsyncGenerator<Event | Reset, void> {
  const { signal } = options;
  let last = options.after ?? null;
  let pause = 2000;
  let failures = 0;
  let wasOpen = false;
  while (!signal?.aborted) {
    const left = new AbortController();
    try {
      const response = await transport.open({
        method: "GET",
        target: path + writeQuery(options),
        headers: { Accept: "text/event-stream", ...(last !== null && { "Last-Event-ID": String(last) }) },
        signal: signal ? AbortSignal.any([signal, left.signal]) : left.signal,
      });
      wasOpen = true;
      failures = 0;
      for await (const frames of readFrames(response, transport.sleep))
        for (const { id, event, data, retry } of frames) {
          pause = retry ?? pause;
          if (event === "reset") {
            const { Oldest } = JSON.parse(data) as { Oldest: number };
            yield { Type: "reset", Oldest };
            last = Oldest - 1;
            continue;
          }
          const number = id === null || !/^\d+$/.test(id) ? null : Number(id);
          if (data !== "" && (number === null || last === null || number > last)) yield JSON.parse(data) as Event;
          last = number ?? last;
        }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof ApiError && !isPassing(error)) throw error;
      if (!wasOpen && failures >= transport.retries) throw error;
      failures++;
    } finally {
      left.abort();
    }
    await transport.sleep(Math.min(pause + transport.pause(failures), longestPause), signal).catch(() => undefined);
  }
}
