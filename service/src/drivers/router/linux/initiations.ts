/**
 * Limits how many peers of one network we contact at the same time. A responder accepts few unauthenticated initiators per address:
 * strongSwan requests a cookie from the fourth and drops the sixth (`cookie_threshold_ip`, `block_threshold`). Fifty tunnels to one peer
 * that start at once would wait for retransmissions, which collide again.
 */

/** The initiation of a tunnel. `start` contacts its peer. */
export interface Initiation {
  readonly tunnel: number;
  readonly start: () => Promise<unknown>;
}

/** The queue of initiations of one network. */
export interface Initiations {
  /** Replaces the waiting initiations by these, in this order, without those that run. */
  replace(initiations: readonly Initiation[]): void;
  /** Ends the initiation of a tunnel that is up or was refused by its peer, and starts the next. */
  end(tunnel: number): void;
}

/** Initiations that run at the same time, fewer than a peer accepts. */
const most = 2;
/** Milliseconds after which the next one starts even without a result: a peer that does not respond occupies no slot. */
const patience = 500;

/** Creates a queue of initiations. It does not retry failed ones; the caller does. */
export function createInitiations(): Initiations {
  const running = new Map<number, NodeJS.Timeout>();
  let waiting: readonly Initiation[] = [];

  const free = (tunnel: number): void => {
    clearTimeout(running.get(tunnel));
    if (running.delete(tunnel)) next();
  };
  const next = (): void => {
    while (running.size < most) {
      const [initiation, ...others] = waiting;
      if (initiation === undefined) return;
      waiting = others;
      const { tunnel } = initiation;
      running.set(tunnel, setTimeout(() => free(tunnel), patience).unref());
      initiation.start().catch(() => free(tunnel));
    }
  };
  return {
    replace(initiations) {
      waiting = initiations.filter(({ tunnel }) => !running.has(tunnel));
      next();
    },
    end(tunnel) {
      waiting = waiting.filter((initiation) => initiation.tunnel !== tunnel);
      free(tunnel);
    },
  };
}
