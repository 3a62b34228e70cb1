/**
 * Brings a running charon from whatever it has loaded to the wish. What is loaded as it is wished stays untouched; of the rest, the
 * key is loaded last and unloaded first, so that where it is found, everything is, even after a crash in between.
 */
import { isIPv4 } from "node:net";
import type { Call, Calls } from "./calls.ts";
import { awaitHandshakes, isBusy, isLoaded, readAssociations, readLoaded, secretName } from "./charonstate.ts";
import { childrenMissing, createMemory, type Memory } from "./ipsecstatus.ts";
import type { IpsecTunnel } from "./port.ts";
import { connectionName, renderConnection, renderSecret } from "./strongswan.ts";
import type { Vici } from "./vici.ts";

export interface LoadOptions {
  /** The IPv4 address of a host name. */
  readonly lookup: (host: string) => Promise<string>;
  readonly random: (bytes: number) => Uint8Array;
  /** Of the network's tunnels; a tunnel that is set up anew gets a new one. */
  readonly memories: Map<number, Memory>;
  readonly calls: Calls;
}

async function unload(vici: Vici, id: number, secrets: readonly string[]): Promise<void> {
  for (const secret of secrets) await vici.call("unload-shared", { id: secret });
  // Both refuse when there is nothing to end.
  await vici.call("unload-conn", { name: connectionName(id) }).catch(() => {});
  await vici.call("terminate", { ike: connectionName(id), force: "yes", timeout: "-1" }).catch(() => {});
}

async function load(vici: Vici, tunnel: IpsecTunnel, edgeAddress: string, address: string | null, salt: string) {
  await vici.call("load-conn", renderConnection(tunnel, edgeAddress, address));
  await vici.call("load-shared", renderSecret(tunnel, secretName(tunnel, edgeAddress, salt)));
}

/**
 * Loads the whole wish, all tunnels of which are enabled, and has the peers of those that are down called. Resolves when charon knows
 * everything; rejects, after all others, with what charon says to tunnels that it refuses.
 */
export async function loadTunnels(
  vici: Vici,
  tunnels: readonly IpsecTunnel[],
  edgeAddress: string,
  { lookup, random, memories, calls }: LoadOptions,
): Promise<void> {
  const loaded = await readLoaded(vici);
  const associations = new Map(await readAssociations(vici));
  const refused: unknown[] = [];
  const due: Call[] = [];
  const memoryOf = (id: number): Memory => {
    const memory = memories.get(id) ?? createMemory();
    memories.set(id, memory);
    return memory;
  };
  const resolve = async ({ id, peer }: IpsecTunnel): Promise<string | null> => {
    if (peer === null || isIPv4(peer)) return peer;
    return lookup(peer).catch((error: unknown) => {
      const detail = `${peer} has no address: ${(error as Error).message}.`;
      memoryOf(id).reason = { fault: "peer_unreachable", detail };
      return null;
    });
  };

  const leaving = new Set(loaded.keys());
  for (const tunnel of tunnels) {
    const present = loaded.get(tunnel.id);
    if (present !== undefined && isLoaded(present, tunnel, edgeAddress)) leaving.delete(tunnel.id);
  }
  if (leaving.size > 0) await awaitHandshakes(vici, (id) => leaving.has(id));
  for (const [id, { secrets }] of loaded) {
    if (tunnels.some((tunnel) => tunnel.id === id)) continue;
    await unload(vici, id, secrets);
    memories.delete(id);
  }
  for (const tunnel of tunnels) {
    const { id } = tunnel;
    const present = loaded.get(id) ?? { secrets: [], peers: null };
    const unchanged = isLoaded(present, tunnel, edgeAddress);
    const missing = childrenMissing(tunnel, associations.get(id) ?? []);
    if (unchanged && missing.length === 0) continue;
    // Changed tunnels begin anew, as if nobody had known them.
    if (!unchanged && present.peers !== null) memories.delete(id);
    memoryOf(id);
    // A name is looked up for each new attempt, and only then.
    const address = await resolve(tunnel);
    const isNameless = tunnel.peer !== null && address === null;
    if (!unchanged || (!isNameless && present.peers?.[0] !== (address ?? "%any"))) {
      await unload(vici, id, present.secrets);
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
    const children = childrenMissing(tunnel, associations.get(id) ?? []);
    const ike = connectionName(id);
    const place = () => Promise.all(children.map((child) => vici.call("initiate", { ike, child, timeout: "-1" })));
    due.push({ tunnel: id, place });
  }
  calls.replace(due);
  if (refused.length > 0) throw new AggregateError(refused, (refused[0] as Error).message);
}
