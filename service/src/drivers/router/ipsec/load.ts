/**
 * Brings a running charon to the desired tunnels. Tunnels that are loaded unchanged are not touched. For others the key is loaded last and
 * unloaded first, so that a loaded key proves that the tunnel is complete, even after a crash in between.
 */
import { isIPv4 } from "node:net";
import type { IpsecTunnel } from "../interface.ts";
import type { Initiation, Initiations } from "../linux/initiations.ts";
import { awaitHandshakes, isBusy, isLoaded, type Loaded, readAssociations, readLoaded, secretName } from "./state.ts";
import { childrenMissing, childrenNarrowed, createTunnelHistory, type TunnelHistory } from "./status.ts";
import { childrenOf, connectionName, renderConnection, renderSecret } from "./strongswan.ts";
import type { Message, Vici } from "./vici.ts";

/** Options of `loadTunnels`. */
export interface LoadOptions {
  /** Resolves a host name to an IPv4 address. All tunnels wait for it, so it must reject soon. */
  readonly lookup: (host: string) => Promise<string>;
  readonly random: (bytes: number) => Uint8Array;
  /** Histories of the network's tunnels; a changed tunnel gets a new one. */
  readonly histories: Map<number, TunnelHistory>;
  readonly initiations: Initiations;
  /** Milliseconds until the first new attempt with a peer that refused our networks. */
  readonly retryAfter: number;
  /** Milliseconds that all removed tunnels together wait at most for handshakes in progress. */
  readonly handshakeLimit: number;
  /** A monotonic clock in milliseconds. */
  readonly steady: () => number;
}

/** Returns the pause in milliseconds after that many refusals: constant for the first five, then doubled each time up to 30 times. */
const pauseAfter = (refusals: number, retryAfter: number): number =>
  retryAfter * Math.min(2 ** Math.max(0, refusals - 5), 30);

/** Milliseconds that a peer gets to confirm the end of an association. */
const terminateTimeout = "500";

/**
 * Ends children that the peer narrowed. A peer may keep the networks with which the association began, so the association ends too, unless
 * another child of it covers its networks completely. Returns whether the association ended.
 */
async function endNarrowed(vici: Vici, tunnel: IpsecTunnel, associations: readonly Message[]): Promise<boolean> {
  const narrowed = childrenNarrowed(tunnel, associations);
  const ike = connectionName(tunnel.id);
  const isServed = childrenOf(tunnel).length > narrowed.length + childrenMissing(tunnel, associations).length;
  const targets = isServed ? narrowed.map((child) => ({ ike, child })) : [{ ike }];
  // Fails for one that has ended meanwhile.
  for (const target of targets)
    await vici.call("terminate", { ...target, force: "yes", timeout: terminateTimeout }).catch(() => {});
  return !isServed;
}

/** Ends a tunnel, after its handshake if one is in progress; waits at most `limit` milliseconds from `since`. */
async function unload(
  vici: Vici,
  id: number,
  secrets: readonly string[],
  { since, limit }: { readonly since: number; readonly limit: number },
): Promise<void> {
  await awaitHandshakes(vici, (each) => each === id, since, limit);
  for (const secret of secrets) await vici.call("unload-shared", { id: secret });
  // Both commands fail when there is nothing to end.
  await vici.call("unload-conn", { name: connectionName(id) }).catch(() => {});
  await vici.call("terminate", { ike: connectionName(id), force: "yes", timeout: "-1" }).catch(() => {});
}

async function load(vici: Vici, tunnel: IpsecTunnel, edgeAddress: string, address: string | null, salt: string) {
  await vici.call("load-conn", renderConnection(tunnel, edgeAddress, address));
  await vici.call("load-shared", renderSecret(tunnel, secretName(tunnel, edgeAddress, salt)));
}

/** A tunnel that must be loaded, or whose peer must be contacted. */
interface Attempt {
  readonly tunnel: IpsecTunnel;
  /** What charon has loaded of it. */
  readonly present: Loaded;
  /** Whether it is loaded as desired. */
  readonly unchanged: boolean;
  /** Its associations. */
  readonly up: readonly Message[];
  /** Names of its children that the peer narrowed. */
  readonly narrowed: readonly string[];
  /** Whether the peer refused our networks. */
  readonly isRefused: boolean;
}

