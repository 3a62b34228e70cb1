/**
 * Networks without a kernel, for tests and for machines where nothing may be changed: the same images, refusals, generations and
 * counters, and packets that are judged as the real rules would. Whoever holds the object plugs servers in, sends packets and
 * breaks things.
 */

import type { Count, NetworkSpec, NetworkStatus, Port, Router, RuleCount, TunnelStatus } from "../interface.ts";
import { dnsmasqArguments } from "../linux/dhcp.ts";
import { blocksOf, renderTexts } from "../linux/texts.ts";
import { closedOf } from "../model/closedaddresses.ts";
import { openingsOf, openTo, takes } from "../model/openings.ts";
import { createJudge, type Packet, staysInside } from "../model/verdict.ts";
import { forwardsOf } from "../nft/nat.ts";

export interface SimulatedRouter extends Router {
  /** A device of that name is on the machine; the next `apply` that wants it takes it in. */
  plug(device: string): void;
  /** Whether the packet arrives. `from`: the port whose server sends it, null for somebody outside. */
  send(network: number, from: number | null, packet: Packet): boolean;
  /** From now on something is missing, until the network is applied again. */
  damage(network: number, what: string): void;
  /** A connection is refused since there are too many. */
  crowd(network: number): void;
  /** What a tunnel says of itself, until its network is applied with other tunnels. */
  report(network: number, status: TunnelStatus): void;
  /** What servers say at every port; null: nothing. */
  says: string | null;
  /** The machine's address, as if it had one. */
  address: string | null;
  /** UDP ports that a program of the machine has, as if there were one. */
  held: readonly number[];
  /** While true nothing works, as if the machine refused everything. */
  broken: boolean;
  /** While true `observe` does not come back; then what was asked meanwhile is answered. */
  silent: boolean;
  /** How often it was observed. */
  readonly looks: number;
  /** What `apply` was given last, of each network that is there. */
  images(): readonly NetworkSpec[];
}

interface Network {
  spec: NetworkSpec;
  missing: string[];
  rules: RuleCount[];
  rest: Count;
  spoofed: Count;
  overLimit: Count;
  attached: Set<number>;
  tunnels: Map<number, TunnelStatus>;
  /** Connections that were let in, by their five values. */
  flows: Map<string, Packet>;
}

const nothing: Count = { packets: 0, bytes: 0 };
/** Every packet counts as one of this length. */
const LENGTH = 64;
const more = (count: Count): Count => ({ packets: count.packets + 1, bytes: count.bytes + LENGTH });

const keyOf = (packet: Packet): string =>
  [packet.protocol, packet.source, packet.sourcePort, packet.destination, packet.destinationPort].join(" ");
const answerTo = (packet: Packet): Packet => ({
  protocol: packet.protocol,
  source: packet.destination,
  sourcePort: packet.destinationPort,
  destination: packet.source,
  destinationPort: packet.sourcePort,
});

