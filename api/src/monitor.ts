/** Serial log, console and metrics of a server. None of them needs an agent in the guest. */
import { type Static, Type } from "typebox";
import { boolean, date, fields, integer, list, nullable, object, optional, text, word } from "./common.ts";
import { operations } from "./operation.ts";
import { serverParam } from "./server.ts";

const series = <const D extends string>(description: D) => list(nullable(Type.Number()), { description });
/** Metrics of a server as time series. */
export const ServerMetrics = object("ServerMetrics", "Metrics of a server as time series.", {
  Step: integer(1, 86_400, { description: "Seconds between two values." }),
  Times: list(date(), { description: "Times of the values." }),
  Series: object("MetricSeries", "Values at `Times`. `null`: no measurement.", {
    Cpu: series("CPU use in percent of one core."),
    MemoryUsed: series("Used memory in MB."),
    DiskRead: series("Bytes per second read from the disk."),
    DiskWrite: series("Bytes per second written to the disk."),
    NetIn: series("Bytes per second received."),
    NetOut: series("Bytes per second sent."),
  }),
});
/** TypeScript type of this schema. */
export type ServerMetrics = Static<typeof ServerMetrics>;

/** Operations on the serial log, console and metrics of a server. */
export const monitorOperations = operations({
  readServerLog: {
    method: "GET",
    path: "/server/{id}/log",
    access: "server:read",
    observes: true,
    summary: "Get the serial console log",
    description: "Returns the output of the serial console as text.",
    params: serverParam,
    query: fields({
      tail: optional(integer(1, 1_000_000, { description: "Return only this many last lines." })),
      previous: optional(boolean({ description: "`true`: log of the previous boot. Default: of the current boot." })),
    }),
    answer: text({ description: "Output of the serial console." }),
    media: "text/plain",
    errors: ["engine_unavailable"],
  },
  openConsole: {
    method: "POST",
    path: "/server/{id}/console",
    access: "server:write",
    summary: "Open a console",
    description:
      "Returns a WebSocket URL that is valid once, for 60 s. `Serial` carries raw bytes, `Vnc` the RFB protocol.",
    params: serverParam,
    body: object("OpenConsoleRequest", "Which console to open.", {
      Type: word(["Serial", "Vnc"], {
        description: "`Serial`: raw bytes of the serial console. `Vnc`: the RFB protocol.",
      }),
    }),
    answer: object("Console", "A console that waits for its client.", {
      Url: text({ description: "WebSocket URL, valid once." }),
      ExpiresAt: date({ description: "When the URL expires." }),
    }),
    errors: ["action_not_allowed", "engine_unavailable"],
  },
  readServerMetrics: {
    method: "GET",
    path: "/server/{id}/metrics",
    access: "server:read",
    observes: true,
    summary: "Get the metrics of a server",
    description: "Stored for 24 hours at 10 s and for 30 days at 5 min. Default: the last hour at 60 s.",
    params: serverParam,
    query: fields({
      from: optional(date({ description: "Start of the interval. Default: one hour before `to`." })),
      to: optional(date({ description: "End of the interval. Default: now." })),
      step: optional(integer(1, 86_400, { description: "Seconds between two values. Default 60." })),
    }),
    answer: ServerMetrics,
  },
});
