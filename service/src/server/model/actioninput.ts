/** Validates the fields of `POST /server/{id}/action` for each type, and finds the link or network that they select (docs/spec.md#action). */
import type { ActionInput } from "@brume/api/action.ts";
import type { FieldError } from "@brume/api/errors.ts";
import ipaddr from "ipaddr.js";
import { ApiError, errorAt, fieldError, invalidFields } from "../../base/error.ts";
import type { LinkRow } from "../../network/linktable.ts";
import type { NetworkRow } from "../../network/table.ts";

/** Returns the errors of the fields that the type uses. Fields of other types are ignored. */
export function checkActionInput(body: Partial<ActionInput>): FieldError[] {
  const { Type: type, NetworkID, NetworkLinkID, Bandwidth, IP } = body;
  const errors: FieldError[] = [];
  const required = (field: string, more = "") =>
    errors.push(fieldError(`/${field}`, "field_required", `${field} is required for ${type}${more}.`));
  const selects = NetworkID !== undefined || NetworkLinkID !== undefined;
  if (type === "AddNetwork" && NetworkID === undefined) required("NetworkID");
  if ((type === "RemoveNetwork" || type === "EditNetworkBandwidth") && !selects)
    required("NetworkID", ", or NetworkLinkID instead");
  if (type === "EditNetworkBandwidth" && Bandwidth === undefined) required("Bandwidth");
  if (type === "AddNetwork" && IP && !ipaddr.IPv4.isValidFourPartDecimal(IP))
    errors.push(
      fieldError("/IP", "format_invalid", `IP must be an IPv4 address such as 10.0.0.5, not ${JSON.stringify(IP)}.`),
    );
  return errors;
}

type Named = Pick<ActionInput, "NetworkID" | "NetworkLinkID">;

/** Returns the link that the input selects. Throws `not_linked`, also if link and network do not belong together. */
export function chooseLink(input: Named, server: number, links: readonly LinkRow[]): LinkRow {
  const { NetworkID, NetworkLinkID } = input;
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
 * Returns the network if the server can be linked to it in addition to the networks in `present`. Throws `validation_failed` with
 * `unknown_reference` if the project cannot use the network, else `location_mismatch`, `network_deleting`, `already_linked` or
 * `range_overlap`.
 */
export function requireAttachable(
  wanted: { readonly id: number; readonly network: NetworkRow | undefined },
  server: { readonly id: number; readonly location: string },
  present: readonly NetworkRow[],
): NetworkRow {
  const { id, network } = wanted;
  if (network === undefined)
    throw invalidFields([
      fieldError("/NetworkID", "unknown_reference", `NetworkID: network ${id} does not exist in this project.`),
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
    // First and last addresses are stored as strings of one length, which sort like the addresses.
    if (other.first <= network.last && network.first <= other.last)
      throw errorAt(
        "range_overlap",
        "/NetworkID",
        `Network ${id} overlaps network ${other.id}, to which server ${server.id} is linked already.`,
      );
  }
  return network;
}