/** `now` gives milliseconds since 1970. */
export function createSim(now: () => number): SimulatedRouter {
  const networks = new Map<number, Network>();
  const devices = new Set<string>();
  let looks = 0;
  let isSilent = false;
  /** Of those who asked during the silence. */
  let answers: (() => void)[] = [];

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
      for (const answer of answers) answer();
      answers = [];
    },
    get looks() {
      return looks;
    },
    async apply(spec, tell) {
      if (sim.broken) throw new Error("the simulated machine refuses");
      const before = networks.get(spec.id);
      // What the kernel would refuse is refused here too. Ports that were fit for it are still, and there may be thousands.
      const known = new Map(before?.spec.ports.map((port) => [port.id, port]));
      const isKnown = ({ id, mac, bandwidth, addresses }: Port): boolean => {
        const port = known.get(id);
        return port?.mac === mac && port.bandwidth === bandwidth && port.addresses.join() === addresses.join();
      };
      renderTexts({ ...spec, ports: spec.ports.filter((port) => !isKnown(port)) }, false);
      dnsmasqArguments(spec, "/");
      if (before !== undefined && before.spec.generation > spec.generation) return before.spec.generation;
      if (before?.spec.generation === spec.generation) for (const part of before.missing) tell?.(part);
      const same = (part: (spec: NetworkSpec) => unknown) =>
        before !== undefined && JSON.stringify(part(before.spec)) === JSON.stringify(part(spec));
      const kept = same((one) => [one.firewall, one.v4.cidr, one.v6?.cidr]);
      const judge = createJudge(spec.firewall, blocksOf(spec));
      const attached = new Set<number>();
      for (const { id, device } of spec.ports)
        if (devices.delete(device) || before?.attached.has(id) === true) attached.add(id);
      networks.set(spec.id, {
        spec,
        missing: [],
        rules: kept
          ? (before?.rules ?? [])
          : spec.firewall.enabled
            ? spec.firewall.rules.map(() => ({ ...nothing, lastHit: null }))
            : [],
        rest: kept ? (before?.rest ?? nothing) : nothing,
        spoofed: before?.spoofed ?? nothing,
        overLimit: before?.overLimit ?? nothing,
        attached,
        tunnels: same((one) => one.tunnels) ? (before?.tunnels ?? new Map<number, TunnelStatus>()) : tunnelStatus(spec),
        flows: new Map([...(before?.flows ?? [])].filter(([, flow]) => judge(flow).allow)),
      });
      return spec.generation;
    },
    async remove(id) {
      if (sim.broken) throw new Error("the simulated machine refuses");
      networks.delete(id);
    },
    async observe() {
      looks += 1;
      if (isSilent) await new Promise<void>((resolve) => answers.push(resolve));
      const status = ({
        spec,
        missing,
        attached,
        rules,
        rest,
        spoofed,
        overLimit,
        tunnels,
      }: Network): NetworkStatus => ({
        id: spec.id,
        generation: spec.generation,
        complete: missing.length === 0,
        missing,
        rules: [...rules],
        rest,
        spoofed,
        overLimit,
        ports: spec.ports.map(({ id }) => ({
          id,
          attached: attached.has(id),
          carrier: attached.has(id),
          sent: nothing,
          received: nothing,
        })),
        tunnels: [...tunnels.values()].sort((a, b) => a.id - b.id),
        occupiedPorts: forwardsOf(spec).filter((port) => sim.held.includes(port)),
        sent: nothing,
        received: nothing,
      });
      const all = [...networks.values()].map(status).sort((a, b) => a.id - b.id);
      return { ready: !sim.broken, detail: sim.broken ? "simulated, and broken" : "simulated", networks: all };
    },
    async readBanner(id, address) {
      const network = networks.get(id);
      const port = network?.spec.ports.find((one) => one.addresses.includes(address));
      const isThere = port !== undefined && network?.attached.has(port.id) === true;
      return isThere && network.spec.edgeAddress !== null ? sim.says : null;
    },
    sourceTo: async () => sim.address,
    async close() {},
    plug: (device) => void devices.add(device),
    send(id, from, packet) {
      const network = networks.get(id);
      if (network === undefined) return false;
      const { spec, attached, flows } = network;
      const sender = spec.ports.find((port) => port.id === from);
      if (from !== null && !(sender !== undefined && attached.has(from))) return false;
      if (sender !== undefined && !sender.addresses.includes(packet.source)) {
        network.spoofed = more(network.spoofed);
        return false;
      }
      const blocks = blocksOf(spec);
      const inside = (address: string) => staysInside({ ...packet, source: address, destination: address }, blocks);
      // Nobody outside poses as somebody inside.
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
      if (flows.has(keyOf(packet)) || flows.has(keyOf(answerTo(packet)))) return arrives;
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
    images: () => [...networks.values()].map(({ spec }) => spec).sort((a, b) => a.id - b.id),
    report: (id, status) => void networks.get(id)?.tunnels.set(status.id, status),
  };
  return sim;
}
