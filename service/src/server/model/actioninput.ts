/** What the fields of `POST /server/{id}/action` must be for each type, and which link or network they mean (docs/spec.md#action). */
import type { ActionInput } from "@brume/api/action.ts";
import type { FieldError } from "@brume/api/errors.ts";
import ipaddr from "ipaddr.js";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import type { LinkRow, NetworkRow } from "../../network/table.ts";

/** Fields of other types are ignored. */
export function checkActionInput(body: Partial<ActionInput>): FieldError[] {
  const { Type: type, NetworkID, NetworkLinkID, Bandwidth, IP } = body;
  const faults: FieldError[] = [];
  const required = (field: string, more = "") =>
    faults.push(fieldError(`/${field}`, "field_required", `${field} is required for ${type}${more}.`));
  const names = NetworkID !== undefined || NetworkLinkID !== undefined;
  if (type === "AddNetwork" && NetworkID === undefined) required("NetworkID");
  if ((type === "RemoveNetwork" || type === "EditNetworkBandwidth") && !names)
    required("NetworkID", ", or NetworkLinkID instead");
  if (type === "EditNetworkBandwidth" && Bandwidth === undefined) required("Bandwidth");
  if (type === "AddNetwork" && IP && !ipaddr.IPv4.isValidFourPartDecimal(IP))
    faults.push(
      fieldError("/IP", "format_invalid", `IP must be an IPv4 address such as 10.0.0.5, not ${JSON.stringify(IP)}.`),
    );
  return faults;
}

type Named = Pick<ActionInput, "NetworkID" | "NetworkLinkID">;

/** The link that an order is about. Throws `not_linked`, also when both are given and do not fit each other. */
export function chooseLink(order: Named, server: number, links: readonly LinkRow[]): LinkRow {
  const { NetworkID, NetworkLinkID } = order;
  const link = links.find(
    ({ id, network_id }) =>
      (NetworkLinkID === undefined || id === NetworkLinkID) && (NetworkID === undefined || network_id === NetworkID),
  );
  if (link !== undefined) return link;
  const wanted = `link${NetworkLinkID === undefined ? "" : ` ${NetworkLinkID}`}`;
  const place = NetworkID === undefined ? "" : ` to network ${NetworkID}`;
  const field = NetworkLinkID === undefined ? "NetworkID" : "NetworkLinkID";
  throw errorAt("not_linked", `/${field}`, `Server ${server} has no ${wanted}${place}.`);
}

/**
 * A server can be put into this network beside those that it is in. Throws `unknown_reference` (the network is not seen, or the
 * shared one of elsewhere), `location_mismatch`, `network_deleting`, `already_linked`, `range_overlap`.
 */
export function requireAttachable(
  wanted: { readonly id: number; readonly network: NetworkRow | undefined },
  server: { readonly id: number; readonly location: string },
  present: readonly NetworkRow[],
): NetworkRow {
  const { id, network } = wanted;
  if (network === undefined)
    throw invalidFields([
      fieldError("/NetworkID", "unknown_reference", `NetworkID must not be ${id}: there is no such network.`),
    ]);
  if (network.location !== server.location)
    throw errorAt(
      "location_mismatch",
      "/NetworkID",
      `Network ${id} is in ${network.location}, server ${server.id} in ${server.location}.`,
    );
  if (network.state === "Deleting") throw new ApiError("network_deleting", `Network ${id} is being deleted.`);
  for (const other of present) {
    if (other.id === id)
      throw errorAt("already_linked", "/NetworkID", `Server ${server.id} is linked to network ${id} already.`);
    // Ends of blocks are texts of one width, which sort as the addresses do.
    if (other.first <= network.last && network.first <= other.last)
      throw errorAt(
        "range_overlap",
        "/NetworkID",
        `The addresses of network ${id} overlap those of network ${other.id}, in which server ${server.id} is.`,
      );
  }
  return network;
}
