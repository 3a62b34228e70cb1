/**
 * Manages the WireGuard tunnels of all networks: one device per network with tunnels (`device.ts`), to which only differences are sent. A
 * device that ends with its process is created again with all its peers. A peer may change its address: the address of its last packets is
 * used instead of the configured endpoint, until the peer stops responding.
 */
import { existsSync } from "node:fs";
import { isIPv4 } from "node:net";
import { join } from "node:path";
import type { Log } from "../../../base/log.ts";
import { createSerialQueue, type SerialQueue } from "../../../base/serialqueue.ts";
import type { Exec } from "../../exec.ts";
import type { TunnelStatus, WireguardTunnel } from "../interface.ts";
import { ensureRoutes, removeRoutes } from "../ipsec/tunnelroutes.ts";
import { createKernel, createUserspace, type DeviceKind, type DevicePlace } from "./device.ts";
import { type Handshake, isAlive, noteHandshake, type PeerHistory, splitEndpoint, statusOf } from "./status.ts";
import type { PeerState, WireguardDevice, WireguardPeer } from "./uapi.ts";

/** The edge of a network: its device and its IPv4 block. */
export interface WireguardEdge extends DevicePlace {
  readonly cidr: string;
}

/** Private key (base64) and UDP port of the edge. */
export interface WireguardEnd {
  readonly privateKey: string;
  readonly listenPort: number;
}

/** Options of `createWireguard`. */
export interface WireguardOptions {
  readonly exec: Exec;
  /** Parent folder for the files of each namespace. */
  readonly runFolder: string;
  /** Kind of the devices, `userspace` by default. */
  readonly holder?: DeviceKind;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** A monotonic clock in milliseconds. */
  readonly steady?: () => number;
  /** Resolves a host name to an IPv4 address. */
  readonly lookup: (host: string) => Promise<string>;
  readonly log: Log;
}

/** The driver of all WireGuard tunnels. */
export interface Wireguard {
  /**
   * Brings the network's tunnels to exactly these; `end` null means none. Sessions of unchanged peers continue. Rejects when the device
   * cannot be configured, and then retries.
   */
  apply(edge: WireguardEdge, end: WireguardEnd | null, tunnels: readonly WireguardTunnel[]): Promise<void>;
  /** Removes all of WireGuard from the namespace. An unknown namespace is ignored. */
  remove(edge: Pick<WireguardEdge, "namespace" | "device">): Promise<void>;
  /** Returns tunnel statuses by namespace, of all applied networks or of one, within about two seconds. */
  observe(namespace?: string): Promise<ReadonlyMap<string, readonly TunnelStatus[]>>;
  /** Ends the driver; devices and tunnels stay up. */
  close(): void;
}

/** The largest packet in bytes that fits into WireGuard's packets over IPv4 and IPv6. */
const wireguardMtu = 1420;
const routingTable = 221;
const retryAfter = 5000;
/** WireGuard repeats a handshake after five seconds. With this pause a peer that is configured a moment later is connected within three. */
const callAfter = 2000;
const silenceAfter = 2000;

interface Net {
  edge: WireguardEdge;
  end: WireguardEnd | null;
  tunnels: readonly WireguardTunnel[];
  failure: string;
  readonly histories: Map<number, PeerHistory>;
  /** Handshakes of the peers that the device had when it was last read, by public key. */
  handshakes: ReadonlyMap<string, Handshake>;
  /** The endpoint of each tunnel when the device was last configured. */
  readonly configured: Map<number, string | null>;
  timer: NodeJS.Timeout | undefined;
  unwatch: () => void;
  readonly queue: SerialQueue;
}

const enabledOf = (net: Net): readonly WireguardTunnel[] =>
  net.end === null ? [] : net.tunnels.filter(({ enabled }) => enabled);

/** Creates the driver. */
export function createWireguard(options: WireguardOptions): Wireguard {
  const { exec, runFolder, holder, now, steady = () => performance.now(), lookup, log } = options;
  const devices = holder === "kernel" ? createKernel(exec, runFolder) : createUserspace(exec, runFolder);
  const nets = new Map<string, Net>();
  const folderOf = (namespace: string): string => join(runFolder, namespace, "wireguard");

  const enqueue = <T>(net: Net, work: () => Promise<T>): Promise<T> => net.queue.run(work);

  const schedule = (net: Net, after: number): void => {
    clearTimeout(net.timer);
    if (nets.get(net.edge.namespace) !== net) return;
    net.timer = setTimeout(() => {
      enqueue(net, () => reconcile(net, true)).catch((error: unknown) =>
        log("warn", "Could not configure WireGuard tunnels; will retry", {
          namespace: net.edge.namespace,
          error,
        }),
      );
    }, after).unref();
  };

  const stop = async (place: DevicePlace): Promise<void> => {
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

  /**
   * Resolves an endpoint to `address:port`. Null when the name has no address: the endpoint then stays, and the name is resolved again
   * later.
   */
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
    const isUnchanged = !net.configured.has(tunnel.id) || net.configured.get(tunnel.id) === tunnel.endpoint;
    const keep = isUnchanged && present !== undefined && isAlivePeer(net, tunnel);
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

  /** Brings the device to the desired state. `isAgain`: this is a retry, not a new spec. */
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
      // A peer that never completed a handshake is removed and added again, so that WireGuard starts a new handshake.
      const isCalled = ({ endpoint, keepAlive, lastHandshake }: PeerState): boolean =>
        endpoint !== null && keepAlive > 0 && lastHandshake === null;
      // Sessions under another key of this end are over, although the device still reports their handshakes.
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
      net.failure = "";
      net.unwatch = devices.watch(edge, () => {
        log("warn", `${devices.name} ended; starting it again`, { namespace: edge.namespace });
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
      net.failure = (error as Error).message;
      schedule(net, retryAfter);
      throw error;
    }
  };

  const observeNet = async (net: Net): Promise<readonly TunnelStatus[]> => {
    const device =
      enabledOf(net).length === 0 ? null : await read(net, silenceAfter).catch((error: unknown) => error as Error);
    return net.tunnels.map((tunnel) => {
      const history = net.histories.get(tunnel.id) ?? { since: steady(), wasUp: false };
      net.histories.set(tunnel.id, history);
      const silence =
        net.failure || (device instanceof Error ? device.message : "The peer is not configured on the device yet.");
      const peers = device === null || device instanceof Error ? [] : device.peers;
      const peer = peers.find(({ publicKey }) => publicKey === tunnel.peerPublicKey);
      const handshake = net.handshakes.get(tunnel.peerPublicKey);
      const reading = peer !== undefined && handshake !== undefined ? { peer, handshake } : silence;
      return statusOf(tunnel, reading, history, now(), steady());
    });
  };

  return {
    async apply(edge, end, tunnels) {
      const { namespace } = edge;
      // Shortcut: most networks never had tunnels.
      if (tunnels.length === 0 && !nets.has(namespace) && !existsSync(folderOf(namespace))) return;
      const known = nets.get(namespace);
      const net: Net = known ?? {
        edge,
        end,
        tunnels,
        failure: "",
        histories: new Map(),
        handshakes: new Map(),
        configured: new Map(),
        timer: undefined,
        unwatch: () => {},
        queue: createSerialQueue(),
      };
      nets.set(namespace, net);
      await enqueue(net, async () => {
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
      const selected = [...nets].filter(([namespace]) => only === undefined || namespace === only);
      const all = await Promise.all(
        selected.map(async ([namespace, net]) => [namespace, await observeNet(net)] as const),
      );
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
