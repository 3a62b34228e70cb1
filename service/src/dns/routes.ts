/** The route handlers of all DNS operations, by operation name. */
import type { Reconciler } from "../engine/flow.ts";
import { type ClaimContext, claimRoutes } from "./claimroutes.ts";
import { domainRoutes } from "./domainroutes.ts";
import { type DnsContext, recordRoutes } from "./recordroutes.ts";
import { trafficRoutes, type ZoneCounters } from "./trafficroutes.ts";
import { zoneRoutes } from "./zoneroutes.ts";

export const dnsRoutes = (
  context: DnsContext,
  delegation: Reconciler,
  claims: ClaimContext,
  counters: ZoneCounters,
) => ({
  ...domainRoutes(context, delegation),
  ...recordRoutes(context),
  ...zoneRoutes(context),
  ...claimRoutes(claims),
  ...trafficRoutes(counters),
});
