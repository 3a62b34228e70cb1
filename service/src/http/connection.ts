/**
 * Connects node:http to the pipeline. Runs the requests of a connection one after another, sends the responses, and sends the same form
 * of error for requests that the parser rejects. No error reaches a socket handler.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import { ApiError } from "../base/error.ts";
import type { Log } from "../base/log.ts";
import { StorageError } from "../store/db.ts";
import type { Brake } from "./brake.ts";
import { bodyError, headError, type ParserError, unknownMethod } from "./broken.ts";
import { auditRow } from "./change.ts";
import type { ConnectionTracker } from "./connectionlimits.ts";
import { type Connection, connectionOf, type Exchange, linger, lingerAtEnd, whenClosed } from "./exchange.ts";
import { type AuditRow, TokenRefused } from "./handler.ts";
import { hasBody, isAmbiguous, readRequestId } from "./head.ts";
import type { Timer } from "./metrics.ts";
import type { Route } from "./path.ts";
import { endLate, Gone, stallTime } from "./payload.ts";
import type { Limits, Respond } from "./pipeline.ts";
import type { NoteRate } from "./rateheaders.ts";
import { errorReply, print, type Reply, send, toApiError } from "./reply.ts";
import type { Stop } from "./stop.ts";

/** Dependencies of the connections. */
export interface ConnectionContext {
  readonly respond: Respond;
  readonly route: (target: string) => Route;
  readonly unready: () => string | null;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
  readonly stop: Stop;
  readonly requestIds: () => string;
  readonly noteAudit: (row: AuditRow) => Promise<void>;
  /** Records requests without an operation in the metrics. */
  readonly recordUnknown: Timer;
  readonly noteRate: NoteRate;
  readonly tracker: ConnectionTracker;
  readonly brake: Brake;
  /** Engines that are simulated, for `X-Simulated`; empty: none. */
  readonly simulated: string;
  /** Adds to the number of running requests. */
  readonly count: (change: 1 | -1) => void;
}

/** Pipelined requests that may wait. At this number reading pauses until half of them are served. */
const mostWaiting = 64;

/** Returns whether the response is about servers or networks, so that simulated engines matter. */
const isSimulated = (bound: Exchange["bound"]): boolean => /^(?:server|network):/.test(bound?.operation.access ?? "");

