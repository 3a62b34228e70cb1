/**
 * A network as a namespace of its own: bridge, uplink, addresses, routes and ports, as lines for `ip -batch`. Each function says
 * what is still to be done, given what is there, so that a finished network needs nothing and is not touched.
 */
import { prefixLength } from "../../../base/address.ts";
import type { NetworkSpec } from "../interface.ts";
import { BRIDGE, intakeOf, NEXT_HOP, NEXT_HOP6, namespaceOf, portOf, text36, UPLINK, uplinkOf } from "../model/name.ts";
import { type Link, markText, type NamespaceState, readMark } from "./snapshot.ts";

/** Where a network is to be, and what the machine calls it. */
export interface Site {
  readonly tag: string;
  /** Namespace that plays the machine in tests; null: the machine itself. */
  readonly hostNamespace: string | null;
}

/** The bridge keeps its address when ports come and go, so servers need not ask again who their gateway is. */
function bridgeMac(network: number): string {
  const digits = network.toString(16).padStart(10, "0").slice(-10);
  return `06:${digits.match(/../g)?.join(":")}`;
}

/** What the bridge answers to. A private network has only what its DHCP server speaks from. */
function bridgeAddresses(spec: NetworkSpec): string[] {
  const { v4, v6 } = spec;
  if (spec.edgeAddress === null) return spec.dhcp.enabled ? [`${NEXT_HOP}/32`] : [];
  return [v4, ...(v6 === null ? [] : [v6])].map(({ cidr, gateway }) => `${gateway}/${prefixLength(cidr)}`);
}

function uplinkAddresses(spec: NetworkSpec): string[] {
  if (spec.edgeAddress === null) return [];
  return [`${spec.edgeAddress}/32`, ...(spec.v6 === null ? [] : ["fe80::2/64"])];
}

/** Addresses that the kernel gives by itself, and that nobody wished away. */
const isOwn = (device: Link, address: string): boolean =>
  address.startsWith("fe80:") && !(device.name === UPLINK && address === "fe80::2/64");

function addressLines(device: string, wanted: readonly string[], link: Link | undefined): string[] {
  const there = link?.addresses ?? [];
  const gone = link === undefined ? [] : there.filter((address) => !wanted.includes(address) && !isOwn(link, address));
  const missing = wanted.filter((address) => !there.includes(address));
  return [
    ...gone.map((address) => `addr del ${address} dev ${device}`),
    // Without duplicate detection the first packets of IPv6 would wait two seconds for it.
    ...missing.map((address) => `addr add ${address} dev ${device}${address.includes(":") ? " nodad" : ""}`),
  ];
}

const up = (device: string, link: Link | undefined): string[] => (link?.up ? [] : [`link set ${device} up`]);

export const aliasLine = (mark: string): string => `link set lo alias "${mark}"`;

/** Lines for the namespace, without its ports. `found: null`: it is empty but for `lo` and the uplink. */
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

/** Settings of the namespace's kernel. Where a name is unknown (no bridge filter, no IPv6) its effect is there anyway. */
export function settings(spec: NetworkSpec): Record<string, string> {
  const edge = spec.edgeAddress !== null;
  return {
    "net.ipv4.ip_forward": edge ? "1" : "0",
    "net.ipv6.conf.all.disable_ipv6": spec.v6 === null ? "1" : "0",
    "net.ipv6.conf.all.forwarding": edge && spec.v6 !== null ? "1" : "0",
    // The lock and the guard do what a reverse path filter would, and know tunnels.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.all.send_redirects": "0",
    [`net.ipv4.conf.${BRIDGE}.send_redirects`]: "0",
    // Shared: ports do not hear each other, so the edge answers for the neighbours and takes their packets through its rules.
    [`net.ipv4.conf.${BRIDGE}.proxy_arp_pvlan`]: spec.kind === "shared" ? "1" : "0",
    // Frames between two servers of one network are not the firewall's business.
    "net.bridge.bridge-nf-call-iptables": "0",
    "net.bridge.bridge-nf-call-ip6tables": "0",
    // A connection that was cut must not come back by its next packet, whichever side sends it.
    "net.netfilter.nf_conntrack_tcp_loose": "0",
  };
}

/** `sysctl` arguments for what differs. */
export function settingArguments(spec: NetworkSpec, found: NamespaceState | null): string[] {
  const wanted = Object.entries(settings(spec));
  const differing = wanted.filter(([name, value]) => {
    const present = found?.settings.get(name);
    return found === null || (present !== undefined && present !== value);
  });
  return differing.map(([name, value]) => `${name}=${value}`);
}

