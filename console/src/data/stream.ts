/**
 * One event stream for all tabs of a browser that are signed in with the same token. The tab that holds the lock reads the stream and passes the events to the others by a
 * channel. When it closes, the next tab continues after the last event that it has received. Without locks (a page without TLS) every tab
 * reads its own stream.
 */

import { ApiError } from "@brume/api/client.ts";
import type { Event } from "@brume/api/event.ts";
import { type Frame, readFrames } from "@brume/api/stream.ts";
import { sleepFor } from "@brume/api/transport.ts";
import { createBatches } from "./batch.ts";
import { type Cell, createCell } from "./cell.ts";
import { openStream } from "./client.ts";

/** `lost`: no event arrives now. */
export type Connection = "connecting" | "open" | "lost";

export interface EventStream {
  readonly connection: Cell<Connection>;
  /** Tries to connect now instead of after the pause. */
  retry(): void;
  close(): void;
}

interface StreamOptions {
  /** Id of the token that is signed in. Tabs of another token get other events. */
  readonly token: number;
  /** Id of the event that the first reads contain; null: unknown. */
  readonly after: number | null;
  /** Resolves to the id of the newest event; null: it cannot be read. */
  readonly readNewest: () => Promise<number | null>;
  readonly onEvents: (events: readonly Event[]) => void;
  /** Events may be missing: everything must be read again. */
  readonly onGap: () => void;
  readonly onSignedOut: () => void;
}

type Message =
  | { readonly kind: "events"; readonly events: readonly Event[] }
  | { readonly kind: "state"; readonly state: Connection }
  | { readonly kind: "gap"; readonly last: number | null }
  | { readonly kind: "retry" };

const longestPause = 15_000;

/** Starts the stream. Events are passed on together, see `batch.ts`. */
export function startStream({ token, after, readNewest, onEvents, onGap, onSignedOut }: StreamOptions): EventStream {
  const connection = createCell<Connection>("connecting");
  const closing = new AbortController();
  const lockName = `brume-events-${token}`;
  const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel(lockName) : null;
  let last = after;
  let wake = (): void => {};

  const collect = createBatches(onEvents, requestAnimationFrame);
  const take = (events: readonly Event[]): void => {
    for (const event of events) {
      if (last !== null && event.ID <= last) continue;
      collect(event);
      last = event.ID;
    }
  };
  const show = (state: Connection): void => {
    connection.set(state);
    channel?.postMessage({ kind: "state", state } satisfies Message);
  };
  const gap = (): void => {
    onGap();
    channel?.postMessage({ kind: "gap", last } satisfies Message);
  };

  async function push(frames: readonly Frame[]): Promise<void> {
    const events: Event[] = [];
    for (const { event, data, id } of frames) {
      if (event === "reset") {
        // The stream begins again with the oldest event. What is read again contains all of them until now.
        const { Oldest } = JSON.parse(data) as { Oldest: number };
        last = Math.max(Oldest - 1, (await readNewest()) ?? 0);
        gap();
      } else if (data !== "" && id !== null) events.push(JSON.parse(data) as Event);
    }
    take(events);
    // The service also sends the position of the stream alone. Without it, the stream would continue at the last event that this token may read.
    const position = Number(frames.at(-1)?.id ?? Number.NaN);
    if (position > (last ?? -1)) last = position;
    if (events.length > 0) channel?.postMessage({ kind: "events", events } satisfies Message);
  }

  /** Reads the stream until the page closes; reconnects with growing pauses. */
  async function lead(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; failures++) {
      try {
        const response = await openStream(last, closing.signal);
        // Without a last event, changes since the first reads are unknown.
        if (last === null) gap();
        failures = 0;
        show("open");
        for await (const frames of readFrames(response, sleepFor)) await push(frames);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) return onSignedOut();
      }
      if (closing.signal.aborted) return;
      show("lost");
      const pause = Math.min(longestPause, 500 * 2 ** failures) * (0.75 + Math.random() / 2);
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, pause);
      });
    }
  }

  /** Leads at once, or follows the tab that does until it closes. */
  async function join(locks: LockManager): Promise<void> {
    let isTaken = false;
    await locks.request(lockName, { ifAvailable: true }, (lock) => {
      if (lock !== null) return lead();
      isTaken = true;
      return undefined;
    });
    if (!isTaken || closing.signal.aborted) return;
    if (connection.get() === "connecting") connection.set("open");
    locks.request(lockName, { signal: closing.signal }, lead).catch(() => undefined);
    // Before the channel was open, the other tab may have passed on events that the first reads do not contain.
    const newest = await readNewest();
    if (closing.signal.aborted || (newest !== null && newest === after)) return;
    if (last === after) last = newest;
    onGap();
  }

  const onMessage = ({ data }: MessageEvent<Message>): void => {
    if (data.kind === "events") take(data.events);
    else if (data.kind === "state") connection.set(data.state);
    else if (data.kind === "retry") wake();
    else {
      // Lower than before if the service has an older copy of the database.
      last = data.last;
      onGap();
    }
  };
  channel?.addEventListener("message", onMessage);
  const online = (): void => wake();
  addEventListener("online", online);

  const { locks } = navigator as { readonly locks?: LockManager };
  if (locks === undefined) void lead();
  else join(locks).catch(() => undefined);
  return {
    connection,
    retry() {
      wake();
      channel?.postMessage({ kind: "retry" } satisfies Message);
    },
    close() {
      closing.abort();
      wake();
      removeEventListener("online", online);
      channel?.close();
    },
  };
}
