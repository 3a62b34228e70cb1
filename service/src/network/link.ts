/**
 * Links of servers to networks: IP address, host name and bandwidth. The server routes and flows create and delete links in their own
 * transactions; the network's reconciler then connects the NICs on the host.
 */
import { ApiError, errorAt, fieldError, invalidFields } from "../base/error.ts";
import { reserveEarly, type Tx } from "../store/db.ts";
import { type AddressCount, listAddressCounts } from "./addresstable.ts";
import * as linkTable from "./linktable.ts";
import {
  addressOf,
  cidrOf,
  countServerAddresses,
  findFreeAddress,
  findFreeBlock,
  findFreeIn,
  pack,
  readAddress4,
  serverRangeOf,
  showAddress,
  unpack,
} from "./model/plan.ts";
import * as table from "./table.ts";

/** Input of `reserveLink`. */
export interface LinkSpec {
  /** Id of the server. */
  readonly server: number;
  /** Letters, digits and hyphens. */
  readonly hostName: string;
  /** IPv4 address inside the network; absent or empty: the lowest free one. */
  readonly ip?: string | undefined;
  /** Mbit/s; undefined: the default of the kind of network. */
  readonly bandwidth?: number | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** JSON pointer of the request field with the address, such as `/NetworkIP`. */
  readonly pointer: string;
}

/** Default bandwidth of a link in Mbit/s. Links of public networks have that of their network. */
export const defaultBandwidth = { shared: 100, private: 1000 } as const;

/**
 * Reserves an address and inserts the link. The caller holds `lockNetwork` and requests the network's reconcile. Throws `address_taken`,
 * `network_full`, `network_deleting`, `already_linked`, or `validation_failed` for an address outside of the network.
 */
export async function reserveLink(
  tx: Tx,
  networkId: number,
  input: LinkSpec,
): Promise<[link: linkTable.LinkRow, network: table.NetworkRow]> {
  const [network, links, counts] = await Promise.all([
    table.findNetwork(tx, networkId),
    linkTable.listLinksOfServer(tx, input.server),
    listAddressCounts(tx, networkId),
  ]);
  if (network === undefined) throw new Error(`there is no network ${networkId}`);
  if (network.state === "Deleting") throw new ApiError("network_deleting", `Network ${network.id} is being deleted.`);
  if (links.some((link) => link.network_id === network.id))
    throw new ApiError("already_linked", `Server ${input.server} is already linked to network ${network.id}.`);
  const reserved = reserveEarly(tx, "link", 1);
  const ip = await takeAddress(tx, network, input, counts);
  const [id = 0] = await reserved();
  const link: linkTable.LinkRow = {
    id,
    network_id: network.id,
    server_id: input.server,
    host_name: input.hostName,
    ip,
    bandwidth: input.bandwidth ?? (network.kind === "public" ? network.bandwidth : defaultBandwidth[network.kind]),
    state: "New",
    created: input.now,
  };
  linkTable.addLink(tx, link);
  return [link, network];
}

const networkFull = (network: table.NetworkRow, wanted: number, free: number): ApiError => {
  const limit = countServerAddresses(network, network.gateway);
  const addresses = `requested ${wanted}, free ${free}, limit ${limit}`;
  return new ApiError("network_full", `Addresses in network ${network.id} (${cidrOf(network)}): ${addresses}.`);
};

/** Throws `network_full` unless the network has `wanted` free addresses for servers. The caller holds `lockNetwork`. */
export async function requireFreeAddresses(tx: Tx, network: table.NetworkRow, wanted: number): Promise<void> {
  const counts = await listAddressCounts(tx, network.id);
  const taken = counts.reduce((sum, count) => sum + count.taken, 0);
  const free = countServerAddresses(network, network.gateway) - taken;
  if (wanted > free) throw networkFull(network, wanted, free);
}

/** Returns the requested address, or the lowest free one, as it is stored. */
async function takeAddress(
  tx: Tx,
  network: table.NetworkRow,
  input: LinkSpec,
  counts: readonly AddressCount[],
): Promise<string> {
  if (!input.ip) {
    const part = findFreeBlock(network, network.gateway, counts);
    if (part !== null) {
      const taken = await linkTable.listAddresses(tx, network.id, pack(4, part.first), pack(4, part.last));
      const ip = findFreeIn(part, network.gateway, new Set(taken));
      if (ip !== null) return ip;
    }
    const count = (first: string, last: string) => linkTable.countAddresses(tx, network.id, first, last);
    // The numbers may be wrong if another program has changed the database; the links are always right.
    const counted = await findFreeAddress(network, network.gateway, count);
    if (counted === null) throw networkFull(network, 1, 0);
    return counted;
  }
  const wanted = readAddress4(input.ip);
  const range = serverRangeOf(network);
  const field = input.pointer.slice(1);
  if (wanted === null || wanted < range.first || wanted > range.last)
    throw invalidFields([
      fieldError(
        input.pointer,
        wanted === null ? "format_invalid" : "out_of_range",
        `${field} must be an address from ${addressOf(4, range.first)} to ${addressOf(4, range.last)}, not "${input.ip.slice(0, 64)}".`,
      ),
    ]);
  const ip = pack(4, wanted);
  // The error does not name the other server: it may belong to another project.
  if ((await linkTable.findLinkAt(tx, network.id, ip)) !== undefined)
    throw errorAt(
      "address_taken",
      input.pointer,
      `${showAddress(ip)} is already used by another server in network ${network.id}.`,
    );
  if (network.gateway !== null && unpack(network.gateway) === wanted)
    throw errorAt("address_taken", input.pointer, `${showAddress(ip)} is the gateway of network ${network.id}.`);
  return ip;
}
