/**
 * Renders one network as a namespace: bridge, uplink, addresses, routes and ports, as lines for `ip -batch`. Each function compares the
 * spec with the actual state and returns only the differences, so that a complete network is not touched.
 */
import { prefixLength } from "../../../base/address.ts";
import type { NetworkSpec } from "../interface.ts";
import { BRIDGE, intakeOf, NEXT_HOP, NEXT_HOP6, namespaceOf, portOf, text36, UPLINK, uplinkOf } from "../model/name.ts";
import { type Link, markText, type NamespaceState } from "./snapshot.ts";

/** Which installation the names belong to, and where the host's ends of links are. */
export interface Site {
  readonly tag: string;
  /** Namespace that replaces the host's own in tests; null: the namespace of this process. */
  readonly hostNamespace: string | null;
}

/** A fixed MAC of the bridge, so that servers need not resolve their gateway again when ports come and go. */
function bridgeMac(network: number): string {
  const digits = network.toString(16).padStart(10, "0").slice(-10);
  return `06:${digits.match(/../g)?.join(":")}`;
}

/** Addresses of the bridge. A private network has only the source address of its DHCP server. */
function bridgeAddresses(spec: NetworkSpec): string[] {
  const { v4, v6 } = spec;
  if (spec.edgeAddress === null) return spec.dhcp.enabled ? [`${NEXT_HOP}/32`] : [];
  return [v4, ...(v6 === null ? [] : [v6])].map(({ cidr, gateway }) => `${gateway}/${prefixLength(cidr)}`);
}

function uplinkAddresses(spec: NetworkSpec): string[] {
  if (spec.edgeAddress === null) return [];
  return [`${spec.edgeAddress}/32`, ...(spec.v6 === null ? [] : ["fe80::2/64"])];
}

/** Whether the kernel itself assigns the address; such addresses are not removed. */
const isLinkLocal = (device: Link, address: string): boolean =>
  address.startsWith("fe80:") && !(device.name === UPLINK && address === "fe80::2/64");

function addressLines(device: string, wanted: readonly string[], link: Link | undefined): string[] {
  const there = link?.addresses ?? [];
  const gone =
    link === undefined ? [] : there.filter((address) => !wanted.includes(address) && !isLinkLocal(link, address));
  const missing = wanted.filter((address) => !there.includes(address));
  return [
    ...gone.map((address) => `addr del ${address} dev ${device}`),
    // Without duplicate detection the first packets of IPv6 would wait two seconds for it.
    ...missing.map((address) => `addr add ${address} dev ${device}${address.includes(":") ? " nodad" : ""}`),
  ];
}

const up = (device: string, link: Link | undefined): string[] => (link?.up ? [] : [`link set ${device} up`]);

/** Renders the line that writes the mark of `snapshot.ts` to the alias of `lo`. */
export const aliasLine = (mark: string): string => `link set lo alias "${mark}"`;

/** Renders the lines for the namespace without its ports. `found: null`: the namespace contains only `lo` and the uplink. */
export function spaceLines(spec: NetworkSpec, found: NamespaceState | null): string[] {
  const link = (name: string) => found?.links.get(name);
  const bridge = link(BRIDGE);
  const lines = [...(found === null ? [aliasLine(markText(spec.id, 0))] : []), ...up("lo", link("lo"))];
  if (bridge === undefined) lines.push(`link add ${BRIDGE} address ${bridgeMac(spec.id)} mtu ${spec.mtu} type bridge`);
  else if (bridge.mtu !== spec.mtu) lines.push(`link set ${BRIDGE} mtu ${spec.mtu}`);
  lines.push(...addressLines(BRIDGE, bridgeAddresses(spec), bridge), ...up(BRIDGE, bridge));
  if (spec.edgeAddress === null) return lines;
  lines.push(...addressLines(UPLINK, uplinkAddresses(spec), link(UPLINK)), ...up(UPLINK, link(UPLINK)));
  if (!found?.routes.has(`default via ${NEXT_HOP} dev ${UPLINK}`))
    lines.push(`route replace default via ${NEXT_HOP} dev ${UPLINK} onlink src ${spec.edgeAddress}`);
  if (spec.v6 !== null && !found?.routes.has(`default via ${NEXT_HOP6} dev ${UPLINK}`))
    lines.push(`route replace default via ${NEXT_HOP6} dev ${UPLINK}`);
  return lines;
}

/** Returns the `sysctl` settings of the namespace. A name that the kernel does not know (no bridge filter, no IPv6) needs no setting. */
export function settings(spec: NetworkSpec): Record<string, string> {
  const edge = spec.edgeAddress !== null;
  return {
    "net.ipv4.ip_forward": edge ? "1" : "0",
    "net.ipv6.conf.all.disable_ipv6": spec.v6 === null ? "1" : "0",
    "net.ipv6.conf.all.forwarding": edge && spec.v6 !== null ? "1" : "0",
    // The source lock and the guard replace the reverse path filter, and handle tunnels correctly.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    [`net.ipv4.conf.${BRIDGE}.send_redirects`]: "0",
    // Shared: ports are isolated, so the edge responds to ARP for the neighbours and routes their packets through its rules.
    [`net.ipv4.conf.${BRIDGE}.proxy_arp_pvlan`]: spec.kind === "shared" ? "1" : "0",
    // The firewall does not apply to frames between two servers of one network.
    "net.bridge.bridge-nf-call-iptables": "0",
    "net.bridge.bridge-nf-call-ip6tables": "0",
    // A connection that was cut must not come back by its next packet, whichever side sends it.
    "net.netfilter.nf_conntrack_tcp_loose": "0",
  };
}

