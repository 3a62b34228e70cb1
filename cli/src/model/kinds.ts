/** Kinds of objects that a command line can name, and where their names are listed. An object without a name is given by its id. */

/** Kind of an object. */
export type Kind =
  | "server"
  | "domain"
  | "record"
  | "claim"
  | "withdrawn-domain"
  | "reservation"
  | "public-network"
  | "network"
  | "any-network"
  | "tunnel"
  | "image"
  | "ssh-key"
  | "token"
  | "project"
  | "webhook"
  | "id";

/** By the error code of a path parameter: its kind. */
export const kindOfMissing: Readonly<Record<string, Kind>> = {
  server_not_found: "server",
  domain_not_found: "domain",
  record_not_found: "record",
  claim_not_found: "claim",
  withdrawn_domain_not_found: "withdrawn-domain",
  reservation_not_found: "reservation",
  public_network_not_found: "public-network",
  network_not_found: "network",
  tunnel_not_found: "tunnel",
  image_not_found: "image",
  sshkey_not_found: "ssh-key",
  token_not_found: "token",
  project_not_found: "project",
  webhook_not_found: "webhook",
};

/** By the name of a request field: the kind of the objects that it refers to. `ImageID` accepts names in the service itself. */
export const kindOfField: Readonly<Record<string, Kind>> = {
  SshKeys: "ssh-key",
  NetworkID: "any-network",
  NetworkId: "any-network",
  DomainId: "domain",
  DomainID: "domain",
  ServerID: "server",
  ServerIDs: "server",
  ProjectID: "project",
};

/** Returns the sentence with the commands that list a kind. `parent`: the domain of a record, the network of a tunnel. */
export function listHint(kind: Kind, parent?: string | number): string {
  if (kind === "record") return `brume record list ${parent ?? "DOMAIN"} shows all of them.`;
  if (kind === "tunnel") return `brume vpn status ${parent ?? "NETWORK"} shows all of them.`;
  if (kind === "any-network") return "brume network list and brume public-network list show all of them.";
  return kind === "id" ? "" : `brume ${kind} list shows all of them.`;
}

/** How a kind is listed. */
export interface Listing {
  readonly operation: string;
  readonly name: string;
  readonly id: string;
  /** Query that shortens the response. */
  readonly query?: Readonly<Record<string, string | boolean>>;
  /** The name is that of a domain: it has a form in ASCII and one in Unicode. */
  readonly isDomain?: boolean;
}

/** Lists with names, by kind. */
export const listings: Readonly<Partial<Record<Kind, Listing>>> = {
  server: { operation: "listServers", name: "Name", id: "ID" },
  domain: { operation: "listDomains", name: "Name", id: "ID", query: { records: false }, isDomain: true },
  claim: { operation: "listClaims", name: "Name", id: "ID", isDomain: true },
  "withdrawn-domain": { operation: "listWithdrawnDomains", name: "Name", id: "ID", isDomain: true },
  reservation: { operation: "listReservations", name: "Name", id: "ID", isDomain: true },
  "public-network": { operation: "listPublicNetworks", name: "Name", id: "Id" },
  network: { operation: "listNetworks", name: "Name", id: "ID" },
  image: { operation: "listImages", name: "Name", id: "ID" },
  "ssh-key": { operation: "listSshKeys", name: "Title", id: "ID" },
  token: { operation: "listTokens", name: "Name", id: "ID" },
  webhook: { operation: "listWebhooks", name: "Url", id: "ID" },
};
