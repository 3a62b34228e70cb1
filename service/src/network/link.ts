/**
 * A server's place in a network: its address, its hardware address and its bandwidth. Links are made and ended in the transaction
 * of whoever makes and ends servers; from then on the network's keeper plugs them in and lets them out.
 */
import { Fault, faultAt, fieldFault, invalidFields } from "../base/fault.ts";
import type { Tx } from "../store/db.ts";
import { addressOf, cidrOf, countSeats, findSeat, pack, readAddress4, seatsOf, showAddress, unpack } from "./plan.ts";
import * as table from "./table.ts";

/** `02:42` and the link's id: locally administered (IEEE 802), the same for the link's whole life, and nobody else's. */
export function macOf(link: number): string {
  const digits = link.toString(16).padStart(8, "0");
  return `02:42:${digits.slice(0, 2)}:${digits.slice(2, 4)}:${digits.slice(4, 6)}:${digits.slice(6, 8)}`;
}

export interface LinkWish {
  readonly server: number;
  /** Letters, digits and hyphens. */
  readonly hostName: string;
  /** IPv4 address inside the network; undefined: the lowest free one. */
  readonly ip?: string | undefined;
  /** Mbit/s; undefined: what links of this kind of network get. */
  readonly bandwidth?: number | undefined;
  readonly now: number;
  /** Of the body's field that names the address, such as `/NetworkIP`. */
  readonly pointer: string;
}

export const defaultBandwidth = { shared: 100, private: 1000 } as const;

/**
 * Takes an address and makes the link; the caller holds `lockNetwork` and nudges the network's keeper. Throws `address_taken`,
 * `network_full`, `network_deleting`, `already_linked`, or `validation_failed` for an address that is not of this network.
 */
export async function reserveLink(tx: Tx, network: table.NetworkRow, wish: LinkWish): Promise<table.LinkRow> {
  if (network.state === "Deleting") throw new Fault("network_deleting", `Network ${network.id} is being deleted.`);
  const own = await table.listLinksOfServer(tx, wish.server);
  if (own.some((link) => link.network_id === network.id))
    throw new Fault("already_linked", `Server ${wish.server} is linked to network ${network.id} already.`);
  const ip = await takeAddress(tx, network, wish);
  return table.insertLink(tx, {
    network_id: network.id,
    server_id: wish.server,
    host_name: wish.hostName,
    ip,
    bandwidth: wish.bandwidth ?? (network.kind === "public" ? network.bandwidth : defaultBandwidth[network.kind]),
    state: "New",
    created: wish.now,
  });
}

const full = (network: table.NetworkRow, wanted: number, free: number): Fault => {
  const limit = countSeats(network, network.gateway);
  const detail = `Places in network ${network.id} (${cidrOf(network)}): wanted ${wanted}, free ${free}, limit ${limit}.`;
  return new Fault("network_full", detail);
};

/** Throws `network_full` unless so many more servers fit into it. The caller holds `lockNetwork`. */
export async function holdSeats(tx: Tx, network: table.NetworkRow, wanted: number): Promise<void> {
  const { first, last } = seatsOf(network);
  const taken = await table.countAddresses(tx, network.id, pack(4, first), pack(4, last));
  const free = countSeats(network, network.gateway) - taken;
  if (wanted > free) throw full(network, wanted, free);
}

async function takeAddress(tx: Tx, network: table.NetworkRow, wish: LinkWish): Promise<string> {
  if (!wish.ip) {
    const count = (first: string, last: string) => table.countAddresses(tx, network.id, first, last);
    const ip = await findSeat(network, network.gateway, count);
    if (ip === null) throw full(network, 1, 0);
    return ip;
  }
  const wanted = readAddress4(wish.ip);
  const seats = seatsOf(network);
  const field = wish.pointer.slice(1);
  if (wanted === null || wanted < seats.first || wanted > seats.last)
    throw invalidFields([
      fieldFault(
        wish.pointer,
        wanted === null ? "format_invalid" : "out_of_range",
        `${field} must be an address from ${addressOf(4, seats.first)} to ${addressOf(4, seats.last)}, not "${wish.ip.slice(0, 64)}".`,
      ),
    ]);
  const ip = pack(4, wanted);
  // Whose it is may be another project's secret.
  if ((await table.findLinkAt(tx, network.id, ip)) !== undefined)
    throw faultAt("address_taken", wish.pointer, `${showAddress(ip)} of network ${network.id} is another server's.`);
  if (network.gateway !== null && unpack(network.gateway) === wanted)
    throw faultAt("address_taken", wish.pointer, `${showAddress(ip)} is the gateway of network ${network.id}.`);
  return ip;
}
