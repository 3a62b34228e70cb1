/** Handlers of the operations on the service itself (docs/spec.md#service-endpoints): health, readiness, metrics, OpenAPI, documentation. */
import type { serviceOperations } from "@brume/api/service.ts";
import type { Static } from "typebox";
import type { Handlers } from "./handler.ts";
import { json } from "./reply.ts";

/** Response of `/readyz`. */
export type Readiness = Static<(typeof serviceOperations)["readReadiness"]["answer"]>;

async function* joinAfter(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* rest;
}

/**
 * Creates the handlers. `readiness` checks the service; `openapi` returns the document as JSON; `home` renders the first page of the
 * documentation for an address of the service; `metrics` resolves to the Prometheus text, and `serverMetrics` yields the text of the
 * metrics of each server.
 */
export function serviceHandlers(
  readiness: () => Promise<Readiness>,
  openapi: () => string,
  home: (origin: string) => Promise<string>,
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
    readOpenapi: { read: async () => ({ answer: null, text: { type: json, body: openapi() } }) },
    // `createDocs` responds before, compressed, if the path is spelt exactly so.
    readDocs: {
      read: async ({ origin }) => ({
        answer: "",
        text: { type: "text/html; charset=utf-8", body: await home(origin()) },
      }),
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
