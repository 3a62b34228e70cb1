/**
 * Converts arguments and results between the methods of the driver interfaces and the bodies of requests and responses: bytes become base64,
 * ports and their states become rows, and the device of a port is left out, because the agent knows it from the id.
 */
import type { MachineSpec, SeedFile } from "../drivers/machine/interface.ts";
import type { NetworkStatus, Port, PortStatus, RouterStatus } from "../drivers/router/interface.ts";
import type { Machine } from "./contract/machines.ts";
import type { PortList, PortRow } from "./contract/router.ts";
import type { PortStatusRow } from "./contract/routerstatus.ts";
import { type KeptPorts, toRow } from "./portlist.ts";

/** Returns the value of an argument as it is sent. */
export function toBody(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("seed" in value) {
    const machine = value as MachineSpec;
    return { ...machine, seed: machine.seed.map(({ name, content }) => ({ name, content: encode(content) })) };
  }
  // A list with a key consists of rows already.
  if ("ports" in value && Array.isArray(value.ports))
    return { ...value, ports: value.ports.map((port: Port | PortRow) => ("mac" in port ? toRow(port) : port)) };
  return value;
}

/** Returns the argument that the driver gets. `deviceOf` names the device of a port; `kept` has the lists of ports with a key. */
export function fromBody(value: unknown, deviceOf: (nic: number) => string, kept: KeptPorts): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("seed" in value) {
    const machine = value as Machine;
    return { ...machine, seed: machine.seed.map(({ name, content }) => ({ name, content: decode(content) })) };
  }
  if ("ports" in value) {
    const { id: network, ports } = value as { readonly id: number; readonly ports: PortList };
    const fromRow = ([id, mac, addresses, bandwidth, name]: PortRow): Port => {
      return { id, device: deviceOf(id), mac, addresses, bandwidth, name };
    };
    return { ...value, ports: kept(network, ports, fromRow) };
  }
  return value;
}

/** Returns the result of a driver as it is sent. */
export function toAnswer(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("attached" in value) return toStatusRow(value as PortStatus);
  if (!("networks" in value)) return value;
  const status = value as RouterStatus;
  const networks = status.networks.map((network) => ({ ...network, ports: network.ports.map(toStatusRow) }));
  return { ...status, networks };
}

/** Returns the checked result of the verb as the caller gets it. */
export function fromAnswer(name: string, value: unknown): unknown {
  if (name === "router.observePort") return value === null ? null : fromStatusRow(value as PortStatusRow);
  if (name !== "router.observe") return value;
  type Sent = Omit<NetworkStatus, "ports"> & { readonly ports: readonly PortStatusRow[] };
  const status = value as Omit<RouterStatus, "networks"> & { readonly networks: readonly Sent[] };
  const networks = status.networks.map((network) => ({ ...network, ports: network.ports.map(fromStatusRow) }));
  return { ...status, networks };
}

const toStatusRow = ({ id, attached, carrier, sent, received }: PortStatus): PortStatusRow => [
  id,
  attached,
  carrier,
  sent.packets,
  sent.bytes,
  received.packets,
  received.bytes,
];
const fromStatusRow = ([id, attached, carrier, ...counts]: PortStatusRow): PortStatus => ({
  id,
  attached,
  carrier,
  sent: { packets: counts[0], bytes: counts[1] },
  received: { packets: counts[2], bytes: counts[3] },
});

const encode = (content: SeedFile["content"]): string | { readonly base64: string } =>
  typeof content === "string" ? content : { base64: Buffer.from(content).toString("base64") };

const decode = (content: string | { readonly base64: string }): SeedFile["content"] =>
  typeof content === "string" ? content : Buffer.from(content.base64, "base64");
