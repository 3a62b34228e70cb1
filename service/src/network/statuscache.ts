/**
 * The state of networks on the host, for API reads and the drift check. An observation is expensive, so calls during one share the
 * next one: no caller gets a state that was read before its call. One network can be observed without the others.
 */

import { coalesce } from "../base/coalesce.ts";
import { reasonOf } from "../base/reason.ts";
import { within } from "../base/within.ts";
import type { NetworkStatus, PortStatus, Router, RouterStatus } from "../drivers/router/interface.ts";

/** Shares observations of networks between requests. */
export interface NetworkStatusCache {
  /** Observes all networks, beginning after the call. Rejects if the router driver does not respond within 30 s. */
  observe(): Promise<RouterStatus>;
  /** Observes one network. `silent`: the router driver does not respond within 2 s; `absent`: it does not have the network (yet). */
  of(network: number): Promise<NetworkStatus | "silent" | "absent">;
  /** Observes one port of a network; null: the router driver does not respond within 2 s, or does not have the port. */
  portOf(network: number, port: number): Promise<PortStatus | null>;
  /** Returns the readiness at the last observation of all networks, which the drift check makes every 5 s. */
  last(): Pick<RouterStatus, "ready" | "detail">;
}

/** Milliseconds within which the router driver must respond: for one network, and for all. */
const oneTimeout = 2000;
const allTimeout = 30_000;

/** Creates the cache over the router driver of the host. */
export function createNetworkStatusCache(router: Router): NetworkStatusCache {
  let last: Pick<RouterStatus, "ready" | "detail"> = { ready: true, detail: "not checked yet" };

  async function observeAll(): Promise<RouterStatus> {
    try {
      const status = await inTime(router.observe(), allTimeout);
      const { ready, detail } = status;
      last = { ready, detail };
      return status;
    } catch (error) {
      last = { ready: false, detail: reasonOf(error) };
      throw error;
    }
  }

  const observers = new Map<number, () => Promise<RouterStatus>>();
  const observerOf = (network: number): (() => Promise<RouterStatus>) => {
    const observer =
      observers.get(network) ??
      coalesce(
        () => inTime(router.observe(network), oneTimeout),
        () => observers.delete(network),
      );
    observers.set(network, observer);
    return observer;
  };

  const of = (network: number): Promise<NetworkStatus | "silent" | "absent"> =>
    observerOf(network)().then(
      ({ networks }) => networks.find(({ id }) => id === network) ?? "absent",
      () => "silent",
    );

  return {
    observe: coalesce(observeAll),
    of,
    portOf: (network, port) => inTime(router.observePort(network, port), oneTimeout).catch(() => null),
    last: () => last,
  };
}

const late: unique symbol = Symbol("late");

/** Resolves as `work` does; rejects after `limit` milliseconds. */
async function inTime<T>(work: Promise<T>, limit: number): Promise<T> {
  const result = await within(work, limit, late);
  if (result === late) throw new Error(`the router did not respond within ${limit} ms`);
  return result;
}
