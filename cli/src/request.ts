/**
 * `fetch` for the requests of one command, over node:http: the module of the global `fetch` takes longer to load than the whole command.
 * Redirects use the global one, and event streams too unless a certificate is given.
 */
import type { IncomingMessage, request as sendRequest } from "node:http";
import { createRequire } from "node:module";

type Init = Parameters<typeof fetch>[1];

// An import would read all exports of node:http, and some of them load the module of the global `fetch`.
const load = createRequire(import.meta.url);

const isRedirect = (status: number) => [301, 302, 303, 307, 308].includes(status);

/** Returns the part of a response that the client reads. */
function responseOf(message: IncomingMessage, text: string): Response {
  const status = message.statusCode ?? 0;
  const headers = {
    get(name: string): string | null {
      const value = message.headers[name.toLowerCase()];
      return value === undefined ? null : [value].flat().join(", ");
    },
  };
  return { status, ok: status >= 200 && status < 300, headers, text: async () => text } as unknown as Response;
}

/** Sends the request. Resolves when the headers of the response have arrived. */
async function send(
  url: URL,
  { method, headers, body, signal }: NonNullable<Init>,
  trust: object,
): Promise<IncomingMessage> {
  const { request } = load(url.protocol === "https:" ? "node:https" : "node:http") as { request: typeof sendRequest };
  const bytes = body instanceof Blob ? Buffer.from(await body.arrayBuffer()) : Buffer.from((body ?? "") as string);
  return new Promise((resolve, reject) => {
    // Without a length node:http does not delimit the body of a DELETE.
    const length = bytes.length === 0 ? {} : { "Content-Length": String(bytes.length) };
    const options = {
      method: method ?? "GET",
      ...trust,
      headers: { ...(headers as Record<string, string>), ...length },
      ...(signal && { signal }),
    };
    const sent = request(url, options, resolve);
    sent.once("error", (error) => reject(signal?.aborted === true ? (signal.reason as Error) : error));
    sent.end(bytes);
  });
}

async function readText(message: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

/** Returns the response as `fetch` does, with a body that can be read while it arrives. */
async function streamOf(message: IncomingMessage): Promise<Response> {
  const { Readable } = await import("node:stream");
  const headers = Object.entries(message.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new Response(Readable.toWeb(message) as ReadableStream, { status: message.statusCode ?? 200, headers });
}

/** Returns the options of a TLS connection that trusts only this certificate (PEM) and does not compare its names; undefined: none. */
export const trustOf = (certificate: string | undefined): object =>
  certificate === undefined
    ? {}
    : { ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined };

/**
 * Creates the function that sends requests of the client of this package: plain headers, and a text or a file as body. `certificate`: PEM of the only
 * certificate that is trusted, whose names are not compared.
 */
export function createRequest(certificate?: string): typeof fetch {
  const trust = trustOf(certificate);
  return async (input, init = {}) => {
    const isStream = (init.headers as Readonly<Record<string, string>> | undefined)?.["Accept"] === "text/event-stream";
    if (typeof input !== "string" || (isStream && certificate === undefined)) return fetch(input, init);
    const message = await send(new URL(input), init, trust);
    if (isStream) return streamOf(message);
    const text = await readText(message).catch((error: unknown) => {
      throw init.signal?.aborted === true ? (init.signal.reason as Error) : error;
    });
    return isRedirect(message.statusCode ?? 0) ? fetch(input, init) : responseOf(message, text);
  };
}

/** Sends a request; trusts the authorities of Node. */
export const request: typeof fetch = createRequest();
