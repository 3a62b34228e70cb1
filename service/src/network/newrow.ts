/** What a network begins with, of whatever kind: nothing applied, nothing in its firewall, no tunnels. */
import type { Insertable } from "kysely";
import type { NetworkTable } from "../store/schema.ts";
import { defaultFirewall } from "./model/firewall/firewall.ts";

type Row = Insertable<NetworkTable>;
type Given = "project_id" | "kind" | "name" | "location" | "first" | "last" | "gateway" | "edge" | "first6" | "is_dhcp";

export const newNetworkRow = (
  input: Pick<Row, Given | "bandwidth" | "created"> & { readonly labels?: string },
): Row => ({
  labels: "{}",
  ...input,
  state: "New",
  firewall: JSON.stringify(defaultFirewall),
  fallback: null,
  confirm_by: null,
  wireguard: null,
  wireguard_public: null,
  wireguard_port: null,
  outside: null,
  generation: 1,
  applied: 0,
  error: null,
  version: 1,
});
