/** A network with everything that belongs to it, as of one moment. */
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

/** Looks once more at most this often when a network changes while it is read. */
const mostLooks = 5;

/** Three queries see one state only if the generation is the same behind them; in a transaction it always is. */
export async function readAggregate(
  db: Reader,
  row: table.NetworkRow | undefined,
): Promise<NetworkAggregate | undefined> {
  let network = row;
  for (let look = 1; network !== undefined; look++) {
    const { id, generation } = network;
    const links = await table.listLinks(db, id);
    const tunnels = await table.listTunnels(db, id);
    const now = await table.findGeneration(db, id);
    if (now !== undefined && (now === generation || look === mostLooks)) return { network, links, tunnels };
    network = await table.findNetwork(db, id);
  }
  return undefined;
}

/** The tunnels with their keys, for the router. */
export const specsOf = ({ tunnels }: NetworkAggregate, sealer: Sealer): TunnelSpec[] =>
  tunnels.map((row) => toSpec(readTunnel(row), openKey(row, sealer)));
