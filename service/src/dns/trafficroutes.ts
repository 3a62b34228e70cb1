/** Route handler for the query counters of a domain. The name server counts in memory, so they start at 0 with the service. */
import type { ZoneStatus } from "../drivers/nameserver/interface.ts";
import type { Handlers } from "../http/handler.ts";
import { getDomain } from "./access.ts";

/** Returns the state of all zones, as it was at the last check of the name server. */
export type ZoneCounters = () => readonly ZoneStatus[];

export function trafficRoutes(counters: ZoneCounters): Handlers<"readDomainMetrics"> {
  return {
    readDomainMetrics: {
      async read({ params, caller }, db) {
        const row = await getDomain(db, caller, params.id);
        const zone = counters().find((one) => one.zone === row.ascii);
        const Answers = Object.entries(zone?.rcodes ?? {}).map(([Code, Count]) => ({ Code, Count }));
        return { answer: { Serial: zone?.serial ?? null, Queries: zone?.queries ?? 0, Answers } };
      },
    },
  };
}
