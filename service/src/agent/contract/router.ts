/** The verbs of `Router` (`drivers/router/interface.ts`). The agent derives the devices of ports from their ids. */
import { firewallLimits } from "@brume/api/firewall.ts";
import { tunnelLimits } from "@brume/api/vpn.ts";
import { type Static, Type } from "typebox";
import { PortStatusRow, RouterStatus } from "./routerstatus.ts";
import {
  address,
  addresses,
  block,
  boolean,
  hostName,
  id,
  integer,
  ipv4,
  line,
  list,
  mac,
  nullable,
  oneOf,
  only,
  optional,
} from "./values.ts";
import { sizes, times, verbs } from "./verb.ts";

const Block = only({ cidr: block(), gateway: nullable(address()) });
const portNumber = () => integer(0, 65_535);
const Ports = Type.Union([
  Type.Literal("any"),
  list(only({ first: portNumber(), last: portNumber() }), { maxItems: 256 }),
]);
const Match = Type.Union([
  Type.Literal("any"),
  Type.Literal("internal"),
  Type.Literal("external"),
  list(addresses(), { maxItems: 256 }),
]);
const Rule = only({
  allow: boolean(),
  protocol: oneOf(["any", "tcp", "udp", "tcp-udp", "icmp"]),
  source: Match,
  sourcePort: Ports,
  destination: Match,
  destinationPort: Ports,
});

const keyText = "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=";
const key = () => Type.String({ pattern: `^${keyText}$` });
const subnets = () => list(block(), { maxItems: 64 });
const tunnel = {
  id: id(),
  enabled: boolean(),
  mtu: integer(576, 65_535),
  localSubnets: subnets(),
  peerSubnets: subnets(),
};
const Ipsec = only({
  ...tunnel,
  type: Type.Literal("ipsec"),
  ikeVersion: Type.Union([Type.Literal(1), Type.Literal(2)]),
  encryption: oneOf(["aes128", "aes256", "3des", "aes128gcm"]),
  digest: oneOf(["sha1", "sha256", "sha384", "sha512"]),
  dhGroup: integer(1, 32),
  perfectForwardSecrecy: boolean(),
  sharedKey: line(512),
  localIdentity: line(512),
  peer: nullable(hostName()),
  peerIdentity: line(512),
});
const Wireguard = only({
  ...tunnel,
  type: Type.Literal("wireguard"),
  // Empty: the peer has no key yet. Such a tunnel is disabled.
  peerPublicKey: Type.String({ pattern: `^(${keyText})?$` }),
  presharedKey: nullable(key()),
  endpoint: nullable(
    Type.String({ maxLength: 300, pattern: "^([A-Za-z0-9_][A-Za-z0-9._-]*|\\[[0-9a-fA-F:.]{2,45}\\]):[0-9]{1,5}$" }),
  ),
  keepAlive: integer(0, 65_535),
});

const bandwidth = () => nullable(integer(1, 10_000_000));

/**
 * The connection of a server to a network, without the name of its device: id, MAC, addresses, bandwidth, name. A row without the names of
 * the fields takes half the time to read.
 */
const PortRow = Type.Tuple([
  id(),
  mac(),
  list(address(), { maxItems: 8 }),
  bandwidth(),
  Type.String({ pattern: "^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$" }),
]);
/** A port as it is sent. */
export type PortRow = Static<typeof PortRow>;
const generation = () => integer(0, Number.MAX_SAFE_INTEGER);
/** Ports of one network. */
export const mostPorts = 65_536;
const portRows = () => list(PortRow, { maxItems: mostPorts });
const removedPorts = () => list(id(), { maxItems: mostPorts });
const portKey = () => Type.String({ pattern: "^[0-9a-f-]{36}$" });
/** The ports of a network: rows, or a list with a key. `from`: key of the list that `rows` and `removed` change; null: `rows` are all ports. */
const PortList = Type.Union([
  only({ key: portKey(), from: nullable(portKey()), rows: portRows(), removed: removedPorts() }),
  portRows(),
]);
/** The ports of a network as they are sent (`portlist.ts`). */
export type PortList = Static<typeof PortList>;

/** The desired state of a network. */
export const Network = only({
  id: id(),
  generation: generation(),
  kind: oneOf(["public", "shared", "private"]),
  v4: Block,
  v6: nullable(Block),
  edgeAddress: nullable(ipv4()),
  nat: oneOf(["never", "outside-private", "always"]),
  mtu: integer(576, 65_535),
  bandwidth: bandwidth(),
  firewall: only({ enabled: boolean(), allow: boolean(), rules: list(Rule, { maxItems: firewallLimits.rules }) }),
  tunnels: list(Type.Union([Ipsec, Wireguard]), { maxItems: tunnelLimits.tunnels }),
  wireguard: nullable(only({ privateKey: key(), listenPort: integer(1, 65_535) })),
  ports: PortList,
  dhcp: only({ enabled: boolean(), router: nullable(ipv4()), dns: list(address(), { maxItems: 16 }) }),
  dnsForwarders: list(address(), { maxItems: 16 }),
  closed: list(addresses(), { maxItems: 4096 }),
});

/** The verbs, by the name of the method. */
export const routerVerbs = verbs({
  apply: {
    summary: "Bring a network to its desired state",
    args: ["spec"],
    body: only({ spec: Network }),
    answer: generation(),
    time: times.change,
    bytes: sizes.network,
    extra: "repair",
    note: line(256),
    generation: true,
  },
  applyPorts: {
    summary: "Change single ports of a network",
    args: ["change"],
    body: only({
      change: only({
        id: id(),
        from: generation(),
        generation: generation(),
        ports: portRows(),
        removed: removedPorts(),
      }),
    }),
    answer: boolean(),
    time: times.change,
    bytes: sizes.network,
  },
  remove: {
    summary: "Remove a network",
    args: ["id"],
    body: only({ id: id() }),
    answer: null,
    time: times.change,
  },
  observe: {
    summary: "Return the state of all networks, or the current state of one",
    args: ["network"],
    body: only({ network: optional(id()) }),
    answer: RouterStatus,
    time: times.read,
  },
  observePort: {
    summary: "Return the state of one port",
    args: ["network", "port"],
    body: only({ network: id(), port: id() }),
    answer: nullable(PortStatusRow),
    time: times.read,
  },
  readBanner: {
    summary: "Read the first line that a server sends at a TCP port",
    args: ["network", "address", "port"],
    body: only({ network: id(), address: address(), port: integer(1, 65_535) }),
    answer: nullable(Type.String({ maxLength: 65_536 })),
    time: times.read,
  },
  sourceTo: {
    summary: "Return the source address of the host in translated packets to an address",
    args: ["destination"],
    body: only({ destination: nullable(ipv4()) }),
    answer: nullable(address()),
    time: times.read,
  },
});
