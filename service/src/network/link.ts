/**
 * A server's place in a network: its address, its hardware address and its bandwidth. Links are made and ended in the transaction
 * of whoever makes and ends servers; from then on the network's reconciler plugs them in and lets them out.
 */
import { ApiError, errorAt, fieldError, invalidFields } from "../base/error.ts";
import type { Tx } from "../store/db.ts";
import {
  addressOf,
  cidrOf,
  countSeats,
  findSeat,
  pack,
  readAddress4,
  seatsOf,
  showAddress,
  unpack,
} from "./model/plan.ts";
import * as table from "./table.ts";

export interface LinkSpec {
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
 * Takes an address and makes the link; the caller holds `lockNetwork` and nudges the network's reconciler. Throws `address_taken`,
 * `network_full`, `network_deleting`, `already_linked`, or `validation_failed` for an address that is not of this network.
 */
export async function reserveLink(tx: Tx, network: table.NetworkRow, input: LinkSpec): Promise<table.LinkRow> {
  if (network.state === "Deleting") throw new ApiError("network_deleting", `Network ${network.id} is being deleted.`);
  const own = await table.listLinksOfServer(tx, input.server);
  if (own.some((link) => link.network_id === network.id))
    throw new ApiError("already_linked", `Server ${input.server} is linked to network ${network.id} already.`);
  const ip = await takeAddress(tx, network, input);
  return table.insertLink(tx, {
    network_id: network.id,
    server_id: input.server,
    host_name: input.hostName,
    ip,
    bandwidth: input.bandwidth ?? (network.kind === "public" ? network.bandwidth : defaultBandwidth[network.kind]),
    state: "New",
    created: input.now,
  });
}

const full = (network: table.NetworkRow, wanted: number, free: number): ApiError => {
  const limit = countSeats(network, network.gateway);
  const detail = `Places in network ${network.id} (${cidrOf(network)}): wanted ${wanted}, free ${free}, limit ${limit}.`;
  return new ApiError("network_full", detail);
};

/** Throws `network_full` unless so many more servers fit into it. The caller holds `lockNetwork`. */
export async function requireSeats(tx: Tx, network: table.NetworkRow, wanted: number): Promise<void> {
  const { first, last } = seatsOf(network);
  const taken = await table.countAddresses(tx, network.id, pack(4, first), pack(4, last));
  const free = countSeats(network, network.gateway) - taken;
  if (wanted > free) throw full(network, wanted, free);
}

async function takeAddress(tx: Tx, network: table.NetworkRow, input: LinkSpec): Promise<string> {
  if (!input.ip) {
    const count = (first: string, last: string) => table.countAddresses(tx, network.id, first, last);
    const ip = await findSeat(network, network.gateway, count);
    if (ip === null) throw full(network, 1, 0);
    return ip;
  }
  const wanted = readAddress4(input.ip);
  const seats = seatsOf(network);
  const field = input.pointer.slice(1);
  if (wanted === null || wanted < seats.first || wanted > seats.last)
    throw invalidFields([
      fieldError(
        input.pointer,
        wanted === null ? "format_invalid" : "out_of_range",
        `${field} must be an address from ${addressOf(4, seats.first)} to ${addressOf(4, seats.last)}, not "${input.ip.slice(0, 64)}".`,
      ),
    ]);
  const ip = pack(4, wanted);
  // Whose it is may be another project's secret.
  if ((await table.findLinkAt(tx, network.id, ip)) !== undefined)
    throw errorAt("address_taken", input.pointer, `${showAddress(ip)} of network ${network.id} is another server's.`);
  if (network.gateway !== null && unpack(network.gateway) === wanted)
    throw errorAt("address_taken", input.pointer, `${showAddress(ip)} is the gateway of network ${network.id}.`);
  return ip;
}