/** Those that come before the addresses: where IPv6 was off until now, the kernel takes none of it. */
export const earlyArguments = (spec: NetworkSpec, found: NamespaceState): string[] =>
  settingArguments(spec, found).filter((argument) => argument === "net.ipv6.conf.all.disable_ipv6=0");

/** Ports to be taken in, by their device on the machine; a new device of the same name replaces what is there. */
export function arrivingPorts(spec: NetworkSpec, hostNamespace: ReadonlyMap<string, Link>): NetworkSpec["ports"] {
  return spec.ports.filter((port) => hostNamespace.has(port.device));
}

const isPort = (name: string): boolean => /^p[0-9a-z]+$/.test(name);
/** By its kind too: `ipsec0` is somebody else's. */
const isIntake = (link: Link): boolean => link.kind === "ifb" && /^i[0-9a-z]+$/.test(link.name);

/** Ports that are to go: nobody wants them, or their successor waits. Before the lock forgets them. */
export function leavingLines(spec: NetworkSpec, found: NamespaceState, coming: NetworkSpec["ports"]): string[] {
  const stay = new Set(spec.ports.filter((port) => !coming.includes(port)).map(({ id }) => portOf(id)));
  return [...found.links.keys()].filter((name) => isPort(name) && !stay.has(name)).map((name) => `link del ${name}`);
}

/** Puts ports on the bridge, still down. */
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

/** The last lines: ports begin to work, what served none any more goes, and the mark says that the image is in force. */
export function finishLines(spec: NetworkSpec, found: NamespaceState | null, coming: NetworkSpec["ports"]): string[] {
  const inForce = found === null ? 0 : readMark(found).generation;
  const limited = new Set(spec.ports.filter((port) => port.bandwidth !== null).map(({ id }) => intakeOf(id)));
  const ports = spec.ports.flatMap((port) => {
    const link = found?.links.get(portOf(port.id));
    if (coming.includes(port)) return up(portOf(port.id), undefined);
    return link === undefined ? [] : up(link.name, link);
  });
  const links = [...(found?.links.values() ?? [])];
  const idle = links.filter((link) => isIntake(link) && !limited.has(link.name)).map(({ name }) => `link del ${name}`);
  const mark = inForce === spec.generation ? [] : [aliasLine(markText(spec.id, spec.generation))];
  return [...ports, ...idle, ...mark];
}

/** Moves the devices in. */
export function moveLines(spec: NetworkSpec, site: Site, coming: NetworkSpec["ports"]): string[] {
  const space = namespaceOf(site.tag, spec.id);
  return coming.map((port) => `link set ${port.device} netns ${space} name ${portOf(port.id)}`);
}

/** Moves the devices out again, under the names by which they came. */
export const returnLines = (spec: NetworkSpec, { hostNamespace }: Site): string[] =>
  spec.ports.map(({ id, device }) => `link set ${portOf(id)} netns ${hostNamespace ?? process.pid} name ${device}`);

/**
 * A route to the network over its uplink. Throws where another device has one: if both installations replaced it, packets would go
 * now here, now there. `routes`: those of the host, null where none can be ours.
 */
function routeLines(uplink: string, routes: ReadonlySet<string> | null, destination: string, way: string): string[] {
  const shown = destination.replace(/\/(32|128)$/, "");
  if (routes === null) return [`route add ${destination} ${way}`];
  const foreign = [...routes].find((route) => route.startsWith(`${shown} `) && !route.endsWith(` dev ${uplink}`));
  if (foreign !== undefined) throw new Error(`the host has another route to the network: ${foreign}`);
  return routes.has(`${shown} ${way.replace(/ onlink$/, "")}`) ? [] : [`route replace ${destination} ${way}`];
}

/** The machine's end of the uplink, and its routes to the network. `routes`: null for an uplink that was just made. */
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

/** Rows of the kernel's one table of neighbours, from which it tidies up, harder, and takes no more. The usual 1,024 are few networks. */
const neighbours = { gc_thresh1: 4096, gc_thresh2: 8192, gc_thresh3: 16_384 } as const;
const neighbourSettings = ["ipv4", "ipv6"].flatMap((family) =>
  Object.entries(neighbours).map(([name, value]) => ({ name: `net.${family}.neigh.default.${name}`, value })),
);
export const hostSettings = [
  "net.ipv4.ip_forward",
  "net.ipv6.conf.all.forwarding",
  ...neighbourSettings.map(({ name }) => name),
];

/**
 * `sysctl` arguments that let the machine forward. It stays so when the last network goes, since nobody can tell who else relies
 * on it by then. A machine that forwards IPv6 no longer listens to its own router, unless its links are told to.
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

/** Lines for the machine that make the namespace and its uplink. */
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

/** Folder of the network's files below the run folder. */
export const folderOf = (runFolder: string, network: number): string => `${runFolder}/${text36(network)}`;
