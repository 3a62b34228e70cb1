/** Converts arguments between the methods of the driver interfaces and the bodies of requests. */
import type { MachineSpec, SeedFile } from "../drivers/machine/interface.ts";
import type { NetworkSpec } from "../drivers/router/interface.ts";
import type { Machine } from "./contract/machines.ts";

/** Returns bytes of a seed file as base64, and a port without its device: the agent knows the device from the id. */
export function toBody(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("seed" in value) {
    const machine = value as MachineSpec;
    return { ...machine, seed: machine.seed.map(({ name, content }) => ({ name, content: encode(content) })) };
  }
  if ("ports" in value) {
    const network = value as NetworkSpec;
    return {
      ...network,
      ports: network.ports.map(({ id, mac, addresses, bandwidth, name }) => ({ id, mac, addresses, bandwidth, name })),
    };
  }
  return value;
}

/** Returns the spec that the driver gets. `deviceOf` names the device of a port. */
export function fromBody(value: unknown, deviceOf: (nic: number) => string): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("seed" in value) {
    const machine = value as Machine;
    return { ...machine, seed: machine.seed.map(({ name, content }) => ({ name, content: decode(content) })) };
  }
  if ("ports" in value) {
    const network = value as Omit<NetworkSpec, "ports"> & { readonly ports: readonly { readonly id: number }[] };
    return { ...network, ports: network.ports.map((port) => ({ ...port, device: deviceOf(port.id) })) };
  }
  return value;
}

const encode = (content: SeedFile["content"]): string | { readonly base64: string } =>
  typeof content === "string" ? content : { base64: Buffer.from(content).toString("base64") };

const decode = (content: string | { readonly base64: string }): SeedFile["content"] =>
  typeof content === "string" ? content : Buffer.from(content.base64, "base64");
