/**
 * Calls the peers of one network a few at a time. Who is called holds little for callers who have not yet proved who they are:
 * strongSwan asks the fourth of one address to come again with a cookie and drops the sixth in silence (`cookie_threshold_ip`,
 * `block_threshold`). Fifty tunnels to one peer that are called all at once wait for retransmissions, which collide again.
 */

export interface Call {
  readonly tunnel: number;
  readonly place: () => Promise<unknown>;
}

export interface Calls {
  /** From now on these are to be placed, in this order, unless they just were; those that still waited are not. */
  replace(calls: readonly Call[]): void;
  /** A tunnel is up, whoever called, or its peer refused it: another may be called instead. */
  over(tunnel: number): void;
}

/** At once; fewer than a peer takes. */
const most = 2;
/** Milliseconds after which another is called whether or not there was an answer: a peer that is silent holds nothing either. */
const patience = 500;

/** Calls that fail are for the caller to place again. */
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
