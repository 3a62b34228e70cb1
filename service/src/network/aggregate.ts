/** The network aggregate: a network with its links and tunnels, read as one consistent state. */
import type { Sealer } from "../base/secret.ts";
import type { TunnelSpec } from "../drivers/router/interface.ts";
import type { Reader } from "../store/db.ts";
import { openKey, readTunnel, toSpec } from "./model/vpn/tunnel.ts";
import * as table from "./table.ts";

export interface NetworkAggregate {
  readonly network: table.NetworkRow;
  readonly links: readonly table.LinkRow[];
  readonly tunnels: readonly table.TunnelRow[];
}

/** Attempts to read an aggregate that changes while it is read; the last one is returned in any case. */
const maxAttempts = 5;

/**
 * Returns the aggregate of `row`; undefined if the network is deleted. The queries have read one state if the generation is the
 * same after them, which it always is in a transaction. Otherwise they are repeated.
 */
export async function readAggregate(
  db: Reader,
  row: table.NetworkRow | undefined,
): Promise<NetworkAggregate | undefined> {
  let network = row;
  for (let attempt = 1; network !== undefined; attempt++) {
    const { id, generation } = network;
    const links = await table.listLinks(db, id);
    const tunnels = await table.listTunnels(db, id);
    const now = await table.findGeneration(db, id);
    if (now !== undefined && (now === generation || attempt === maxAttempts)) return { network, links, tunnels };
    network = await table.findNetwork(db, id);
  }
  return undefined;
}

/** Returns the specs of the tunnels for the router driver, with decrypted keys. */
export const specsOf = ({ tunnels }: NetworkAggregate, sealer: Sealer): TunnelSpec[] =>
  tunnels.map((row) => toSpec(readTunnel(row), openKey(row, sealer)));
