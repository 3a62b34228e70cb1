/**
 * Limits connections that any client may open. A limit that refuses new connections lets one client lock out all others. So a new
 * connection is always accepted, and the connection that was idle longest is evicted: one of the same network if that has reached its
 * limit, else one of the network with the most connections.
 */

/** How many items may exist at once. */
export interface PlaceLimits {
  readonly total: number;
  /** Limit of one network (/24 of IPv4, /56 of IPv6). */
  readonly perNetwork: number;
}

/** A limited set, such as the connections of a server. A new item evicts an idle one of the network that has most. */
export interface Places<T> {
  /** Adds the item. Returns the item that was evicted for it, or null. `network` comes from `networkOf`. */
  enter(item: T, network: number): T | null;
  /** Records activity of the item: it is now the last of its network to be evicted. */
  touch(item: T): void;
  /** Removes the item. No effect if it is not there. */
  leave(item: T): void;
  /** Returns all items, in no order. */
  all(): Iterable<T>;
  /** Returns whether three quarters of the places are taken. */
  isCrowded(): boolean;
}

interface Place {
  readonly network: number;
  /** Number of the last activity, counted over all items. */
  activity: number;
}

export function createPlaces<T>({ total, perNetwork }: PlaceLimits): Places<T> {
  const places = new Map<T, Place>();
  /** Items of each network, the longest idle first. */
  const networks = new Map<number, Set<T>>();
  let activity = 0;

  const idlestOf = (items: ReadonlySet<T>): T => items.values().next().value as T;
  const lastActivity = (items: ReadonlySet<T>): number => (places.get(idlestOf(items)) as Place).activity;

  /** Returns the items of the network with the most items. Linear, and called only when all places are taken. */
  const largest = (): ReadonlySet<T> => {
    let found: ReadonlySet<T> = new Set();
    for (const items of networks.values()) {
      const isWorse = items.size === found.size && lastActivity(items) < lastActivity(found);
      if (items.size > found.size || isWorse) found = items;
    }
    return found;
  };

  const leave = (item: T): void => {
    const place = places.get(item);
    if (place === undefined) return;
    places.delete(item);
    const items = networks.get(place.network);
    items?.delete(item);
    if (items?.size === 0) networks.delete(place.network);
  };

  return {
    enter(item, network) {
      const ofNetwork = networks.get(network);
      let full: ReadonlySet<T> | null = null;
      if (ofNetwork !== undefined && ofNetwork.size >= perNetwork) full = ofNetwork;
      else if (places.size >= total) full = largest();
      const victim = full === null ? null : idlestOf(full);
      if (victim !== null) leave(victim);
      places.set(item, { network, activity: ++activity });
      const items = networks.get(network);
      if (items === undefined) networks.set(network, new Set([item]));
      else items.add(item);
      return victim;
    },
    touch(item) {
      const place = places.get(item);
      if (place === undefined) return;
      place.activity = ++activity;
      const items = networks.get(place.network) as Set<T>;
      items.delete(item);
      items.add(item);
    },
    leave,
    all: () => places.keys(),
    isCrowded: () => places.size * 4 >= total * 3,
  };
}
