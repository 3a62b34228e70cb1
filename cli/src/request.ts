/**
 * `fetch` for the requests of one command, over node:http: the module of the global `fetch` takes longer to load than the whole command.
 * Event streams and redirects use the global one.
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

/** Sends the request and reads the whole response. */
async function send(
  url: URL,
  { method, headers, body, signal }: NonNullable<Init>,
  trust: object,
): Promise<[IncomingMessage, string]> {
  const { request } = load(url.protocol === "https:" ? "node:https" : "node:http") as { request: typeof sendRequest };
  return new Promise((resolve, reject) => {
    const text = typeof body === "string" ? body : "";
    // Without a length node:http does not delimit the body of a DELETE.
    const length = text === "" ? {} : { "Content-Length": String(Buffer.byteLength(text)) };
    const options = {
      method: method ?? "GET",
      ...trust,
      headers: { ...(headers as Record<string, string>), ...length },
      ...(signal && { signal }),
    };
    const sent = request(url, options, (message) => {
      const parts: Buffer[] = [];
      message.on("data", (part: Buffer) => parts.push(part));
      message.once("end", () => resolve([message, Buffer.concat(parts).toString("utf8")]));
      message.once("error", reject);
    });
    sent.once("error", (error) => reject(signal?.aborted === true ? (signal.reason as Error) : error));
    sent.end(text);
  });
}

/**
 * Creates the function that sends requests of the client of this package: plain headers, and a text as body. `certificate`: PEM of the only
 * certificate that is trusted, whose names are not compared.
 */
export function createRequest(certificate?: string): typeof fetch {
  const trust =
    certificate === undefined
      ? {}
      : { ca: certificate, allowPartialTrustChain: true, checkServerIdentity: () => undefined };
  return async (input, init = {}) => {
    const accept = (init.headers as Readonly<Record<string, string>> | undefined)?.["Accept"];
    if (accept === "text/event-stream" || typeof input !== "string") return fetch(input, init);
    const [message, text] = await send(new URL(input), init, trust);
    return isRedirect(message.statusCode ?? 0) ? fetch(input, init) : responseOf(message, text);
  };
}

/** Sends a request; trusts the authorities of Node. */
export const request: typeof fetch = createRequest();
