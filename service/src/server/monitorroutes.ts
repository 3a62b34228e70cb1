/** Handlers of the serial log, the console and the metrics of a server (docs/spec.md#console-log-and-metrics-of-a-server). */

import { formatDate } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { ApiError, fieldError, invalidQuery } from "../base/error.ts";
import { reasonOf } from "../base/reason.ts";
import { afterPreparing, type Handlers } from "../http/handler.ts";
import { ticketLife } from "../http/tickets.ts";
import { getServer, type ServerContext } from "./context.ts";
import { readHost } from "./hostcapacity.ts";
import { valuesOf } from "./model/samples.ts";
import { serverTag } from "./model/show.ts";
import type { Sampler } from "./sampler.ts";

type Names = "readServerLog" | "openConsole" | "readServerMetrics";

/** Milliseconds. */
const hour = 3_600_000;
/** Most values of each series in one response. */
const mostValues = 10_000;

export function monitorRoutes(context: ServerContext, sampler: Sampler): Handlers<Names> {
  const { consoles, servers, clock, log, tickets } = context;
  return {
    readServerLog: {
      async read({ params, query, caller }, db) {
        const { id } = await getServer(db, caller, params.id);
        const { tail, previous = false } = query;
        const output = await consoles
          .readLog(id, { previous, ...(tail !== undefined && { tail }) })
          .catch((error: unknown) => {
            log("warn", "Could not read the serial log of a server.", { server: id, error });
            throw new ApiError(
              "engine_unavailable",
              `The serial log of server ${id} cannot be read: ${reasonOf(error)}. Repeat the request later.`,
            );
          });
        return { answer: "", text: { type: "text/plain; charset=utf-8", body: output ?? "" } };
      },
    },
    openConsole: afterPreparing({
      prepare: ({ params }) => readHost(context, params.id),
      async change({ params, body, caller, dryRun, origin, expect }, tx) {
        const server = await getServer(tx, caller, params.id);
        expect(serverTag(server));
        if (!servers.power(server.id))
          throw new ApiError("action_not_allowed", `Server ${server.id} is off: it has no console.`);
        const open = () => (body.Type === "Vnc" ? consoles.openVnc(server.id) : consoles.openSerial(server.id));
        // The address contains the ticket, so a dry run does not return it.
        if (dryRun) return { answer: { Url: "", ExpiresAt: formatDate(clock.now() + ticketLife) }, changes: [] };
        const { path, expires } = tickets.issue("/console", open);
        const Url = `${origin().replace(/^http/, "ws")}${path}`;
        return { answer: { Url, ExpiresAt: formatDate(expires) }, changes: [] };
      },
    }),
    readServerMetrics: {
      async read({ params, query, caller }, db) {
        const { id } = await getServer(db, caller, params.id);
        const to = query.to === undefined ? clock.now() : Date.parse(query.to);
        const step = (query.step ?? 60) * 1000;
        const from = Math.floor((query.from === undefined ? to - hour : Date.parse(query.from)) / step) * step;
        const errors: FieldError[] = [];
        if (from > to) errors.push(fieldError("?from", "out_of_range", "from must not be later than to."));
        else if ((to - from) / step > mostValues)
          errors.push(
            fieldError(
              "?step",
              "out_of_range",
              `step must be longer: more than ${mostValues} values would be returned.`,
            ),
          );
        if (errors.length > 0) throw invalidQuery(errors);
        const { times, series } = valuesOf(await sampler.rows(db, id, from, to), from, to, step);
        return { answer: { Step: step / 1000, Times: times.map(formatDate), Series: series } };
      },
    },
  };
}
