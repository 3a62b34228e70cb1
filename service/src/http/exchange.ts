/**
 * One request on its way to its answer, and the connection it came over. Node:http parses pipelined requests ahead and would
 * run them side by side; a connection here runs them one after the other, so that a read sees the change sent before it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ApiError } from "../base/error.ts";
import type { Bound } from "./bind.ts";
import type { Caller } from "./handler.ts";
import { createHeadReader, type Head } from "./head.ts";

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly head: Head;
  /** `X-Request-Id`. */
  readonly id: string;
  /** Where the request came from. */
  readonly address: string;
  /** Headers that every answer from here on has: names and values in turn. */
  readonly headers: string[];
  /** Set when the token is known. */
  caller: Caller | null;
  /** Set when the operation is known, with the texts in the path's parameters. */
  bound: Bound | null;
  parameters: Readonly<Record<string, string>>;
  dryRun: boolean;
  /** Which preferences were honoured, for `Preference-Applied`. */
  applied: string;
}

export interface Connection {
  readonly socket: Socket;
  /** The peer's; IPv4 in its own form also on a socket of both families. */
  readonly address: string;
  readonly readHead: (raw: readonly string[]) => Head;
  /** A request runs. */
  busy: boolean;
  /** Nothing that still comes is looked at. */
  closed: boolean;
  /** Requests that came ahead of their turn, with where their answers go. */
  readonly waiting: { readonly request: IncomingMessage; readonly response: ServerResponse }[];
  /** The answer that was given last; it may still be on its way out, with others before it. */
  last: ServerResponse | null;
  /** The request whose head was read last: the only one whose body may be under way. */
  latest: IncomingMessage | null;
  /** Why the rest of that body will never come, and who wants to hear of it. */
  broken: ApiError | null;
  onBroken: (() => void) | null;
  /** What is said after the last answer, before the connection closes: the syntax behind it was not HTTP. */
  farewell: (() => string) | null;
}

const connections = new WeakMap<Socket, Connection>();

export function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const made: Connection = {
    socket,
    address: addressOf(socket),
    readHead: createHeadReader(),
    busy: false,
    closed: false,
    waiting: [],
    last: null,
    latest: null,
    broken: null,
    onBroken: null,
    farewell: null,
  };
  connections.set(socket, made);
  return made;
}

/** Whether every request that came over it has got its whole answer. */
export const isIdle = ({ busy, last }: Connection): boolean => !busy && (last === null || last.closed);

/** Resolves when the answer has left, or its connection was closed under it. */
export async function whenClosed(response: ServerResponse): Promise<void> {
  if (!response.closed) await new Promise((resolve) => response.once("close", resolve));
}

/** How long a client that is still sending may go on, in milliseconds, before the connection is cut. */
const lingerTime = 2000;

/**
 * Ends the connection after what was written, and `text`, but reads on for a while: closing with unread bytes makes the kernel send a reset, which
 * can wipe out the answer before the client reads it (RFC 9112 section 9.6).
 */
export function linger(socket: Socket, text = ""): void {
  socket.end(text);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerTime);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Makes node:http, which closes at once after a last answer, linger instead. */
export function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => linger(socket);
}

/** Request ids that no other process gives: a random beginning, then counted. */
export function createRequestIds(beginning: string): () => string {
  let count = 0;
  return () => `${beginning}-${(++count).toString(36)}`;
}

function addressOf(socket: Socket): string {
  const address = socket.remoteAddress ?? "";
  return address.startsWith("::ffff:") ? address.slice(7) : address;
}

const authority = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Scheme and authority that the request was sent to: as a proxy in front or the client says, else as the socket is. */
export function originOf({ headers, socket }: IncomingMessage): string {
  const isSecure = "encrypted" in socket || headers["x-forwarded-proto"] === "https";
  const { localAddress = "", localPort = 0 } = socket;
  const own = `${localAddress.includes(":") ? `[${localAddress}]` : localAddress}:${localPort}`;
  const host = headers.host !== undefined && authority.test(headers.host) ? headers.host : own;
  return `${isSecure ? "https" : "http"}://${host}`;
}