/**
 * Loads the desired tunnels (all enabled) and queues initiations of those that are down. Resolves when charon has the configuration.
 * Rejects with charon's error if it refused a tunnel, after all others are loaded.
 */
export async function loadTunnels(
  vici: Vici,
  tunnels: readonly IpsecTunnel[],
  edgeAddress: string,
  { lookup, random, histories, initiations, retryAfter, handshakeLimit, steady }: LoadOptions,
): Promise<void> {
  const loaded = await readLoaded(vici);
  const associations = new Map(await readAssociations(vici));
  const refused: unknown[] = [];
  const due: Initiation[] = [];
  const historyOf = (id: number): TunnelHistory => {
    const history = histories.get(id) ?? createTunnelHistory();
    histories.set(id, history);
    return history;
  };
  const resolve = async ({ id, peer }: IpsecTunnel): Promise<string | null> => {
    if (peer === null || isIPv4(peer)) return peer;
    return lookup(peer).catch((error: unknown) => {
      const detail = `${peer} has no address: ${(error as Error).message}.`;
      historyOf(id).reason = { fault: "peer_unreachable", detail };
      return null;
    });
  };

  const leaving = new Set(loaded.keys());
  for (const tunnel of tunnels) {
    const present = loaded.get(tunnel.id);
    if (present !== undefined && isLoaded(present, tunnel, edgeAddress)) leaving.delete(tunnel.id);
  }
  // What is needed is queued again below; until then no new handshake begins.
  if (leaving.size > 0) initiations.replace([]);
  const patience = { since: performance.now(), limit: handshakeLimit };
  for (const [id, { secrets }] of loaded) {
    if (tunnels.some((tunnel) => tunnel.id === id)) continue;
    await unload(vici, id, secrets, patience);
    histories.delete(id);
  }
  const attempts: Attempt[] = [];
  for (const tunnel of tunnels) {
    const { id } = tunnel;
    const present = loaded.get(id) ?? { secrets: [], peers: null };
    const unchanged = isLoaded(present, tunnel, edgeAddress);
    const up = associations.get(id) ?? [];
    const narrowed = unchanged ? childrenNarrowed(tunnel, up) : [];
    if (unchanged && childrenMissing(tunnel, up).length + narrowed.length === 0) continue;
    // A changed tunnel starts with an empty history, in which its present associations do not count.
    if (!unchanged && present.peers !== null) histories.set(id, createTunnelHistory(up));
    const history = historyOf(id);
    const isRefused = unchanged && (narrowed.length > 0 || history.reason?.fault === "selectors_refused");
    if (isRefused && (tunnel.peer === null || isBusy(up) || steady() < history.due)) continue;
    if (isRefused) {
      history.due = steady() + pauseAfter(history.refusals++, retryAfter);
      initiations.end(id);
    }
    attempts.push({ tunnel, present, unchanged, up, narrowed, isRefused });
  }
  // A name is resolved for each new attempt, and only then. All at once, since each can take as long as a resolver waits.
  const addresses = await Promise.all(attempts.map(({ tunnel }) => resolve(tunnel)));
  for (const [index, { tunnel, present, unchanged, up, narrowed, isRefused }] of attempts.entries()) {
    const { id } = tunnel;
    const address = addresses[index] ?? null;
    const isNameless = tunnel.peer !== null && address === null;
    if (!unchanged || (!isNameless && present.peers?.[0] !== (address ?? "%any"))) {
      await unload(vici, id, present.secrets, patience);
      associations.delete(id);
      if (isNameless) continue;
      try {
        await load(vici, tunnel, edgeAddress, address, Buffer.from(random(8)).toString("hex"));
      } catch (error) {
        refused.push(error);
        continue;
      }
    }
    if (address === null || isBusy(associations.get(id) ?? [])) continue;
    if (isRefused && associations.has(id) && (await endNarrowed(vici, tunnel, up))) associations.delete(id);
    const children = [
      ...childrenMissing(tunnel, associations.get(id) ?? []),
      ...(associations.has(id) ? narrowed : []),
    ];
    const ike = connectionName(id);
    const start = () => Promise.all(children.map((child) => vici.call("initiate", { ike, child, timeout: "-1" })));
    due.push({ tunnel: id, start });
  }
  initiations.replace(due);
  if (refused.length > 0) throw new AggregateError(refused, (refused[0] as Error).message);
}
