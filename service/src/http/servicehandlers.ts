/** Handlers of the operations on the service itself (docs/spec.md#service-endpoints): health, readiness, metrics, OpenAPI and reference. */
import { exampleOrigin } from "@brume/api/docs.ts";
import type { serviceOperations } from "@brume/api/service.ts";
import type { Static } from "typebox";
import type { Handlers } from "./handler.ts";
import { json } from "./reply.ts";

/** Response of `/readyz`. */
export type Readiness = Static<(typeof serviceOperations)["readReadiness"]["answer"]>;

/** Sources of the OpenAPI document (JSON) and the API reference (HTML). They may create the text on the first call. */
export interface Documents {
  openapi(): string;
  docs(): string;
}

async function* joinAfter(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/**
 * Creates the handlers. `readiness` checks the service; `metrics` resolves to the Prometheus text, and `serverMetrics` yields the text of
 * the metrics of each server.
 */
export function serviceHandlers(
  readiness: () => Promise<Readiness>,
  documents: Documents,
  metrics: () => Promise<string>,
  serverMetrics: () => AsyncIterable<string>,
): Handlers<keyof typeof serviceOperations> {
  return {
    readHealth: { read: async () => ({ answer: { Status: "ok" } }) },
    readReadiness: {
      async read() {
        const answer = await readiness();
        return answer.Status === "ready" ? { answer } : { answer, status: 503 };
      },
    },
    readOpenapi: { read: async () => ({ answer: null, text: { type: json, body: documents.openapi() } }) },
    readDocs: {
      read: async ({ origin }) => {
        const body = documents.docs().replaceAll(exampleOrigin, origin());
        return { answer: "", text: { type: "text/html; charset=utf-8", body } };
      },
    },
    readMetrics: {
      async read({ query }) {
        const all = await metrics();
        const body = query.servers === true ? async () => ({ pieces: joinAfter(all, serverMetrics()) }) : all;
        return { answer: "", text: { type: "text/plain; version=0.0.4; charset=utf-8", body } };
      },
    },
  };
}
