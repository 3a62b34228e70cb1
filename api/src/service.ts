/** Health, readiness, metrics, description and documentation of the service. */
import type { Static } from "typebox";
import { anything, boolean, fields, list, object, optional, text, word } from "./common.ts";
import { operations } from "./operation.ts";

/** Response of `/readyz`: the state of the service and the result of each check. */
export const Readiness = object("Readiness", "The state of the service and the result of each check.", {
  Status: word(["ready", "starting", "stopping", "failing"], {
    description:
      "`ready`: requests are processed. `starting` and `stopping`: they are rejected with 503. `failing`: a check fails.",
  }),
  Checks: list(
    object("Check", "The result of one check.", {
      Name: text({ description: "Name of the check." }),
      Ok: boolean({ description: "`true`: the check passes." }),
      Detail: text({ description: "Why it fails, or what it found." }),
    }),
    { description: "All checks." },
  ),
});
/** TypeScript type of this schema. */
export type Readiness = Static<typeof Readiness>;

/** Operations on the service itself. */
export const serviceOperations = operations({
  readHealth: {
    method: "GET",
    path: "/healthz",
    access: "open",
    alwaysAnswers: true,
    summary: "Check that the process responds",
    description: "Responds without the database. Use `/readyz` to check that the service works.",
    answer: object("Health", "The process responds.", { Status: word(["ok"], { description: "Always `ok`." }) }),
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
    description: "Describes all operations for programs. Request schemas describe strict mode.",
    answer: anything({ description: "The OpenAPI document." }),
  },
  readDocs: {
    method: "GET",
    path: "/docs",
    access: "open",
    summary: "Get the documentation",
    description: "The documents and the reference of all operations, for people. Errors point to it with their `type`.",
    answer: text({ description: "The first page." }),
    media: "text/html",
  },
  readMetrics: {
    method: "GET",
    path: "/metrics",
    access: "metrics:read",
    observes: true,
    summary: "Get metrics in the Prometheus format",
    description: "For a Prometheus server, with a token of the scope `metrics:read`.",
    query: fields({
      servers: optional(boolean({ description: "`true`: also the metrics of each server, which may be megabytes." })),
    }),
    answer: text({ description: "Metrics in the text format of Prometheus." }),
    media: "text/plain",
  },
});
