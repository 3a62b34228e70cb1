/** Every operation on domains and records, by name. */
import type { Keeper } from "../engine/flow.ts";
import { type ClaimTools, claimRoutes } from "./claimroutes.ts";
import { domainRoutes } from "./domainroutes.ts";
import { type DnsTools, recordRoutes } from "./recordroutes.ts";
import { zoneRoutes } from "./zoneroutes.ts";

export const dnsRoutes = (tools: DnsTools, delegation: Keeper, claims: ClaimTools) => ({
  ...domainRoutes(tools, delegation),
  ...recordRoutes(tools),
  ...zoneRoutes(tools),
  ...claimRoutes(claims),
});