/** Returns the `sysctl` arguments for settings that differ. */
export function settingArguments(spec: NetworkSpec, found: NamespaceState | null): string[] {
  const wanted = Object.entries(settings(spec));
  const differing = wanted.filter(([name, value]) => {
    const present = found?.settings.get(name);
    return found === null || (present !== undefined && present !== value);
  });
  return differing.map(([name, value]) => `${name}=${value}`);
}

/** Returns the arguments that must come before the addresses: while IPv6 is off, the kernel accepts no IPv6 address. */
export const earlyArguments = (spec: NetworkSpec, found: NamespaceState): string[] =>
  settingArguments(spec, found).filter((argument) => argument === "net.ipv6.conf.all.disable_ipv6=0");

/** Returns the ports whose device is on the host. Such a device replaces one with the same name in the network. */
export function arrivingPorts(spec: NetworkSpec, hostNamespace: ReadonlyMap<string, Link>): NetworkSpec["ports"] {
  return spec.ports.filter((port) => hostNamespace.has(port.device));
}

const isPort = (name: string): boolean => /^p[0-9a-z]+$/.test(name);
/** Checks the kind too, because `ipsec0` belongs to charon. */
const isIntake = (link: Link): boolean => link.kind === "ifb" && /^i[0-9a-z]+$/.test(link.name);

/** Removes ports that the spec does not contain, and ports that a new device replaces. Runs before the source lock drops them. */
export function leavingLines(spec: NetworkSpec, found: NamespaceState, coming: NetworkSpec["ports"]): string[] {
  const stay = new Set(spec.ports.filter((port) => !coming.includes(port)).map(({ id }) => portOf(id)));
  return [...found.links.keys()].filter((name) => isPort(name) && !stay.has(name)).map((name) => `link del ${name}`);
}

/** Attaches ports to the bridge; they stay down. */
export function portLines(spec: NetworkSpec, found: NamespaceState | null, coming: NetworkSpec["ports"]): string[] {
  const lines: string[] = [];
  for (const port of spec.ports) {
    const name = portOf(port.id);
    const isNew = coming.includes(port);
    const link = isNew ? undefined : found?.links.get(name);
    if (!isNew && link === undefined) continue;
    if (link?.mtu !== spec.mtu) lines.push(`link set ${name} mtu ${spec.mtu}`);
    if (link?.master !== BRIDGE) lines.push(`link set ${name} master ${BRIDGE}`);
    const isolated = spec.kind === "shared";
    if (link?.master !== BRIDGE || link.isolated !== isolated)
      lines.push(`link set ${name} type bridge_slave isolated ${isolated ? "on" : "off"}`);
    const intake = found?.links.get(intakeOf(port.id));
    if (port.bandwidth === null) continue;
    if (intake === undefined) lines.push(`link add ${intakeOf(port.id)} type ifb`);
    lines.push(...up(intakeOf(port.id), intake));
  }
  return lines;
}

/**
 * The edge remembers MAC addresses for about a minute. A server that gets the address of a deleted one would not be reached during that
 * time, so the edge learns its MAC address here.
 */
const neighbourLines = ({ edgeAddress }: NetworkSpec, coming: NetworkSpec["ports"]): string[] =>
  edgeAddress === null
    ? []
    : coming.flatMap(({ addresses, mac }) =>
        addresses.map((address) => `neigh replace ${address} lladdr ${mac} dev ${BRIDGE} nud stale`),
      );

/** Renders the last lines: ports go up, unused devices are removed, and the mark shows the new generation. */
export function finishLines(spec: NetworkSpec, found: NamespaceState | null, coming: NetworkSpec["ports"]): string[] {
  const limited = new Set(spec.ports.filter((port) => port.bandwidth !== null).map(({ id }) => intakeOf(id)));
  const ports = spec.ports.flatMap((port) => {
    const link = found?.links.get(portOf(port.id));
    if (coming.includes(port)) return up(portOf(port.id), undefined);
    return link === undefined ? [] : up(link.name, link);
  });
  const links = [...(found?.links.values() ?? [])];
  const idle = links.filter((link) => isIntake(link) && !limited.has(link.name)).map(({ name }) => `link del ${name}`);
  // A newer generation may be recorded in a table only, which this change or a later one replaces.
  const mark = markText(spec.id, spec.generation);
  const marking = found?.links.get("lo")?.alias === mark ? [] : [aliasLine(mark)];
  return [...ports, ...neighbourLines(spec, coming), ...idle, ...marking];
}

