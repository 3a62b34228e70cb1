/**
 * Names of objects on the host. Interface names have at most 15 characters and are shared by the host until a device is moved. So each
 * contains the tag of the installation and an id in base 36, and two installations, or two tests at once, never conflict. Inside a
 * network's own namespace names are short and always the same.
 */
import { createHash } from "node:crypto";

/** Name of the bridge in every namespace. */
export const BRIDGE = "br0";
/** Name of the namespace's end of the uplink. */
export const UPLINK = "up0";
/** Address of the host's end of every uplink; all uplinks share it, so that no transfer network must be allocated. */
export const NEXT_HOP = "169.254.1.1";
/** The same for IPv6. */
export const NEXT_HOP6 = "fe80::1";

/** Returns an id in base 36. */
export const text36 = (id: number): string => id.toString(36);

/** Returns three characters that identify an installation on the host, derived from its data folder. */
export const tagOf = (folder: string): string =>
  BigInt(`0x${createHash("sha256").update(folder).digest("hex").slice(0, 10)}`)
    .toString(36)
    .padStart(3, "0")
    .slice(-3);

/** Returns the name of a network's namespace. */
export const namespaceOf = (tag: string, network: number): string => `brume-${tag}-${text36(network)}`;

/** Returns the network of a namespace of this installation, else null. */
export function networkOf(tag: string, namespace: string): number | null {
  const found = namespace.startsWith(`brume-${tag}-`) ? namespace.slice(`brume-${tag}-`.length) : "";
  const id = Number.parseInt(found, 36);
  return Number.isSafeInteger(id) && text36(id) === found ? id : null;
}

function fit(name: string): string {
  if (name.length > 15) throw new Error(`interface name ${name} is longer than 15 characters`);
  return name;
}

/** Returns the prefix of the names of all uplinks on the host. */
export const uplinkPrefix = (tag: string): string => `b${tag}u`;
/** Returns the name of the host's end of a network's uplink. */
export const uplinkOf = (tag: string, network: number): string => fit(uplinkPrefix(tag) + text36(network));
/**
 * Returns the name of a network's WireGuard device. It is unique on the host, because all installations share the folder of WireGuard's
 * sockets.
 */
export const wireguardOf = (tag: string, network: number): string => fit(`b${tag}w${text36(network)}`);
/** Returns the name of a port's device in the namespace. */
export const portOf = (id: number): string => fit(`p${text36(id)}`);
/** Returns the name of the `ifb` device that limits the packets from a port's server. */
export const intakeOf = (id: number): string => fit(`i${text36(id)}`);
/** Returns the name of the installation's nftables table on the host. */
export const hostTable = (tag: string): string => `brume_${tag}`;
