/** An HTTP endpoint for webhooks: records the deliveries and returns the status that the test sets. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Event } from "@brume/api/event.ts";

/** A delivery. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: Event;
}

/** A listening endpoint. */
export interface Endpoint {
  readonly url: string;
  readonly received: Received[];
  /** Returns the status of the response; a promise delays it. */
  answer: (received: Received) => number | Promise<number>;
  /** Resolves when `count` deliveries have been received. */
  until(count: number): Promise<readonly Received[]>;
  close(): Promise<void>;
}

/** Opens an endpoint on a free port of 127.0.0.1. */
export async function openEndpoint(answer: Endpoint["answer"] = () => 200): Promise<Endpoint> {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request: IncomingMessage, response) => {
    void (async () => {
      const body = await text(request);
      const one = { headers: request.headers, body, event: JSON.parse(body) as Event };
      received.push(one);
      for (const check of waiting) check();
      const status = await endpoint.answer(one);
      response.writeHead(status, status >= 300 && status < 400 ? { location: "/elsewhere" } : {}).end();
    })();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  // A test that fails before it closes the endpoint must not keep the process running.
  server.unref();
  const endpoint: Endpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer,
    until: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (received.length < count) return;
          waiting.delete(check);
          resolve(received);
        };
        waiting.add(check);
        check();
      }),
    async close() {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
  return endpoint;
}
