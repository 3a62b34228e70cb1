/** The endpoint of a webhook: keeps what it gets, and answers as the test says. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Event } from "@brume/api/event.ts";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: Event;
}

export interface Endpoint {
  readonly url: string;
  readonly received: Received[];
  /** The status of an answer; a promise holds it back. */
  answer: (received: Received) => number | Promise<number>;
  /** Resolves when so many have come. */
  until(count: number): Promise<readonly Received[]>;
  close(): Promise<void>;
}

export async function openEndpoint(answer: Endpoint["answer"] = () => 200): Promise<Endpoint> {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  const server = createServer((request: IncomingMessage, response) => {
    void (async () => {
      const body = await text(request);
      const one = { headers: request.headers, body, event: JSON.parse(body) as Event };
      received.push(one);
      for (const look of waiting) look();
      const status = await endpoint.answer(one);
      response.writeHead(status, status >= 300 && status < 400 ? { location: "/elsewhere" } : {}).end();
    })();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  // A test that fails before it closes must not keep the process.
  server.unref();
  const endpoint: Endpoint = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer,
    until: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (received.length < count) return;
          waiting.delete(look);
          resolve(received);
        };
        waiting.add(look);
        look();
      }),
    async close() {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
  return endpoint;
}