/** Serves the requests of all connections of `server`. */
export function serveConnection(server: Server, context: ConnectionContext): void {
  const { limits, clock, log, stop, tracker, brake } = context;

  /** Starts a request. Returns null if the response has been sent already; cached responses need no promise. */
  function serve(connection: Connection, request: IncomingMessage, response: ServerResponse): Promise<void> | null {
    context.count(1);
    const begun = performance.now();
    const head = connection.readHead(request.rawHeaders);
    const exchange: Exchange = {
      request,
      response,
      connection,
      head,
      id: readRequestId(head.requestId) ?? context.requestIds(),
      address: connection.address,
      headers: [],
      caller: null,
      bound: null,
      parameters: {},
      dryRun: false,
      applied: "",
    };
    let reply: Reply | Promise<Reply | null>;
    try {
      reply = context.respond(exchange);
    } catch (error) {
      reply = errorReplyOf(exchange, error);
    }
    if (reply instanceof Promise) return serveLater(exchange, reply, begun);
    recordDuration(exchange, reply, begun);
    // Neither a cached response nor an error has a large body.
    void finish(exchange, reply);
    return null;
  }

  async function serveLater(exchange: Exchange, pending: Promise<Reply | null>, begun: number): Promise<void> {
    let reply: Reply | null;
    try {
      reply = await pending;
    } catch (error) {
      if (error instanceof Gone) return;
      // A token that was just rejected is not authenticated again.
      if (!(error instanceof ApiError && error.status === 401)) await context.noteRate(exchange);
      reply = errorReplyOf(exchange, error);
      await auditRefusal(exchange, error, reply.status);
      if (reply.status === 401) await delayRejection(exchange);
    }
    recordDuration(exchange, reply, begun);
    if (reply === null) await whenClosed(exchange.response);
    else await finish(exchange, reply);
  }

  function recordDuration({ bound }: Exchange, reply: Reply | null, begun: number): void {
    const timer = bound?.recordDuration ?? context.recordUnknown;
    timer(reply?.status ?? 200, (performance.now() - begun) / 1000);
  }

  function errorReplyOf(exchange: Exchange, error: unknown): Reply {
    const apiError = toApiError(error);
    const { bound } = exchange;
    if (!(error instanceof ApiError)) {
      const level = error instanceof StorageError ? "warn" : "error";
      log(level, "A request failed.", { request: exchange.id, operation: bound?.name, error });
    }
    return errorReply(apiError, exchange.id);
  }

  /** Audits rejected changes, and all requests with an invalid token. Resolves when the response may be sent. */
  async function auditRefusal(exchange: Exchange, error: unknown, status: number): Promise<void> {
    const { bound } = exchange;
    if (bound === null || bound.operation.access === "open") return;
    const caller = exchange.caller ?? (error instanceof TokenRefused ? error.caller : null);
    const isBadToken = exchange.caller === null && error instanceof ApiError && error.code !== "token_missing";
    if (isBadToken || (bound.change && !exchange.dryRun))
      await context.noteAudit(auditRow(exchange, bound, caller, clock.now(), status));
  }

  /** Delays the response to an invalid token if its network has sent many of them. */
  async function delayRejection({ address }: Exchange): Promise<void> {
    const ms = brake(address, performance.now());
    if (ms > 0) await stop.race(sleep(ms, undefined, { ref: false }));
  }

  /** Sends the response. Returns a promise if its body is large. */
  function finish(exchange: Exchange, reply: Reply): Promise<void> | null {
    const { request, response, connection, head, headers } = exchange;
    if (exchange.applied !== "") headers.push("Preference-Applied", exchange.applied);
    if (exchange.dryRun) headers.push("X-Dry-Run", "true");
    if (context.simulated !== "" && isSimulated(exchange.bound)) headers.push("X-Simulated", context.simulated);
    // A cached response is sent before the parser has reached the end of a request without a body.
    const unread = !request.complete && hasBody(head);
    // A body of unknown length, or one that the client may not send now, is not waited for.
    const isBodyLost =
      isAmbiguous(head) || (unread && (head.transferEncoding !== undefined || head.expect !== undefined));
    const { status } = reply;
    if (
      request.httpVersion !== "1.1" ||
      stop.requested ||
      isBodyLost ||
      status === 408 ||
      status === 413 ||
      status === 431 ||
      status === 501
    )
      response.shouldKeepAlive = false;
    // After a rejected upgrade the parser cannot continue with HTTP.
    if (connection.broken !== null || head.upgrade !== undefined) response.shouldKeepAlive = false;
    if (unread && !response.shouldKeepAlive) lingerAtEnd(connection.socket);
    else if (unread) endLate(request, limits.bodyTime);
    const failed = (error: unknown): void => {
      log("error", "A response could not be sent.", { request: exchange.id, error });
      connection.socket.destroy();
    };
    let sending: Promise<void> | null = null;
    try {
      sending = send(request, response, exchange.id, reply, headers);
    } catch (error) {
      failed(error);
    }
    // Limits the wait for a client that does not read its response.
    if (response.writableLength > 0 || sending !== null) connection.socket.setTimeout(stallTime(limits));
    return sending?.catch(failed) ?? null;
  }

  function endRequest(connection: Connection, response: ServerResponse): void {
    const { socket, waiting } = connection;
    context.count(-1);
    connection.last = response;
    if (socket.destroyed || !response.shouldKeepAlive) {
      connection.closed = true;
      waiting.length = 0;
    } else if (waiting.length === mostWaiting / 2) socket.resume();
  }

  /** Waits for the running request, then serves the requests that arrived meanwhile. */
  async function serveWaiting(connection: Connection, serving: Promise<void>, response: ServerResponse): Promise<void> {
    await serving;
    endRequest(connection, response);
    for (let next = connection.waiting.shift(); next; next = connection.waiting.shift()) {
      await serve(connection, next.request, next.response);
      endRequest(connection, next.response);
    }
    if (connection.farewell !== null) await sendFarewell(connection, connection.farewell);
    connection.busy = false;
    tracker.endRequest(connection.socket);
  }

  function take(request: IncomingMessage, response: ServerResponse): void {
    const connection = connectionOf(request.socket);
    if (connection.closed) return;
    connection.latest = request;
    if (connection.busy) {
      connection.waiting.push({ request, response });
      if (connection.waiting.length >= mostWaiting) connection.socket.pause();
      return;
    }
    connection.busy = true;
    try {
      const serving = serve(connection, request, response);
      if (serving === null) {
        endRequest(connection, response);
        connection.busy = false;
        tracker.touch(connection.socket);
        return;
      }
      tracker.startRequest(connection.socket);
      serveWaiting(connection, serving, response).catch((error: unknown) => fail(connection, error));
    } catch (error) {
      fail(connection, error);
    }
  }

  function fail(connection: Connection, error: unknown): void {
    log("error", "A connection failed.", { error });
    connection.socket.destroy();
  }

  function sendLast(connection: Connection, text: string): void {
    connection.closed = true;
    linger(connection.socket, text);
  }

  /** Sends the last response of the connection when the one before it has been sent. */
  async function sendFarewell(connection: Connection, farewell: () => string): Promise<void> {
    if (connection.closed) return;
    connection.busy = true;
    if (connection.last !== null) await whenClosed(connection.last);
    sendLast(connection, farewell());
    connection.busy = false;
  }

  /** Closes the connection with an error response, after the responses to the requests before it. */
  function closeWith(connection: Connection, error: ApiError, headers: readonly string[] = []): void {
    if (connection.closed || connection.farewell !== null) return;
    connection.farewell = () => {
      const id = context.requestIds();
      context.recordUnknown(error.status, 0);
      return print(id, errorReply(error, id, headers), clock.now());
    };
    if (!connection.busy)
      sendFarewell(connection, connection.farewell).catch((cause: unknown) => fail(connection, cause));
  }

  /** Closes the connection after a method that the parser or node:http does not pass on. The path decides the error. */
  function rejectMethod(connection: Connection, target: string): void {
    const unready = context.unready();
    const route = context.route(target);
    if (!route.found && route.reason === "path_not_readable")
      closeWith(
        connection,
        new ApiError("path_not_readable", "The request target is not a path in percent-encoded UTF-8."),
      );
    else if (unready !== null) closeWith(connection, new ApiError("not_ready", unready));
    else if (!route.found)
      closeWith(connection, new ApiError("path_not_found", "No operation has this path; /docs lists all paths."));
    else {
      const allow = route.allow.join(", ");
      closeWith(connection, new ApiError("method_not_allowed", `This path supports ${allow}.`), ["Allow", allow]);
    }
  }

  server.on("request", take);
  server.on("checkContinue", take);
  server.on("checkExpectation", take);

  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    const connection = connectionOf(request.socket);
    connection.latest = request;
    rejectMethod(connection, request.url ?? "");
  });

  server.on("clientError", (error: ParserError, socket: Duplex) => {
    const connection = connectionOf(socket as Connection["socket"]);
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && connection.isReadingContent) return;
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else if (connection.closed || connection.broken !== null) return;
    else if (connection.latest !== null && !connection.latest.complete) {
      connection.broken = bodyError(error);
      if (connection.onBroken !== null) connection.onBroken();
      else if (!connection.busy) socket.destroy();
    } else {
      const unknown = unknownMethod(error);
      if (unknown !== null) rejectMethod(connection, unknown.target);
      else closeWith(connection, headError(error, limits));
    }
  });
}
