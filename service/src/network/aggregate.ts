/** The network aggregate: a network with its links and tunnels, read as one consistent state. */
import { readConsistently } from "../base/consistent.ts";
import type { Sealer } from "../base/secret.ts";
import { readPages, turn } from "../base/turn.ts";
import type { TunnelSpec } from "../drivers/router/interface.ts";
import type { Reader, Store } from "../store/db.ts";
import { hasManyLinks, type LinkRow, linksPerPage, listLinks, pageLinks } from "./linktable.ts";
import { openKey, readTunnel, toSpec } from "./model/vpn/tunnel.ts";
import * as table from "./table.ts";

/** A network with its links and tunnels of the same generation. */
export interface NetworkAggregate {
  readonly network: table.NetworkRow;
  readonly links: readonly LinkRow[];
  readonly tunnels: readonly table.TunnelRow[];
}

/** Attempts to read an aggregate that changes while it is read; the last one is returned in any case. */
const maxAttempts = 5;

/** Returns the aggregate of `row`; undefined if the network is deleted. Every change of a part raises the generation. */
export async function readAggregate(
  db: Reader,
  row: table.NetworkRow | undefined,
): Promise<NetworkAggregate | undefined> {
  if (row === undefined) return undefined;
  const { id } = row;
  const found = await readConsistently({
    row,
    find: () => table.findNetwork(db, id),
    version: ({ generation }) => generation,
    current: () => table.findGeneration(db, id),
    async read() {
      const [links, tunnels] = await Promise.all([listLinks(db, id), table.listTunnels(db, id)]);
      return { links, tunnels };
    },
    attempts: maxAttempts,
  });
  return found && { network: found.row, ...found.rest };
}

/** Returns the links of a network, by id, in slices. `db` is a snapshot: links may change between two slices. */
async function readLinks(db: Reader, network: number): Promise<LinkRow[]> {
  const found: LinkRow[] = [];
  for (let after = ""; ; ) {
    const page = await pageLinks.all(db, { network, after });
    found.push(...page);
    if (page.length < linksPerPage) return found.sort((one, other) => one.id - other.id);
    after = page.at(-1)?.ip ?? after;
    if (turn.isOver()) await turn.next();
  }
}

/** Returns the same for a network that can have thousands of links, in slices. */
export async function readLargeAggregate(
  store: Pick<Store, "read" | "snapshot">,
  row: table.NetworkRow,
): Promise<NetworkAggregate | undefined> {
  const { id } = row;
  if (!(await hasManyLinks(store.read, id))) return readAggregate(store.read, row);
  const { read, close } = await store.snapshot();
  try {
    const network = await table.findNetwork(read, id);
    if (network === undefined) return undefined;
    return { network, links: await readLinks(read, id), tunnels: await table.listTunnels(read, id) };
  } finally {
    await close();
  }
}

/** Returns the states of all networks, by id, in slices; the host must have exactly these networks. */
export async function listNetworkStates(db: Reader): Promise<table.NetworkStateRow[]> {
  const all: table.NetworkStateRow[] = [];
  const limit = table.statesPerPage;
  for await (const page of readPages(limit, (after) => table.pageNetworkStates.all(db, { after, limit })))
    all.push(...page);
  return all;
}

/** Returns the specs of the tunnels for the router driver, with decrypted keys. */
export const specsOf = ({ tunnels }: NetworkAggregate, sealer: Sealer): TunnelSpec[] =>
  tunnels.map((row) => toSpec(readTunnel(row), openKey(row, sealer)));
