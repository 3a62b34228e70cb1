/** Seeing a server: what it says, how busy it is, and its console. Nothing of this needs an agent in the guest. */
import { type Static, Type } from "typebox";
import { boolean, date, integer, list, nullable, optional, text, word } from "./common.ts";
import { operations } from "./operation.ts";
import { serverParam } from "./server.ts";

const series = () => list(nullable(Type.Number()));
export const ServerMetrics = Type.Object(
  {
    Step: integer(1, 86_400, { description: "Seconds from one value to the next." }),
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
      { description: "Percent of one core, MB, and bytes per second; null where nothing was measured." },
    ),
  },
  { title: "ServerMetrics" },
);
export type ServerMetrics = Static<typeof ServerMetrics>;

export const monitorOperations = operations({
  readServerLog: {
    method: "GET",
    path: "/server/{id}/log",
    access: "server:read",
    observes: true,
    summary: "Read what a server said on its serial console since it was started",
    params: serverParam,
    query: Type.Object({
      tail: optional(integer(1, 1_000_000, { description: "Last lines only." })),
      previous: optional(boolean({ description: "The start before." })),
    }),
    answer: text(),
    media: "text/plain",
    faults: ["engine_unavailable"],
  },
  openConsole: {
    method: "POST",
    path: "/server/{id}/console",
    access: "server:write",
    summary: "Open the console of a server",
    description: "A WebSocket address that works once within 60 s: raw serial bytes, or RFB for `Vnc`.",
    params: serverParam,
    body: Type.Object({ Type: word(["Serial", "Vnc"]) }),
    answer: Type.Object({ Url: text(), ExpiresAt: date() }, { title: "Console" }),
    faults: ["action_not_allowed", "engine_unavailable"],
  },
  readServerMetrics: {
    method: "GET",
    path: "/server/{id}/metrics",
    access: "server:read",
    observes: true,
    summary: "Read how busy a server was",
    description: "24 hours at 10 s, 30 days at 5 min. Default: the last hour at 60 s.",
    params: serverParam,
    query: Type.Object({
      from: optional(date()),
      to: optional(date()),
      step: optional(integer(1, 86_400, { description: "Seconds." })),
    }),
    answer: ServerMetrics,
  },
});
