/**
 * The WireGuard tunnels of all networks: per network that has any, one device in its namespace (`wireguarddevice.ts`), told what
 * differs from the wish. A device that goes with its process is made again with all its peers. A peer
 * may move: where it was last heard of counts more than where it was said to be, until it falls silent.
 */
import { existsSync } from "node:fs";
import { isIPv4 } from "node:net";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import { createSerialQueue, type SerialQueue } from "../../../base/serialqueue.ts";
import type { Exec } from "../../exec.ts";
import type { TunnelStatus, WireguardTunnel } from "../interface.ts";
import { ensureRoutes, removeRoutes } from "../ipsec/tunnelroutes.ts";
import { createKernel, createUserspace, type Kind, type Place } from "./device.ts";
import { type Handshake, isAlive, noteHandshake, type PeerHistory, splitEndpoint, statusOf } from "./status.ts";
import type { PeerState, WireguardDevice, WireguardPeer } from "./uapi.ts";

export interface WireguardEdge extends Place {
  readonly cidr: string;
}

/** The edge's own end. */
export interface WireguardEnd {
  readonly privateKey: string;
  readonly listenPort: number;
}

export interface WireguardOptions {
  readonly exec: Exec;
  /** Each namespace gets a folder in it. */
  readonly runFolder: string;
  /** Who holds the devices; a process for each by default. */
  readonly holder?: Kind;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that only ever grow evenly. */
  readonly steady?: () => number;
  /** The IPv4 address of a host name. */
  readonly lookup: (host: string) => Promise<string>;
  readonly log: Log;
}

export interface Wireguard {
  /** Makes the network's tunnels these, all of them; `end` null means none. Unchanged peers keep their sessions. */
  apply(edge: WireguardEdge, end: WireguardEnd | null, tunnels: readonly WireguardTunnel[]): Promise<void>;
  /** Nothing of WireGuard is left of the namespace. An unknown one is fine. */
  remove(edge: Pick<WireguardEdge, "namespace" | "device">): Promise<void>;
  /** Of all networks that were applied, or of one, by namespace, within about two seconds. */
  observe(namespace?: string): Promise<ReadonlyMap<string, readonly TunnelStatus[]>>;
  /** Forgets all; devices and tunnels go on. */
  close(): void;
}

/** The most that fits into WireGuard's packets over IPv4 and IPv6. */
export const wireguardMtu = 1420;
const routingTable = 221;
const retryAfter = 5000;
/** WireGuard itself calls again after five seconds. A peer that is set up a moment later has its tunnel within three. */
const callAfter = 2000;
const silenceAfter = 2000;

interface Net {
  edge: WireguardEdge;
  end: WireguardEnd | null;
  tunnels: readonly WireguardTunnel[];
  fault: string;
  readonly histories: Map<number, PeerHistory>;
  /** Of the peers that the device had when it was read last, by public key. */
  handshakes: ReadonlyMap<string, Handshake>;
  /** What each tunnel's endpoint was when it was last told to the device. */
  readonly configured: Map<number, string | null>;
  timer: NodeJS.Timeout | undefined;
  unwatch: () => void;
  readonly queue: SerialQueue;
}

const enabledOf = (net: Net): readonly WireguardTunnel[] =>
  net.end === null ? [] : net.tunnels.filter(({ enabled }) => enabled);

