/** Links of a server with their networks, and their form in responses. */
import type { ServerLink } from "@brume/api/server.ts";
import type { SshKeyRow } from "../catalog/table.ts";
import { type LinkRow, listLinksOfServer } from "../network/linktable.ts";
import { address6Of, macOf, maskOf, prefixOf, showAddress } from "../network/model/plan.ts";
import { findNetwork, type NetworkRow } from "../network/table.ts";
import type { Reader } from "../store/db.ts";
import { listServerKeys } from "./table.ts";

/** A row of `link`, joined with its network. */
export interface LinkedNetwork {
  readonly link: LinkRow;
  readonly network: NetworkRow;
}

/** Returns the links of a server in order of id. */
export async function listLinkedNetworks(db: Reader, server: number): Promise<LinkedNetwork[]> {
  const links = await listLinksOfServer(db, server);
  const networks = await Promise.all(links.map((link) => findNetwork(db, link.network_id)));
  return links.flatMap((link, index): LinkedNetwork[] => {
    const network = networks[index];
    return network === undefined ? [] : [{ link, network }];
  });
}

/** What responses and events show of a server besides its row. */
export interface ServerParts {
  readonly links: readonly LinkedNetwork[];
  readonly keys: readonly SshKeyRow[];
}

/** Reads the links and keys of a server. */
export async function readParts(db: Reader, server: number): Promise<ServerParts> {
  const [links, keys] = await Promise.all([listLinkedNetworks(db, server), listServerKeys(db, server)]);
  return { links, keys };
}

const types = { shared: "PublicShared", public: "PublicClient", private: "PrivateClient" } as const;

/** The part of a link and its network that responses show. */
export interface ShownLink {
  readonly link: Pick<LinkRow, "id" | "ip" | "state" | "bandwidth">;
  readonly network: Pick<NetworkRow, "id" | "kind" | "name" | "first" | "last" | "gateway" | "first6">;
}

/** Returns the link as responses show it. */
export const showLink = ({ link, network }: ShownLink): ServerLink => ({
  LinkID: link.id,
  NetworkID: network.id,
  LinkState: link.state,
  NetworkType: types[network.kind],
  NetworkName: network.name,
  IP: showAddress(link.ip),
  MAC: macOf(link.id),
  Mask: maskOf(prefixOf(network)),
  Gateway: network.gateway === null ? "" : showAddress(network.gateway),
  Bandwidth: link.bandwidth,
  IP6: network.first6 === null ? "" : address6Of(network.first6, network, link.ip),
});
