/** The HTTP server of the adapters: JSON requests of other programs, answered with the client of the installation. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isIP } from "node:net";
import type { Client } from "@brume/api/client.ts";
import { UsageError } from "./model/values.ts";
import { type Session, textFlag } from "./session.ts";

/** Bytes of a request body. */
const mostBytes = 10_000_000;

/** A request of the other program. */
export interface AdapterRequest {
  /** `POST /present`. */
  readonly route: string;
  /** The JSON body; undefined: it is empty. */
  readonly body: unknown;
  readonly client: Client;
}

/** The response to it. `body` undefined: none. */
export interface AdapterResponse {
  readonly status: number;
  readonly body?: unknown;
}

/** The request cannot be served; the message is for its sender. */
export class BadRequest extends Error {}

/** Serves requests until Ctrl-C. `type`: the media type of responses. */
export async function serve(
  session: Session,
  type: string,
  respond: (request: AdapterRequest) => Promise<AdapterResponse | null>,
): Promise<void> {
  const { host, port } = parseListen(textFlag(session, "listen") ?? "127.0.0.1:8888");
  const own = await session.client();
  const isLocal = host === "::1" || host.startsWith("127.");

  /** Returns the client of the token in the password of a request, otherwise the own one. */
  async function clientOf({ headers: { authorization = "" } }: IncomingMessage): Promise<Client | null> {
    const [, encoded] = /^basic ([\w+/=]+)$/i.exec(authorization) ?? [];
    if (encoded === undefined) return isLocal && authorization === "" ? own : null;
    const token = Buffer.from(encoded, "base64").toString("utf8").split(/:(.*)/s)[1];
    return token === undefined ? null : session.client(token);
  }

  async function answer(request: IncomingMessage): Promise<AdapterResponse> {
    // A page of another site could send requests to this address through a browser on this host; browsers add this header to them.
    if (request.headers.origin !== undefined)
      return { status: 403, body: { error: "Requests of browsers are rejected." } };
    const client = await clientOf(request);
    if (client === null) return { status: 401, body: { error: "The password of the request must be a token." } };
    const [path = "/"] = (request.url ?? "/").split("?", 1);
    try {
      const body = await readJson(request);
      const found = await respond({ route: `${request.method} ${path.replace(/(.)\/$/, "$1")}`, body, client });
      return found ?? { status: 404, body: { error: `There is no ${request.method} ${path}.` } };
    } catch (error) {
      const { status } = error as { status?: unknown };
      const message = error instanceof Error ? error.message : String(error);
      session.print.note(`${request.method} ${path}: ${message}`);
      const isOwn = error instanceof BadRequest || error instanceof UsageError;
      return { status: isOwn ? 400 : typeof status === "number" ? status : 502, body: { error: message } };
    }
  }

  async function send(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body } = await answer(request);
    const text = body === undefined ? "" : JSON.stringify(body);
    if (text !== "") response.setHeader("content-type", type);
    response.writeHead(status, { "content-length": Buffer.byteLength(text) }).end(text);
  }

  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    void send(request, response);
  });
  const ended = Promise.withResolvers<void>();
  server.once("error", ended.reject);
  session.host.signal.addEventListener("abort", () => {
    server.close(() => ended.resolve());
    server.closeAllConnections();
  });
  server.listen({ host, port }, () => {
    const address = server.address();
    const bound = typeof address === "object" && address !== null ? address.port : port;
    session.print.note(`Listening on http://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`);
  });
  await ended.promise;
}

function parseListen(text: string): { readonly host: string; readonly port: number } {
  const [, inner, plain, port = ""] = /^(?:\[([\da-f:.]+)\]|([\d.]+)):(\d{1,5})$/i.exec(text) ?? [];
  const host = inner ?? plain ?? "";
  if (isIP(host) === 0 || Number(port) > 65_535)
    throw new UsageError(
      `--listen must be an address and a port, not "${text}".`,
      "Such as 127.0.0.1:8888 or [::1]:8888.",
    );
  return { host, port: Number(port) };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > mostBytes) throw new BadRequest(`The body is longer than ${mostBytes} bytes.`);
    parts.push(part);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw new BadRequest("The body is not JSON.");
  }
}
