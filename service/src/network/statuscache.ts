/**
 * How the networks stand on the machine at this moment, for reads and for the watch. Asking costs a look, so those who ask while one
 * is under way share the next one; nobody gets an answer that began before the question. Who asks for one network does not pay for
 * the others.
 */

import { coalesce } from "../base/coalesce.ts";
import type { NetworkStatus, Router, RouterStatus } from "../drivers/router/interface.ts";

export interface NetworkStatusCache {
  /** At all. Begins after the call; rejects when the router does not answer, for which many networks on a busy machine have time. */
  look(): Promise<RouterStatus>;
  /** One network, or null when the router does not answer soon or does not have it. */
  of(network: number): Promise<NetworkStatus | null>;
  /** Of the last look at all: the watch looks every few seconds. */
  last(): Pick<RouterStatus, "ready" | "detail">;
}

/** Milliseconds after which a router that says nothing of one network, or of all, counts as silent. */
const patience = 2000;
const longPatience = 30_000;

export function createNetworkStatusCache(router: Router): NetworkStatusCache {
  let last: Pick<RouterStatus, "ready" | "detail"> = { ready: true, detail: "not asked yet" };

  async function ask(): Promise<RouterStatus> {
    try {
      const status = await inTime(router.observe(), longPatience);
      last = status;
      return status;
    } catch (error) {
      last = { ready: false, detail: "the router does not answer" };
      throw error;
    }
  }

  const askers = new Map<number, () => Promise<RouterStatus>>();
  const askerOf = (network: number): (() => Promise<RouterStatus>) => {
    const asker =
      askers.get(network) ??
      coalesce(
        () => inTime(router.observe(network), patience),
        () => askers.delete(network),
      );
    askers.set(network, asker);
    return asker;
  };

  return {
    look: coalesce(ask),
    of: (network) =>
      askerOf(network)().then(
        ({ networks }) => networks.find(({ id }) => id === network) ?? null,
        () => null,
      ),
    last: () => last,
  };
}

async function inTime<T>(work: Promise<T>, limit: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the router did not answer within ${limit} ms`)), limit);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
