/** The map of networks: which nodes and edges there are, and where. Pure; the page gives it texts and traffic. */
import type { Network, PublicNetwork } from "@brume/api/network.ts";
import type { Server } from "@brume/api/server.ts";
import type { Tunnel } from "@brume/api/vpn.ts";

/** A server with its links to networks of the map. */
export interface MapServer {
  readonly id: number;
  /** Undefined: the token may not read servers. */
  readonly server: Server | undefined;
  readonly links: readonly { readonly network: number; readonly ip: string }[];
}

/** A network with the servers whose first network it is. */
export interface MapNetwork {
  readonly id: number;
  readonly kind: "public" | "shared" | "private";
  readonly name: string;
  readonly network: PublicNetwork | Network | null;
  readonly tunnels: readonly Tunnel[];
  readonly servers: readonly MapServer[];
  /** Servers that are not shown. */
  readonly more: number;
}

/** Servers of one network, and networks, that the map shows. */
const mostServers = 12;
const mostNetworks = 40;

/** What the map shows. */
export interface NetworkMap {
  readonly networks: readonly MapNetwork[];
  /** Networks that are not shown. */
  readonly more: number;
}

/** Returns the networks with tunnels and servers: public ones, shared ones, private ones. */
export function mapOf(
  publics: readonly PublicNetwork[],
  privates: readonly Network[],
  servers: readonly Server[],
): NetworkMap {
  const byId = new Map(servers.map((server) => [server.ID, server]));
  const shared = new Map<number, string>();
  for (const { LinkedNetworks } of servers)
    for (const { NetworkType, NetworkID, NetworkName } of LinkedNetworks)
      if (NetworkType === "PublicShared") shared.set(NetworkID, NetworkName);
  const bare: Omit<MapNetwork, "servers" | "more">[] = [
    ...publics.map((network) => ({
      id: network.Id,
      kind: "public" as const,
      name: network.Name,
      network,
      tunnels: network.Vpn.Tunnels,
    })),
    ...[...shared].map(([id, name]) => ({ id, kind: "shared" as const, name, network: null, tunnels: [] })),
    ...privates.map((network) => ({
      id: network.ID,
      kind: "private" as const,
      name: network.Name,
      network,
      tunnels: [],
    })),
  ];
  const links = new Map<number, { network: number; ip: string }[]>();
  const link = (server: number, network: number, ip: string): void => {
    links.set(server, [...(links.get(server) ?? []), { network, ip }]);
  };
  for (const { id, network } of bare)
    if (network !== null) for (const { ServerID, IP } of network.LinkedServers) link(ServerID, id, IP);
    else
      for (const { ID, LinkedNetworks } of servers)
        for (const one of LinkedNetworks) if (one.NetworkID === id) link(ID, id, one.IP);
  const home = Map.groupBy(links, ([, all]) => all[0]?.network);
  const networks = bare.slice(0, mostNetworks).map((network) => {
    const all = (home.get(network.id) ?? []).map(([id, of]): MapServer => ({ id, server: byId.get(id), links: of }));
    return { ...network, servers: all.slice(0, mostServers), more: Math.max(0, all.length - mostServers) };
  });
  return { networks, more: bare.length - networks.length };
}

/** A rectangle in pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Layout {
  readonly height: number;
  /** By id: `outside`, `network-3`, `tunnel-2`, `server-7`, `more-3`. */
  readonly boxes: ReadonlyMap<string, Box>;
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

const nodeHeight = 52;
const rowGap = 12;
const groupGap = 20;

/**
 * Places the nodes in three columns: the outside and the peers of tunnels, the networks, the servers. A network is in the middle of its
 * servers and tunnels. `width`: of the map in pixels.
 */
export function layOut(networks: readonly MapNetwork[], width: number): Layout {
  const nodeWidth = Math.min(250, Math.max(140, (width - 80) / 3));
  const columns = [0, (width - nodeWidth) / 2, width - nodeWidth] as const;
  const boxes = new Map<string, Box>();
  const edges: { from: string; to: string }[] = [];
  const put = (id: string, column: 0 | 1 | 2, y: number): void => {
    boxes.set(id, { x: columns[column], y, width: nodeWidth, height: nodeHeight });
  };
  const step = nodeHeight + rowGap;
  put("outside", 0, 0);
  // Peers must not cover the outside, which is in the same column.
  let y = networks.some(({ tunnels }) => tunnels.length > 0) ? step : 0;
  for (const { id, kind, tunnels, servers, more } of networks) {
    const right = [...servers.map((server) => `server-${server.id}`), ...(more > 0 ? [`more-${id}`] : [])];
    const rows = Math.max(1, tunnels.length, right.length);
    const height = rows * step - rowGap;
    const middle = (count: number): number => y + (height - (count * step - rowGap)) / 2;
    put(`network-${id}`, 1, middle(1));
    for (const [index, tunnel] of tunnels.entries()) {
      put(`tunnel-${tunnel.Id}`, 0, middle(tunnels.length) + index * step);
      edges.push({ from: `tunnel-${tunnel.Id}`, to: `network-${id}` });
    }
    for (const [index, name] of right.entries()) put(name, 2, middle(right.length) + index * step);
    if (more > 0) edges.push({ from: `network-${id}`, to: `more-${id}` });
    if (kind !== "private") edges.push({ from: "outside", to: `network-${id}` });
    y += height + groupGap;
  }
  for (const { servers } of networks)
    for (const { id, links } of servers)
      for (const { network } of links)
        if (boxes.has(`network-${network}`)) edges.push({ from: `network-${network}`, to: `server-${id}` });
  return { height: Math.max(nodeHeight, y - groupGap), boxes, edges };
}

/** Bytes per second in both directions. */
export interface Rate {
  readonly received: number;
  readonly sent: number;
}

/** Returns how wide the line of an edge is, from 0 (no traffic) to 4 (more than 100 Mbit/s). */
export function strengthOf(rate: Rate | undefined): number {
  const bits = ((rate?.received ?? 0) + (rate?.sent ?? 0)) * 8;
  return bits < 1000 ? 0 : bits < 100_000 ? 1 : bits < 5_000_000 ? 2 : bits < 100_000_000 ? 3 : 4;
}

/**
 * Returns the sum of the traffic of the servers that are only in this network: all of it crosses the network. Undefined: there are none, or
 * the sum would not be complete, because the traffic of one that runs is not known.
 */
export function rateOfNetwork(network: MapNetwork, rates: ReadonlyMap<number, Rate>): Rate | undefined {
  const running = network.servers.filter(({ links, server }) => links.length === 1 && server?.IsPowerOn !== false);
  const known = running.flatMap(({ id }) => rates.get(id) ?? []);
  if (known.length === 0 || known.length < running.length || network.more > 0) return undefined;
  return known.reduce((sum, { received, sent }) => ({ received: sum.received + received, sent: sum.sent + sent }));
}
