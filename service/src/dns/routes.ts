/** Every operation on domains and records, by name. */
import type { Reconciler } from "../engine/flow.ts";
import { type ClaimTools, claimRoutes } from "./claimroutes.ts";
import { domainRoutes } from "./domainroutes.ts";
import { type DnsContext, recordRoutes } from "./recordroutes.ts";
import { zoneRoutes } from "./zoneroutes.ts";

export const dnsRoutes = (tools: DnsContext, delegation: Reconciler, claims: ClaimTools) => ({
  ...domainRoutes(tools, delegation),
  ...recordRoutes(tools),
  ...zoneRoutes(tools),
  ...claimRoutes(claims),
});