/** Moves the devices of arriving ports into the namespace. */
export function moveLines(spec: NetworkSpec, site: Site, coming: NetworkSpec["ports"]): string[] {
  const space = namespaceOf(site.tag, spec.id);
  return coming.map((port) => `link set ${port.device} netns ${space} name ${portOf(port.id)}`);
}

/**
 * Moves the devices back to the host under their original names. The lines need all rights: they name the host's own namespace by a process,
 * and the confined programs see none of the host.
 */
export const returnLines = (spec: NetworkSpec, { hostNamespace }: Site): string[] =>
  spec.ports.map(({ id, device }) => `link set ${portOf(id)} netns ${hostNamespace ?? process.pid} name ${device}`);

/**
 * Renders a route to the network over its uplink. Throws when the host has such a route over another device: if two installations replaced
 * it in turn, packets would alternate between them. `routes`: the routes of the host, null where none can be ours.
 */
function routeLines(uplink: string, routes: ReadonlySet<string> | null, destination: string, way: string): string[] {
  const shown = destination.replace(/\/(32|128)$/, "");
  if (routes === null) return [`route add ${destination} ${way}`];
  const foreign = [...routes].find((route) => route.startsWith(`${shown} `) && !route.endsWith(` dev ${uplink}`));
  if (foreign !== undefined)
    throw new Error(`the host already has a route to the network over another device: ${foreign}`);
  return routes.has(`${shown} ${way.replace(/ onlink$/, "")}`) ? [] : [`route replace ${destination} ${way}`];
}

/** Renders the host's end of the uplink and the routes to the network. `routes`: null for a new uplink. */
export function hostUplinkLines(
  spec: NetworkSpec,
  site: Site,
  link: Link | undefined,
  routes: ReadonlySet<string> | null,
): string[] {
  const { edgeAddress, v4, v6 } = spec;
  if (edgeAddress === null) return [];
  const uplink = uplinkOf(site.tag, spec.id);
  const wanted = [`${NEXT_HOP}/32`, ...(v6 === null ? [] : [`${NEXT_HOP6}/64`])];
  return [
    ...addressLines(uplink, wanted, link),
    ...up(uplink, link),
    ...routeLines(uplink, routes, `${edgeAddress}/32`, `dev ${uplink}`),
    ...routeLines(uplink, routes, v4.cidr, `via ${edgeAddress} dev ${uplink} onlink`),
    ...(v6 === null ? [] : routeLines(uplink, routes, v6.cidr, `via fe80::2 dev ${uplink}`)),
  ];
}

/**
 * Thresholds of the kernel's neighbour table: from where it removes rows, removes them faster, and accepts no more. The default maximum of
 * 1,024 suffices for few networks only.
 */
const neighbours = { gc_thresh1: 4096, gc_thresh2: 8192, gc_thresh3: 16_384 } as const;
const neighbourSettings = ["ipv4", "ipv6"].flatMap((family) =>
  Object.entries(neighbours).map(([name, value]) => ({ name: `net.${family}.neigh.default.${name}`, value })),
);
/** `sysctl` settings of the host that `forwardingArguments` compares. */
export const hostSettings = [
  "net.ipv4.ip_forward",
  "net.ipv6.conf.all.forwarding",
  ...neighbourSettings.map(({ name }) => name),
];

/**
 * Returns the `sysctl` arguments that make the host forward packets. Forwarding stays on after the last network, because other programs may
 * rely on it by then. A host that forwards IPv6 ignores router advertisements unless `accept_ra` is 2 on its links.
 */
export function forwardingArguments(
  spec: NetworkSpec,
  present: ReadonlyMap<string, string>,
  links: readonly string[],
): string[] {
  if (spec.edgeAddress === null) return [];
  const larger = neighbourSettings.filter(({ name, value }) => Number(present.get(name) ?? value) < value);
  const listen = links.map((link) => `net/ipv6/conf/${link}/accept_ra=2`);
  return [
    ...larger.map(({ name, value }) => `${name}=${value}`),
    ...(present.get("net.ipv4.ip_forward") === "1" ? [] : ["net.ipv4.ip_forward=1"]),
    ...(spec.v6 === null || present.get("net.ipv6.conf.all.forwarding") === "1"
      ? []
      : [...listen, "net.ipv6.conf.all.forwarding=1"]),
  ];
}

/** Renders the lines for the host that create the namespace and its uplink. `space`: the namespace exists. */
export function creationLines(spec: NetworkSpec, site: Site, space: boolean): string[] {
  const name = namespaceOf(site.tag, spec.id);
  return [
    ...(space ? [] : [`netns add ${name}`]),
    ...(spec.edgeAddress === null
      ? []
      : [
          `link add ${uplinkOf(site.tag, spec.id)} ${site.hostNamespace === null ? "" : `netns ${site.hostNamespace} `}type veth peer name ${UPLINK} netns ${name}`,
        ]),
  ];
}

/** Returns the folder of the network's files below the run folder. */
export const folderOf = (runFolder: string, network: number): string => `${runFolder}/${text36(network)}`;
