/**
 * The simulated router driver, for tests and for hosts that must not be changed. It has the same specs, errors, generations and counters as
 * the Linux driver, and decides on packets with the same rules. Tests add devices, send packets and cause failures through
 * `SimulatedRouter`.
 */

import { forEachInTurns, runAtOnce, runInTurns, turn } from "../../../base/turn.ts";
import type {
  Count,
  NetworkSpec,
  NetworkStatus,
  Port,
  PortStatus,
  Router,
  RuleCount,
  TunnelStatus,
} from "../interface.ts";
import { dnsmasqArguments } from "../linux/dhcp.ts";
import { blocksOf, renderTexts } from "../linux/texts.ts";
import { closedOf } from "../model/closedaddresses.ts";
import { openingsOf, openTo, takes } from "../model/openings.ts";
import { createJudge, type Packet, staysInside } from "../model/verdict.ts";
import { digestOf } from "../nft/firewall.ts";
import { forwardsOf } from "../nft/nat.ts";

/** A router with methods for tests. */
export interface SimulatedRouter extends Router {
  /** Adds a device to the host; the next `apply` with a port for it attaches it. */
  plug(device: string): void;
  /** Returns whether the packet arrives. `from`: the port whose server sends it, null for a host outside. */
  send(network: number, from: number | null, packet: Packet): boolean;
  /** Marks a part as missing until the network is applied again. */
  damage(network: number, what: string): void;
  /** Counts a connection as refused because of a limit. */
  crowd(network: number): void;
  /** Sets the status of a tunnel until its network is applied with other tunnels. */
  report(network: number, status: TunnelStatus): void;
  /** First line that servers send at every port; null: none. */
  says: string | null;
  /** The simulated address of the host. */
  address: string | null;
  /** UDP ports at which a simulated program of the host listens. */
  held: readonly number[];
  /** While true, all changes fail. */
  broken: boolean;
  /** While true, `observe` does not resolve; waiting calls resolve when it becomes false. */
  silent: boolean;
  /** Number of calls of `observe`. */
  readonly observations: number;
  /** Returns the last applied spec of each network. */
  images(): readonly NetworkSpec[];
}

interface Network {
  spec: Omit<NetworkSpec, "ports">;
  ports: Map<number, Port>;
  missing: string[];
  /** Digest of the rules: while it stays, so do their counts. */
  digest: string;
  rules: RuleCount[];
  rest: Count;
  spoofed: Count;
  overLimit: Count;
  attached: Set<number>;
  tunnels: Map<number, TunnelStatus>;
  /** Allowed connections by their five values. */
  flows: Map<string, Packet>;
}

const nothing: Count = { packets: 0, bytes: 0 };
/** Size of every simulated packet in bytes. */
const LENGTH = 64;
const more = (count: Count): Count => ({ packets: count.packets + 1, bytes: count.bytes + LENGTH });

const keyOf = (packet: Packet): string =>
  [packet.protocol, packet.source, packet.sourcePort, packet.destination, packet.destinationPort].join(" ");
const replyTo = (packet: Packet): Packet => ({
  protocol: packet.protocol,
  source: packet.destination,
  sourcePort: packet.destinationPort,
  destination: packet.source,
  destinationPort: packet.sourcePort,
});

const noRules = { enabled: false, allow: true, rules: [] } as const;

const specOf = ({ spec, ports }: Network): NetworkSpec => ({ ...spec, ports: [...ports.values()] });

/** Returns the connections that the rules still allow. */
function allowedFlows(flows: ReadonlyMap<string, Packet>, spec: NetworkSpec): Map<string, Packet> {
  if (flows.size === 0) return new Map();
  const judge = createJudge(spec.firewall, blocksOf(spec));
  return new Map([...flows].filter(([, flow]) => judge(flow).allow));
}

const portStatus = ({ attached }: Network, id: number): PortStatus => ({
  id,
  attached: attached.has(id),
  carrier: attached.has(id),
  sent: nothing,
  received: nothing,
});

