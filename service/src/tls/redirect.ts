/**
 * The plain HTTP server beside the API with TLS: it redirects every request to HTTPS, and sends the files of HTTP-01 challenges (RFC 8555
 * section 8.3). It reads no body, and a connection ends with its response.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** The server. */
export interface Redirect {
  /** Files of challenges by token. */
  readonly tokens: Map<string, string>;
  /** Resolves to the bound port. Rejects if the address cannot be used. */
  listen(host: string, port: number): Promise<number>;
  close(): void;
}

/** Options of `createRedirect`. */
export interface RedirectOptions {
  /** Returns the names of the certificate: other hosts are redirected to the first. */
  readonly names: () => readonly string[];
  /** Returns the port of the API. */
  readonly port: () => number;
}

const prefix = "/.well-known/acme-challenge/";
/** Limits of a connection: bytes of the head, and milliseconds. */
const headBytes = 16 * 1024;
const headTime = 10_000;
const mostConnections = 256;

const matches = (pattern: string, host: string): boolean =>
  pattern === host || (pattern.startsWith("*.") && host.slice(host.indexOf(".") + 1) === pattern.slice(2));

/** Returns the host of the redirect: that of the request if the certificate has it, else the first name without a wildcard. */
function hostOf({ headers }: IncomingMessage, names: readonly string[]): string | null {
  const asked = (headers.host ?? "")
    .toLowerCase()
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1");
  const isName = /^[a-z0-9._:-]+$/.test(asked);
  const found = isName && names.some((name) => matches(name.toLowerCase(), asked)) ? asked : null;
  return found ?? names.find((name) => !name.startsWith("*.")) ?? null;
}

/** Creates the server. */
export function createRedirect({ names, port }: RedirectOptions): Redirect {
  const tokens = new Map<string, string>();
  const server = createServer(
    { maxHeaderSize: headBytes, headersTimeout: headTime, requestTimeout: headTime, requireHostHeader: false },
    (request, response) => {
      const target = request.url ?? "/";
      const file = target.startsWith(prefix) ? tokens.get(target.slice(prefix.length)) : undefined;
      const host = hostOf(request, names());
      const isPath = /^\/[\x21-\x7e]*$/.test(target);
      response.setHeader("Connection", "close");
      if (file !== undefined && (request.method === "GET" || request.method === "HEAD"))
        return response.writeHead(200, { "Content-Type": "application/octet-stream" }).end(file);
      if (target.startsWith(prefix) || host === null || !isPath) return response.writeHead(404).end();
      const authority = `${host.includes(":") ? `[${host}]` : host}${port() === 443 ? "" : `:${port()}`}`;
      return response.writeHead(308, { Location: `https://${authority}${target}` }).end();
    },
  );
  server.maxConnections = mostConnections;
  server.on("clientError", (_error, socket) => socket.destroy());
  return {
    tokens,
    listen: (host, wanted) =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(wanted, host, () => {
          server.off("error", reject);
          server.unref();
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
