/**
 * Decides which datagrams are dropped when more come than the thread can answer. Answering them in order would make all of them late, so
 * the socket is emptied first: clients with many queries are dropped unread, and only known names are answered. A client is an address
 * with a port, so that a resolver with a new port for each query is not taken for a flood.
 */

import type { Queued } from "./mmsg.ts";

/** Datagrams without an empty socket in between after which the queue of the socket is measured: a few milliseconds of work. */
const BACKLOG = 512;
/** Bytes of the queue from which the thread is overloaded: about 600 queries. Clients that wait for responses keep it shorter. */
const QUEUE = 768 << 10;
/** Part of the receive buffer from which it is overloaded: the kernel of most hosts limits the buffer to less than `QUEUE`. */
const PART = 0.5;
/** Datagrams of one client that are read during an overload, until the socket is empty or `WINDOW_MS` have passed. */
const SHARE = 16;
const WINDOW_MS = 50;
const CLIENTS = 1 << 12;

/** The state of one socket. */
export interface Overload {
  /** Whether only known names are answered. */
  readonly isActive: boolean;
  /** Datagrams that were not answered. */
  readonly dropped: number;
  /** Adds datagrams that were received at once; `isEmpty`: no others wait. `now` in milliseconds, `queued` returns what waits. */
  received(count: number, isEmpty: boolean, now: number, queued: () => Queued): void;
  /** Counts a datagram of a client while active, and returns whether it is dropped. `client` is a hash of address and port. */
  drops(client: number): boolean;
  /** Counts a datagram that was read and is not answered. */
  drop(): void;
}

const isLong = ({ waiting, buffer }: Queued): boolean => waiting >= Math.min(QUEUE, buffer * PART);

/** Creates the state: not active. */
export function createOverload(): Overload {
  const counts = new Uint8Array(CLIENTS);
  let backlog = 0;
  let isActive = false;
  let since = 0;
  let dropped = 0;

  return {
    get isActive() {
      return isActive;
    },
    get dropped() {
      return dropped;
    },
    received(count, isEmpty, now, queued) {
      if (isEmpty) {
        backlog = 0;
        isActive = false;
        return;
      }
      backlog += count;
      if (backlog <= BACKLOG) return;
      if (!isActive && !isLong(queued())) {
        backlog = 0;
        return;
      }
      if (!isActive || now - since > WINDOW_MS) {
        counts.fill(0);
        since = now;
      }
      isActive = true;
    },
    drops(client) {
      const slot = (client ^ (client >>> 12)) & (CLIENTS - 1);
      const count = (counts[slot] as number) + 1;
      if (count > SHARE) {
        dropped++;
        return true;
      }
      counts[slot] = count;
      return false;
    },
    drop() {
      dropped++;
    },
  };
}