export function createWireguard(options: WireguardOptions): Wireguard {
  const { exec, runFolder, holder, now, steady = () => performance.now(), lookup, log } = options;
  const devices = holder === "kernel" ? createKernel(exec, runFolder) : createUserspace(exec, runFolder);
  const nets = new Map<string, Net>();
  const folderOf = (namespace: string): string => join(runFolder, namespace, "wireguard");

  const inTurn = <T>(net: Net, work: () => Promise<T>): Promise<T> => net.queue.run(work);

  const schedule = (net: Net, after: number): void => {
    clearTimeout(net.timer);
    if (nets.get(net.edge.namespace) !== net) return;
    net.timer = setTimeout(() => {
      inTurn(net, () => reconcile(net, true)).catch((error: unknown) =>
        log("warn", "WireGuard tunnels could not be set up; they are tried again", {
          namespace: net.edge.namespace,
          error,
        }),
      );
    }, after).unref();
  };

  const stop = async (place: Place): Promise<void> => {
    await devices.stop(place);
    await removeRoutes(exec, place.namespace, routingTable);
  };

  const read = async (net: Net, limit?: number): Promise<WireguardDevice<PeerState>> => {
    const device = await devices.read(net.edge, limit);
    const noted = device.peers.map(({ publicKey, lastHandshake }): [string, Handshake] => [
      publicKey,
      noteHandshake(net.handshakes.get(publicKey), lastHandshake, now(), steady()),
    ]);
    net.handshakes = new Map(noted);
    return device;
  };
  const isAlivePeer = (net: Net, { peerPublicKey }: WireguardTunnel): boolean =>
    isAlive(net.handshakes.get(peerPublicKey), steady());

  /** A name without an address leaves the endpoint as it is; it is looked up again. */
  const resolve = async (endpoint: string): Promise<string | null> => {
    const { host, port } = splitEndpoint(endpoint);
    if (isIPv4(host)) return endpoint;
    return lookup(host).then(
      (address) => `${address}:${port}`,
      () => null,
    );
  };

  const desiredPeer = async (
    net: Net,
    tunnel: WireguardTunnel,
    present: PeerState | undefined,
  ): Promise<WireguardPeer> => {
    const isTold = !net.configured.has(tunnel.id) || net.configured.get(tunnel.id) === tunnel.endpoint;
    const keep = isTold && present !== undefined && isAlivePeer(net, tunnel);
    return {
      publicKey: tunnel.peerPublicKey,
      presharedKey: tunnel.presharedKey,
      endpoint: keep || tunnel.endpoint === null ? (present?.endpoint ?? null) : await resolve(tunnel.endpoint),
      keepAlive: tunnel.keepAlive,
      allowed: tunnel.peerSubnets,
    };
  };

  const checkRoutes = (net: Net): Promise<unknown> => {
    const { namespace, cidr, device } = net.edge;
    const routes = enabledOf(net).flatMap(({ peerSubnets, mtu }) =>
      peerSubnets.map((subnet) => ({ subnet, mtu: Math.min(mtu, wireguardMtu) })),
    );
    return ensureRoutes(exec, { namespace, cidr, table: routingTable, device, routes });
  };

  /** `isAgain`: nothing was wished anew, time has passed. */
  const reconcile = async (net: Net, isAgain: boolean): Promise<void> => {
    const { edge, end } = net;
    if (nets.get(edge.namespace) !== net) return;
    net.unwatch();
    const desired = enabledOf(net);
    try {
      if (end === null || desired.length === 0) {
        await stop(edge);
        return;
      }
      let present = await read(net).catch(() => null);
      if (present === null) {
        await devices.start(edge);
        present = await read(net);
      }
      // A peer that is called and was never heard of is called anew, as if it were unknown.
      const isCalled = ({ endpoint, keepAlive, lastHandshake }: PeerState): boolean =>
        endpoint !== null && keepAlive > 0 && lastHandshake === null;
      // What was agreed under another key of this end is over, though the device still tells its handshakes.
      const isRekeyed = present.privateKey !== end.privateKey;
      const silent = present.peers.filter((peer) => isRekeyed || (isAgain && isCalled(peer)));
      if (silent.length > 0)
        await devices.forget(
          edge,
          silent.map(({ publicKey }) => publicKey),
        );
      const found = { ...present, peers: present.peers.filter((peer) => !silent.includes(peer)) };
      const peers = await Promise.all(
        desired.map((tunnel) =>
          desiredPeer(
            net,
            tunnel,
            found.peers.find(({ publicKey }) => publicKey === tunnel.peerPublicKey),
          ),
        ),
      );
      await devices.set(edge, { ...end, peers }, found);
      await exec.run(["ip", "-n", edge.namespace, "link", "set", edge.device, "mtu", String(wireguardMtu), "up"]);
      await checkRoutes(net);
      for (const { id, endpoint } of desired) net.configured.set(id, endpoint);
      net.fault = "";
      net.unwatch = devices.watch(edge, () => {
        log("warn", `${devices.name} ended and is started again`, { namespace: edge.namespace });
        schedule(net, 100);
      });
      const isNamed = (endpoint: string | null): boolean => endpoint !== null && !isIPv4(splitEndpoint(endpoint).host);
      const unreachable = desired.filter(
        (tunnel) =>
          !(isAlivePeer(net, tunnel) && found.peers.some(({ publicKey }) => publicKey === tunnel.peerPublicKey)),
      );
      if (unreachable.some(({ endpoint, keepAlive }) => endpoint !== null && keepAlive > 0)) schedule(net, callAfter);
      else if (unreachable.some(({ endpoint }) => isNamed(endpoint))) schedule(net, retryAfter);
    } catch (error) {
      net.fault = (error as Error).message;
      schedule(net, retryAfter);
      throw error;
    }
  };

  const observeNet = async (net: Net): Promise<readonly TunnelStatus[]> => {
    const asked =
      enabledOf(net).length === 0 ? null : await read(net, silenceAfter).catch((error: unknown) => error as Error);
    return net.tunnels.map((tunnel) => {
      const history = net.histories.get(tunnel.id) ?? { since: steady(), wasUp: false };
      net.histories.set(tunnel.id, history);
      const silence = net.fault || (asked instanceof Error ? asked.message : "The device does not know this peer yet.");
      const peers = asked === null || asked instanceof Error ? [] : asked.peers;
      const peer = peers.find(({ publicKey }) => publicKey === tunnel.peerPublicKey);
      const handshake = net.handshakes.get(tunnel.peerPublicKey);
      const reading = peer !== undefined && handshake !== undefined ? { peer, handshake } : silence;
      return statusOf(tunnel, reading, history, now(), steady());
    });
  };

  return {
    async apply(edge, end, tunnels) {
      const { namespace } = edge;
      // Most networks have no tunnels and never had.
      if (tunnels.length === 0 && !nets.has(namespace) && !existsSync(folderOf(namespace))) return;
      const known = nets.get(namespace);
      const net: Net = known ?? {
        edge,
        end,
        tunnels,
        fault: "",
        histories: new Map(),
        handshakes: new Map(),
        configured: new Map(),
        timer: undefined,
        unwatch: () => {},
        queue: createSerialQueue(),
      };
      nets.set(namespace, net);
      await inTurn(net, async () => {
        const before = new Map(net.tunnels.map((tunnel) => [tunnel.id, JSON.stringify(tunnel)]));
        Object.assign(net, { edge, end, tunnels });
        for (const id of [...net.histories.keys(), ...net.configured.keys()])
          if (!tunnels.some((tunnel) => tunnel.id === id)) {
            net.histories.delete(id);
            net.configured.delete(id);
          }
        for (const tunnel of tunnels)
          if (known === undefined || before.get(tunnel.id) !== JSON.stringify(tunnel))
            net.histories.set(tunnel.id, { since: steady(), wasUp: false });
        await reconcile(net, false);
        if (tunnels.length === 0) nets.delete(namespace);
      });
    },
    async remove({ namespace, device }) {
      const net = nets.get(namespace);
      if (net === undefined && !existsSync(folderOf(namespace))) return;
      nets.delete(namespace);
      clearTimeout(net?.timer);
      net?.unwatch();
      await net?.queue.settle();
      await stop({ namespace, device });
    },
    async observe(only) {
      const asked = [...nets].filter(([namespace]) => only === undefined || namespace === only);
      const all = await Promise.all(asked.map(async ([namespace, net]) => [namespace, await observeNet(net)] as const));
      return new Map(all);
    },
    close() {
      for (const net of nets.values()) {
        clearTimeout(net.timer);
        net.unwatch();
      }
      nets.clear();
    },
  };
}
