/**
 * The client's connections to an agent, over a Unix socket or TLS. Connections stay open and are used again. A request that met a closed
 * connection before any response is sent once more, because every verb can be repeated.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import type { Duplex } from "node:stream";
import { AgentError } from "./error.ts";
import { clientOptions, type Identity } from "./tls.ts";

/** Where the agent is: a socket on this host, or a host with the name in its certificate. */
export type Place =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly name: string; readonly identity: Identity };

/** A request to the agent. */
export interface Outgoing {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text; absent: a GET. */
  readonly body?: string;
  /** Milliseconds without a complete response after which it fails; absent: none. */
  readonly time?: number;
  /** Called with each line of a response, when it arrives. */
  readonly onLine?: (line: string) => void;
  /** Ends the request. */
  readonly signal?: AbortSignal;
}

/** A response that was read to its end. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** The body; of a response of lines, the last one that is complete. */
  readonly text: string;
}

/** Sends requests to one agent. */
export interface Transport {
  /** Rejects with an `AgentError` of code `away` or `deadline_exceeded` if there is no response. */
  send(request: Outgoing): Promise<Reply>;
  /** Sends a GET and resolves to its connection as a byte stream, or to a response that refuses. */
  open(request: Outgoing): Promise<Duplex | Reply>;
  /** Fails all running requests, and closes the connections. */
  reset(error: AgentError): void;
}

/** Connections that stay open without a request. */
const mostIdle = 32;

/** The connection was closed before the request arrived. */
class StaleConnection extends Error {}

/** Creates the transport. It connects at the first request. */
export function createTransport(place: Place): Transport {
  const agentOptions = { keepAlive: true, maxFreeSockets: mostIdle, scheduling: "lifo" } as const;
  const running = new Set<ClientRequest>();
  const tls = "socket" in place ? {} : clientOptions(place.identity, place.name);
  // With `checkServerIdentity` in the request, Node would use each connection only once.
  const createPool = () =>
    "socket" in place ? new HttpAgent(agentOptions) : new TlsAgent({ ...agentOptions, ...tls });
  let pool = createPool();

  function begin({ path, headers, body, signal }: Outgoing, isStream: boolean): ClientRequest {
    const options: RequestOptions = {
      agent: isStream ? false : pool,
      path,
      ...(signal !== undefined && { signal }),
      method: body === undefined ? "GET" : "POST",
      headers: {
        ...headers,
        ...(body !== undefined && {
          "content-type": "application/json",
          "content-length": String(Buffer.byteLength(body)),
        }),
      },
    };
    if ("socket" in place) return requestHttp({ ...options, socketPath: place.socket });
    return requestTls({ ...options, host: place.host, port: place.port, ...(isStream && tls) });
  }

  const away = (error: Error): AgentError =>
    error instanceof AgentError
      ? error
      : new AgentError("away", `the host agent does not respond: ${error.message}`, { isSilence: true, cause: error });

  /** Calls `use` with a request and its promise; removes the request from the running ones when the promise is settled. */
  async function run<T>(
    outgoing: Outgoing,
    isStream: boolean,
    use: (request: ClientRequest, resolve: (value: T) => void, reject: (error: Error) => void) => void,
  ): Promise<T> {
    const attempt = (): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        const request = begin(outgoing, isStream);
        running.add(request);
        const { time } = outgoing;
        const timer =
          time === undefined
            ? undefined
            : setTimeout(() => {
                const text = `the host agent did not respond within ${time} ms`;
                request.destroy(new AgentError("deadline_exceeded", text, { isSilence: true }));
              }, time);
        const settle = (): void => {
          clearTimeout(timer);
          running.delete(request);
        };
        let hasResponse = false;
        request.on("response", () => {
          hasResponse = true;
        });
        const fail = (error: Error): void => {
          settle();
          const { code } = error as NodeJS.ErrnoException;
          const isStale = request.reusedSocket && !hasResponse && (code === "ECONNRESET" || code === "EPIPE");
          reject(isStale ? new StaleConnection() : away(error));
        };
        request.on("error", fail);
        use(
          request,
          (value) => {
            settle();
            resolve(value);
          },
          fail,
        );
        request.end(outgoing.body);
      });
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        // Each attempt uses up one idle connection, and the last one is new.
        if (!(error instanceof StaleConnection)) throw error;
      }
    }
  }

  return {
    send: (outgoing) =>
      run<Reply>(outgoing, false, (request, resolve, reject) => {
        request.on("response", (response) => read(response, outgoing.onLine, resolve, reject));
      }),
    open: (outgoing) =>
      run<Duplex | Reply>(outgoing, true, (request, resolve, reject) => {
        request.on("response", (response) => read(response, undefined, resolve, reject));
        request.on("upgrade", (_response, socket: Duplex, first: Buffer) => {
          if (first.length > 0) socket.unshift(first);
          // A lost connection is an end of the stream for its reader; without a listener it would end the process.
          socket.on("error", () => {});
          resolve(socket);
        });
      }),
    reset(error) {
      for (const request of running) request.destroy(error);
      pool.destroy();
      pool = createPool();
    },
  };
}

/** Reads a response. With `onLine` it is read as lines. */
function read(
  response: IncomingMessage,
  onLine: ((line: string) => void) | undefined,
  resolve: (reply: Reply) => void,
  reject: (error: Error) => void,
): void {
  let text = "";
  let last = "";
  response.setEncoding("utf8");
  response.on("data", (part: string) => {
    text += part;
    if (onLine === undefined) return;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      last = text.slice(0, end);
      text = text.slice(end + 1);
      onLine(last);
    }
  });
  const cut = (): void => reject(new Error("the connection was closed before the end of the response"));
  response.on("end", () =>
    response.complete
      ? resolve({ status: response.statusCode ?? 0, headers: response.headers, text: text === "" ? last : text })
      : cut(),
  );
  response.on("error", reject);
  response.on("close", cut);
}
