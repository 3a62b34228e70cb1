/**
 * Limits how many peers of one network are called at the same time. A responder accepts few unauthenticated initiators per address:
 * strongSwan requests a cookie from the fourth and drops the sixth (`cookie_threshold_ip`, `block_threshold`). Fifty tunnels to one peer
 * that start at once would wait for retransmissions, which collide again.
 */

/** A call to the peer of a tunnel. `place` starts it. */
export interface Call {
  readonly tunnel: number;
  readonly place: () => Promise<unknown>;
}

/** The queue of calls of one network. */
export interface Calls {
  /** Replaces the waiting calls by these, in this order, without those in progress. */
  replace(calls: readonly Call[]): void;
  /** Ends the call of a tunnel that is up or was refused by its peer, and starts the next. */
  over(tunnel: number): void;
}

/** Calls in progress at the same time, fewer than a peer accepts. */
const most = 2;
/** Milliseconds after which the next call starts even without a result: a peer that does not respond occupies no slot. */
const patience = 500;

/** Creates a queue of calls. It does not retry failed calls; the caller does. */
export function createCalls(): Calls {
  const placed = new Map<number, NodeJS.Timeout>();
  let waiting: readonly Call[] = [];

  const leave = (tunnel: number): void => {
    clearTimeout(placed.get(tunnel));
    if (placed.delete(tunnel)) next();
  };
  const next = (): void => {
    while (placed.size < most) {
      const [call, ...others] = waiting;
      if (call === undefined) return;
      waiting = others;
      placed.set(call.tunnel, setTimeout(() => leave(call.tunnel), patience).unref());
      call.place().catch(() => leave(call.tunnel));
    }
  };
  return {
    replace(calls) {
      waiting = calls.filter(({ tunnel }) => !placed.has(tunnel));
      next();
    },
    over(tunnel) {
      waiting = waiting.filter((call) => call.tunnel !== tunnel);
      leave(tunnel);
    },
  };
}
