/**
 * State of a request while it is processed, and of its connection. Node:http parses pipelined requests ahead and would run them in
 * parallel. A connection here runs them one after another, so a read sees the change that was sent before it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ApiError } from "../base/error.ts";
import type { Bound } from "./bind.ts";
import type { Caller } from "./handler.ts";
import { createHeadReader, type Head } from "./head.ts";

/** A request and its response while it is processed. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly head: Head;
  /** `X-Request-Id`. */
  readonly id: string;
  /** Address of the client. */
  readonly address: string;
  /** Headers to add to the response, as alternating names and values. */
  readonly headers: string[];
  /** Set when the token is known. */
  caller: Caller | null;
  /** Set when the operation is known. */
  bound: Bound | null;
  /** Texts of the path parameters. */
  parameters: Readonly<Record<string, string>>;
  dryRun: boolean;
  /** Value of `Preference-Applied`; empty: none. */
  applied: string;
}

/** State of one connection. */
export interface Connection {
  readonly socket: Socket;
  /** Address of the client; an IPv4 address is never in its IPv6 form. */
  readonly address: string;
  readonly readHead: (raw: readonly string[]) => Head;
  /** A request is running. */
  busy: boolean;
  /** Further input is ignored. */
  closed: boolean;
  /** Pipelined requests that wait for the running one. */
  readonly waiting: { readonly request: IncomingMessage; readonly response: ServerResponse }[];
  /** The last response; it may not be sent completely yet. */
  last: ServerResponse | null;
  /** The request whose head was read last: the only one whose body may be incomplete. */
  latest: IncomingMessage | null;
  /** Its body is content that the handler reads, which has no time limit as a whole. */
  isReadingContent: boolean;
  /** The error that ended that body early. */
  broken: ApiError | null;
  /** Called when `broken` is set. */
  onBroken: (() => void) | null;
  /** Returns the response to send after the last one, before the connection closes: the input after it was not HTTP. */
  farewell: (() => string) | null;
}

const connections = new WeakMap<Socket, Connection>();

/** Returns the state of a connection. Creates it on the first call. */
export function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const created: Connection = {
    socket,
    address: addressOf(socket),
    readHead: createHeadReader(),
    busy: false,
    closed: false,
    waiting: [],
    last: null,
    latest: null,
    isReadingContent: false,
    broken: null,
    onBroken: null,
    farewell: null,
  };
  connections.set(socket, created);
  return created;
}

/** Returns true if all responses of the connection have been sent completely. */
export const isIdle = ({ busy, last }: Connection): boolean => !busy && (last === null || last.closed);

/** Resolves when the response has been sent or its connection was closed. */
export async function whenClosed(response: ServerResponse): Promise<void> {
  if (!response.closed) await new Promise((resolve) => response.once("close", resolve));
}

/** Milliseconds that a client may continue to send before the connection is closed. */
const lingerTime = 2000;

/**
 * Sends `text`, ends the connection, and reads the input for a while. Closing with unread bytes makes the kernel send a reset, which can
 * destroy the response before the client reads it (RFC 9112 section 9.6).
 */
export function linger(socket: Socket, text = ""): void {
  socket.end(text);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerTime);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Makes node:http linger after the last response instead of closing at once. */
export function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => linger(socket);
}

/** Creates a source of request ids: `prefix` and a counter. A random prefix makes them unique among processes. */
export function createRequestIds(prefix: string): () => string {
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}

function addressOf(socket: Socket): string {
  const address = socket.remoteAddress ?? "";
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}

const authority = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Returns scheme and authority of the request URL, from the headers of the client or its proxy, else from the socket. */
export function originOf({ headers, socket }: IncomingMessage): string {
  const isSecure = "encrypted" in socket || headers["x-forwarded-proto"] === "https";
  const { localAddress = "", localPort = 0 } = socket;
  const localHost = `${localAddress.includes(":") ? `[${localAddress}]` : localAddress}:${localPort}`;
  const host = headers.host !== undefined && authority.test(headers.host) ? headers.host : localHost;
  return `${isSecure ? "https" : "http"}://${host}`;
}
