/** Links of a server with their networks, and their form in responses. */
import type { ServerLink } from "@brume/api/server.ts";
import { address6Of, macOf, maskOf, prefixOf, showAddress } from "../network/model/plan.ts";
import { findNetwork, type LinkRow, listLinksOfServer, type NetworkRow } from "../network/table.ts";
import type { Reader } from "../store/db.ts";

/** A row of `link`, joined with its network. */
export interface LinkedNetwork {
  readonly link: LinkRow;
  readonly network: NetworkRow;
}

/** Returns the links of a server in order of id. */
export async function listLinkedNetworks(db: Reader, server: number): Promise<LinkedNetwork[]> {
  const linked: LinkedNetwork[] = [];
  for (const link of await listLinksOfServer(db, server)) {
    const network = await findNetwork(db, link.network_id);
    if (network !== undefined) linked.push({ link, network });
  }
  return linked;
}

const types = { shared: "PublicShared", public: "PublicClient", private: "PrivateClient" } as const;

/** The part of a link and its network that responses show. */
interface ShownLink {
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
