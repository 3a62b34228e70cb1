/** Serial log, console and metrics of a server. None of them needs an agent in the guest. */
import { type Static, Type } from "typebox";
import { boolean, date, integer, list, nullable, optional, text, word } from "./common.ts";
import { operations } from "./operation.ts";
import { serverParam } from "./server.ts";

const series = () => list(nullable(Type.Number()));
/** Metrics of a server as time series. */
export const ServerMetrics = Type.Object(
  {
    Step: integer(1, 86_400, { description: "Seconds between two values." }),
    Times: list(date()),
    Series: Type.Object(
      {
        Cpu: series(),
        MemoryUsed: series(),
        DiskRead: series(),
        DiskWrite: series(),
        NetIn: series(),
        NetOut: series(),
      },
      {
        description:
          "`Cpu` in percent of one core, `MemoryUsed` in MB, the others in bytes per second. `null`: no measurement.",
      },
    ),
  },
  { title: "ServerMetrics" },
);
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
    params: serverParam,
    query: Type.Object({
      tail: optional(integer(1, 1_000_000, { description: "Return only this many last lines." })),
      previous: optional(boolean({ description: "`true`: log of the previous boot. Default: of the current boot." })),
    }),
    answer: text(),
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
    body: Type.Object({ Type: word(["Serial", "Vnc"]) }),
    answer: Type.Object({ Url: text(), ExpiresAt: date() }, { title: "Console" }),
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
    query: Type.Object({
      from: optional(date()),
      to: optional(date()),
      step: optional(integer(1, 86_400, { description: "Seconds between two values. Default 60." })),
    }),
    answer: ServerMetrics,
  },
});
