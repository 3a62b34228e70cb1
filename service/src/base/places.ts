/**
 * Places for connections that anybody may open. A limit that refuses newcomers lets the first comer lock out all others; so a newcomer
 * always gets in, and the connection that has been idle longest leaves for it: one of the newcomer's own network when that
 * has its full share, else one of the network that has most.
 */

export interface PlaceLimits {
  readonly total: number;
  /** Of one network (/24, /56). */
  readonly perNetwork: number;
}

export interface Places<T> {
  /** Takes a place for the item, and returns the item that has to leave for it (it holds no place any more), or null. */
  enter(item: T, network: number): T | null;
  /** The item was active: it is now the last of its network to leave. */
  touch(item: T): void;
  leave(item: T): void;
  /** All items, in no order. */
  all(): Iterable<T>;
  /** Three quarters of the places are taken. */
  isCrowded(): boolean;
}

interface Seat {
  readonly network: number;
  /** Grows with each activity of any item. */
  turn: number;
}

export function createPlaces<T>({ total, perNetwork }: PlaceLimits): Places<T> {
  const seats = new Map<T, Seat>();
  /** Items of each network, the idlest first. */
  const networks = new Map<number, Set<T>>();
  let turn = 0;

  const idlestOf = (items: ReadonlySet<T>): T => items.values().next().value as T;
  const lastTurn = (items: ReadonlySet<T>): number => (seats.get(idlestOf(items)) as Seat).turn;

  /** At most as many steps as there are places, and only when all are taken. */
  const largest = (): ReadonlySet<T> => {
    let found: ReadonlySet<T> = new Set();
    for (const items of networks.values()) {
      const isWorse = items.size === found.size && lastTurn(items) < lastTurn(found);
      if (items.size > found.size || isWorse) found = items;
    }
    return found;
  };

  const leave = (item: T): void => {
    const seat = seats.get(item);
    if (seat === undefined) return;
    seats.delete(item);
    const items = networks.get(seat.network);
    items?.delete(item);
    if (items?.size === 0) networks.delete(seat.network);
  };

  return {
    enter(item, network) {
      const own = networks.get(network);
      let crowd: ReadonlySet<T> | null = null;
      if (own !== undefined && own.size >= perNetwork) crowd = own;
      else if (seats.size >= total) crowd = largest();
      const victim = crowd === null ? null : idlestOf(crowd);
      if (victim !== null) leave(victim);
      seats.set(item, { network, turn: ++turn });
      const items = networks.get(network);
      if (items === undefined) networks.set(network, new Set([item]));
      else items.add(item);
      return victim;
    },
    touch(item) {
      const seat = seats.get(item);
      if (seat === undefined) return;
      seat.turn = ++turn;
      const items = networks.get(seat.network) as Set<T>;
      items.delete(item);
      items.add(item);
    },
    leave,
    all: () => seats.keys(),
    isCrowded: () => seats.size * 4 >= total * 3,
  };
}