/** Creates a simulated router. `now` returns milliseconds since 1970. */
export function createSim(now: () => number): SimulatedRouter {
  const networks = new Map<number, Network>();
  const devices = new Set<string>();
  let observations = 0;
  let isSilent = false;
  /** Closed addresses that were validated: all networks of an installation have the same. */
  let validClosed: readonly string[] | null = null;
  /** Resolvers of `observe` calls that wait while `silent`. */
  let waiting: (() => void)[] = [];

  const tunnelStatus = (spec: NetworkSpec): Map<number, TunnelStatus> =>
    new Map(
      spec.tunnels.map((tunnel) => [
        tunnel.id,
        {
          id: tunnel.id,
          state: tunnel.enabled ? "up" : "disabled",
          reason: null,
          establishedAt: tunnel.enabled && tunnel.type === "ipsec" ? now() : null,
          bytesIn: 0,
          bytesOut: 0,
          lastSeen: tunnel.enabled ? now() : null,
          localSubnets: tunnel.enabled ? tunnel.localSubnets : [],
          peerSubnets: tunnel.enabled ? tunnel.peerSubnets : [],
          peerAddress: (tunnel.type === "ipsec" ? tunnel.peer : tunnel.endpoint) ?? "",
          proposal: tunnel.enabled ? "simulated" : "",
        },
      ]),
    );

  const sim: SimulatedRouter = {
    broken: false,
    says: "SSH-2.0-simulated",
    address: "192.0.2.1",
    held: [],
    get silent() {
      return isSilent;
    },
    set silent(value) {
      isSilent = value;
      if (value) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    get observations() {
      return observations;
    },
    async apply(spec, onRepair) {
      if (sim.broken) throw new Error("the simulated host refuses every change");
      let before = networks.get(spec.id);
      // Validates what the kernel would refuse. Ports that were validated before are skipped, since there may be thousands.
      const isKnown = ({ id, mac, bandwidth, addresses }: Port): boolean => {
        const port = before?.ports.get(id);
        return port?.mac === mac && port.bandwidth === bandwidth && port.addresses.join() === addresses.join();
      };
      const closed = spec.closed === validClosed ? [] : spec.closed;
      const unknown: Port[] = [];
      await forEachInTurns(spec.ports, (port) => {
        if (!isKnown(port)) unknown.push(port);
      });
      const texts = await runInTurns(renderTexts({ ...spec, closed, ports: unknown }, false));
      validClosed = spec.closed;
      dnsmasqArguments(spec, "/");
      before = networks.get(spec.id);
      if (before !== undefined && before.spec.generation > spec.generation) return before.spec.generation;
      if (before?.spec.generation === spec.generation) for (const part of before.missing) onRepair?.(part);
      const { ports, ...rest } = spec;
      const digest = digestOf(texts.edge);
      const kept = before?.digest === digest;
      const isSameTunnels = JSON.stringify(before?.spec.tunnels) === JSON.stringify(spec.tunnels);
      const attached = new Set<number>();
      for (const { id, device } of ports)
        if (devices.delete(device) || before?.attached.has(id) === true) attached.add(id);
      networks.set(spec.id, {
        spec: rest,
        ports: new Map(ports.map((port) => [port.id, port])),
        missing: [],
        digest,
        rules: kept
          ? (before?.rules ?? [])
          : spec.firewall.enabled
            ? spec.firewall.rules.map(() => ({ ...nothing, lastHit: null }))
            : [],
        rest: kept ? (before?.rest ?? nothing) : nothing,
        spoofed: before?.spoofed ?? nothing,
        overLimit: before?.overLimit ?? nothing,
        attached,
        tunnels: before !== undefined && isSameTunnels ? before.tunnels : tunnelStatus(spec),
        flows: allowedFlows(before?.flows ?? new Map<string, Packet>(), spec),
      });
      return spec.generation;
    },
    async remove(id) {
      if (sim.broken) throw new Error("the simulated host refuses every change");
      networks.delete(id);
    },
    async applyPorts({ id, from, generation, ports, removed }) {
      if (sim.broken) throw new Error("the simulated host refuses every change");
      const network = networks.get(id);
      if (network === undefined || network.spec.generation !== from || network.missing.length > 0) return false;
      if (ports.length > 0) runAtOnce(renderTexts({ ...network.spec, firewall: noRules, ports }, false));
      for (const port of removed) {
        network.ports.delete(port);
        network.attached.delete(port);
      }
      for (const port of ports) {
        network.ports.set(port.id, port);
        if (devices.delete(port.device)) network.attached.add(port.id);
      }
      network.spec = { ...network.spec, generation };
      return true;
    },
    async observePort(network, port) {
      if (isSilent) await new Promise<void>((resolve) => waiting.push(resolve));
      const found = networks.get(network);
      return found?.ports.has(port) === true ? portStatus(found, port) : null;
    },
    async observe(only) {
      observations += 1;
      if (isSilent) await new Promise<void>((resolve) => waiting.push(resolve));
      const status = async (network: Network): Promise<NetworkStatus> => {
        const shown: PortStatus[] = [];
        await forEachInTurns(network.ports.keys(), (port) => void shown.push(portStatus(network, port)));
        return statusOf(network, shown);
      };
      const statusOf = (
        { spec, missing, rules, rest, spoofed, overLimit, tunnels }: Network,
        ports: readonly PortStatus[],
      ): NetworkStatus => ({
        id: spec.id,
        generation: spec.generation,
        complete: missing.length === 0,
        missing,
        rules: [...rules],
        rest,
        spoofed,
        overLimit,
        ports,
        tunnels: [...tunnels.values()].sort((a, b) => a.id - b.id),
        occupiedPorts: forwardsOf({ ...spec, ports: [] }).filter((port) => sim.held.includes(port)),
        sent: nothing,
        received: nothing,
      });
      const all: NetworkStatus[] = [];
      for (const network of only === undefined ? networks.values() : [networks.get(only)]) {
        if (network !== undefined) all.push(await status(network));
        if (turn.isOver()) await turn.next();
      }
      all.sort((a, b) => a.id - b.id);
      return { ready: !sim.broken, detail: sim.broken ? "simulated, and broken" : "simulated", networks: all };
    },
    async readBanner(id, address) {
      const network = networks.get(id);
      const port = [...(network?.ports.values() ?? [])].find((one) => one.addresses.includes(address));
      const isThere = port !== undefined && network?.attached.has(port.id) === true;
      return isThere && network.spec.edgeAddress !== null ? sim.says : null;
    },
    sourceTo: async () => sim.address,
    async close() {},
    plug: (device) => void devices.add(device),
    send(id, from, packet) {
      const network = networks.get(id);
      if (network === undefined) return false;
      const { attached, flows } = network;
      const spec = specOf(network);
      const sender = spec.ports.find((port) => port.id === from);
      if (from !== null && !(sender !== undefined && attached.has(from))) return false;
      if (sender !== undefined && !sender.addresses.includes(packet.source)) {
        network.spoofed = more(network.spoofed);
        return false;
      }
      const blocks = blocksOf(spec);
      const inside = (address: string) => staysInside({ ...packet, source: address, destination: address }, blocks);
      // Packets from outside must not have an inside source address.
      if (sender === undefined && inside(packet.source)) return false;
      if (
        [spec.edgeAddress, spec.v4.gateway, spec.v6?.gateway].includes(packet.destination) &&
        spec.edgeAddress !== null
      )
        return takes(openTo(openingsOf(spec), sender === undefined ? "outside" : "inside"), packet);
      const arrives =
        !inside(packet.destination) ||
        spec.ports.some((port) => attached.has(port.id) && port.addresses.includes(packet.destination));
      if (staysInside(packet, blocks)) return arrives;
      if (spec.edgeAddress === null) return false;
      if (closedOf(spec.closed, packet.source, packet.destination) !== null) return false;
      if (flows.has(keyOf(packet)) || flows.has(keyOf(replyTo(packet)))) return arrives;
      const verdict = createJudge(spec.firewall, blocks)(packet);
      const counted = verdict.rule === null ? undefined : network.rules[verdict.rule];
      if (counted !== undefined && verdict.rule !== null)
        network.rules[verdict.rule] = { ...more(counted), lastHit: now() };
      else if (spec.firewall.enabled) network.rest = more(network.rest);
      if (verdict.allow) flows.set(keyOf(packet), packet);
      return verdict.allow && arrives;
    },
    damage: (id, what) => void networks.get(id)?.missing.push(what),
    crowd(id) {
      const network = networks.get(id);
      if (network !== undefined) network.overLimit = more(network.overLimit);
    },
    images: () => [...networks.values()].map(specOf).sort((a, b) => a.id - b.id),
    report: (id, status) => void networks.get(id)?.tunnels.set(status.id, status),
  };
  return sim;
}
