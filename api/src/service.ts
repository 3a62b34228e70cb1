/** The service about itself: is it alive, is it ready, what does it offer, how does it do. */
import { Type } from "typebox";
import { boolean, list, text, word } from "./common.ts";
import { operations } from "./operation.ts";

export const Readiness = Type.Object(
  {
    Status: word(["ready", "starting", "stopping", "failing"]),
    Checks: list(Type.Object({ Name: text(), Ok: boolean(), Detail: text() })),
  },
  { title: "Readiness" },
);

export const serviceOperations = operations({
  readHealth: {
    method: "GET",
    path: "/healthz",
    access: "open",
    alwaysAnswers: true,
    summary: "Does the process answer?",
    answer: Type.Object({ Status: word(["ok"]) }, { title: "Health" }),
  },
  readReadiness: {
    method: "GET",
    path: "/readyz",
    access: "open",
    alwaysAnswers: true,
    summary: "Is the service ready?",
    description: "200 when it is, else 503 with the same body.",
    answer: Readiness,
  },
  readOpenapi: {
    method: "GET",
    path: "/openapi.json",
    access: "open",
    summary: "This contract as an OpenAPI 3.1 document",
    answer: Type.Unknown(),
  },
  readDocs: {
    method: "GET",
    path: "/docs",
    access: "open",
    summary: "This contract as a page",
    answer: text(),
    media: "text/html",
  },
  readMetrics: {
    method: "GET",
    path: "/metrics",
    access: "metrics:read",
    observes: true,
    summary: "Figures for Prometheus",
    answer: text(),
    media: "text/plain",
  },
});
