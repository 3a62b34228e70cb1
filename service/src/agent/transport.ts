/**
 * The client's connections to an agent, over a Unix socket or TLS. A connection carries one request at a time, stays open and is used again.
 * A request that met a closed connection before any response is sent once more, because every verb can be repeated.
 */
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { reasonOf } from "../base/reason.ts";
import { AgentError } from "./error.ts";
import { createResponseReader, type Reply } from "./response.ts";
import { clientOptions, type Identity } from "./tls.ts";

/** Where the agent is: a socket on this host, or a host with the name in its certificate. */
export type Place =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly name: string; readonly identity: Identity };

/** A request. */
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
const keepAlivePeriod = 5000;
/** Anything but printable ASCII. */
const control = /[^ -~]/;

/** The connection was closed before the request arrived. */
class StaleConnection extends Error {}

/** A connection. `use` gets what happens on it: bytes, or its end. */
interface Connection {
  readonly socket: Socket;
  use: { bytes(bytes: Buffer): void; end(error: Error): void } | null;
  isUsed: boolean;
}

/** Creates the transport. It connects at the first request. */
export function createTransport(place: Place): Transport {
  const idle: Connection[] = [];
  const all = new Set<Connection>();
  const tls = "socket" in place ? null : clientOptions(place.identity, place.name);

  const closed =
    tls === null
      ? "the connection was closed before the end of the response"
      : "the connection was closed before the end of the response, as for a certificate that is revoked or of another authority";

  function open(): Connection {
    const socket =
      "socket" in place
        ? connect(place.socket)
        : connectTls({ host: place.host, port: place.port, ...tls })
            .setNoDelay(true)
            .setKeepAlive(true, keepAlivePeriod);
    const connection: Connection = { socket, use: null, isUsed: false };
    let failure: Error | undefined;
    all.add(connection);
    socket.on("data", (bytes: Buffer) => {
      if (connection.use === null) socket.destroy();
      else connection.use.bytes(bytes);
    });
    socket.on("error", (error: Error) => {
      failure = error;
    });
    socket.on("close", () => {
      all.delete(connection);
      const at = idle.indexOf(connection);
      if (at >= 0) idle.splice(at, 1);
      connection.use?.end(failure ?? new Error(closed));
    });
    return connection;
  }
  function release(connection: Connection): void {
    connection.isUsed = true;
    if (idle.length >= mostIdle || connection.socket.destroyed) return void connection.socket.destroy();
    connection.socket.unref();
    idle.push(connection);
  }
  function take(): Connection {
    const connection = idle.pop();
    connection?.socket.ref();
    return connection ?? open();
  }

  /** Sends one request and resolves to its response, or to the stream that the connection has become. */
  function exchange(request: Outgoing, isStream: boolean): Promise<Reply | Duplex> {
    const { time, signal } = request;
    const connection = isStream ? open() : take();
    const { socket } = connection;
    const reader = createResponseReader(request.onLine);
    let hasResponse = false;
    const { promise, resolve, reject } = Promise.withResolvers<Reply | Duplex>();
    const fail = (error: Error): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const stop = (): void => fail(new AgentError("away", "the request was ended"));
    const timer =
      time === undefined
        ? undefined
        : setTimeout(() => {
            const text = `the host agent did not respond within ${time} ms`;
            fail(new AgentError("deadline_exceeded", text, { isSilence: true }));
          }, time);
    function settle(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      connection.use = null;
    }
    connection.use = {
      bytes(bytes) {
        hasResponse = true;
        try {
          const rest = reader.take(bytes);
          if (rest === null) return;
          settle();
          const { reply } = reader;
          if (reply.status === 101 && isStream) return resolve(detach(connection, rest));
          if (isStream || !reader.keeps || rest.length > 0) socket.destroy();
          else release(connection);
          resolve(reply);
        } catch (error) {
          fail(away(error as Error));
        }
      },
      end(error) {
        const isStale = connection.isUsed && !hasResponse && !(error instanceof AgentError);
        fail(isStale ? new StaleConnection() : away(error));
      },
    };
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    socket.write(textOf(request));
    return promise;
  }

  /** Returns the connection as a stream of its own. The listener for errors stays: a lost connection is only the end of the stream. */
  function detach(connection: Connection, first: Buffer): Duplex {
    const { socket } = connection;
    all.delete(connection);
    socket.removeAllListeners("data");
    // As `node:http` does: the next listener for data starts the stream.
    Object.assign(socket, { readableFlowing: null });
    if (first.length > 0) socket.unshift(first);
    return socket;
  }

  async function run(request: Outgoing, isStream: boolean): Promise<Reply | Duplex> {
    for (;;) {
      try {
        return await exchange(request, isStream);
      } catch (error) {
        // Each attempt uses up one idle connection, and the last one is new.
        if (!(error instanceof StaleConnection)) throw error;
      }
    }
  }

  return {
    send: async (request) => (await run(request, false)) as Reply,
    open: (request) => run(request, true),
    reset(error) {
      for (const connection of all) {
        connection.use?.end(error);
        connection.socket.destroy();
      }
    },
  };
}

/** Why a connection failed, by the code of the error. */
const reasons: Readonly<Record<string, string>> = {
  ENOENT: "it is not running",
  ECONNREFUSED: "it is not running",
  ECONNRESET: "it closed the connection",
  EPIPE: "it closed the connection",
  EACCES: "the control plane may not use its socket",
};

/** The text of an error of a socket contains the path of the socket. */
function away(error: NodeJS.ErrnoException): AgentError {
  if (error instanceof AgentError) return error;
  const reason = reasons[error.code ?? ""] ?? reasonOf(error);
  return new AgentError("away", `the host agent does not respond: ${reason}`, { isSilence: true, cause: error });
}

/** Returns the request as text. Throws for a line break, which would begin another header or request. */
function textOf({ path, headers, body }: Outgoing): string {
  const line = (text: string): string => {
    if (control.test(text)) throw new Error("a line of the request has a control character");
    return `${text}\r\n`;
  };
  let head = line(`${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`) + line("host: agent");
  for (const name in headers) head += line(`${name}: ${headers[name]}`);
  if (body === undefined) return `${head}\r\n`;
  return `${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
