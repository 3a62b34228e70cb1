/**
 * What things are called on the machine. Interface names have 15 characters and are the machine's until they are moved, so each
 * carries the tag of the installation and an id in base 36: two installations, or two tests at once, never meet. Inside a
 * network's own namespace names are short and always the same.
 */
import { createHash } from "node:crypto";

/** Inside every namespace. */
export const BRIDGE = "br0";
export const UPLINK = "up0";
/** The machine's end of every uplink, the same on all of them, so that there is no transfer network to allocate. */
export const NEXT_HOP = "169.254.1.1";
export const NEXT_HOP6 = "fe80::1";

export const text36 = (id: number): string => id.toString(36);

/** Three characters that tell installations on one machine apart, by their data folder. */
export const tagOf = (folder: string): string =>
  BigInt(`0x${createHash("sha256").update(folder).digest("hex").slice(0, 10)}`)
    .toString(36)
    .padStart(3, "0")
    .slice(-3);

export const namespaceOf = (tag: string, network: number): string => `brume-${tag}-${text36(network)}`;

/** The network of a namespace of this installation, else null. */
export function networkOf(tag: string, namespace: string): number | null {
  const found = namespace.startsWith(`brume-${tag}-`) ? namespace.slice(`brume-${tag}-`.length) : "";
  const id = Number.parseInt(found, 36);
  return Number.isSafeInteger(id) && text36(id) === found ? id : null;
}

function fit(name: string): string {
  if (name.length > 15) throw new Error(`interface name ${name} is longer than 15 characters`);
  return name;
}

/** Start of the names of all our uplinks on the machine. */
export const uplinkPrefix = (tag: string): string => `b${tag}u`;
export const uplinkOf = (tag: string, network: number): string => fit(uplinkPrefix(tag) + text36(network));
/** Unique on the machine, since the folder of WireGuard's sockets is. */
export const wireguardOf = (tag: string, network: number): string => fit(`b${tag}w${text36(network)}`);
export const portOf = (id: number): string => fit(`p${text36(id)}`);
/** Carries what a port's server sends, so that it can be slowed down. */
export const intakeOf = (id: number): string => fit(`i${text36(id)}`);
export const hostTable = (tag: string): string => `brume_${tag}`;
