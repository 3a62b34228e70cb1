/** Health, readiness, metrics and API reference of the service. */
import { Type } from "typebox";
import { boolean, list, optional, text, word } from "./common.ts";
import { operations } from "./operation.ts";

/** Response of `/readyz`: the state of the service and the result of each check. */
export const Readiness = Type.Object(
  {
    Status: word(["ready", "starting", "stopping", "failing"]),
    Checks: list(Type.Object({ Name: text(), Ok: boolean(), Detail: text() })),
  },
  { title: "Readiness" },
);

/** Operations on the service itself. */
export const serviceOperations = operations({
  readHealth: {
    method: "GET",
    path: "/healthz",
    access: "open",
    alwaysAnswers: true,
    summary: "Check that the process responds",
    answer: Type.Object({ Status: word(["ok"]) }, { title: "Health" }),
  },
  readReadiness: {
    method: "GET",
    path: "/readyz",
    access: "open",
    alwaysAnswers: true,
    summary: "Check that the service is ready",
    description: "Responds 200 if the service is ready, otherwise 503 with the same body.",
    answer: Readiness,
    alsoReturns: [503],
  },
  readOpenapi: {
    method: "GET",
    path: "/openapi.json",
    access: "open",
    summary: "Get the OpenAPI 3.1 document",
    answer: Type.Unknown(),
  },
  readDocs: {
    method: "GET",
    path: "/docs",
    access: "open",
    summary: "Get the API reference",
    answer: text(),
    media: "text/html",
  },
  readMetrics: {
    method: "GET",
    path: "/metrics",
    access: "metrics:read",
    observes: true,
    summary: "Get metrics in the Prometheus format",
    query: Type.Object({
      servers: optional(boolean({ description: "`true`: also the metrics of each server, which may be megabytes." })),
    }),
    answer: text(),
    media: "text/plain",
  },
});
