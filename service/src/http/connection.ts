/**
 * Between node:http and the pipeline: takes requests of a connection in turn, sends what the pipeline decides, and answers in the same
 * form what the parser refused. Nothing thrown here reaches a socket handler.
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
import type { Crowd } from "./connectionlimits.ts";
import { type Connection, connectionOf, type Exchange, linger, lingerAtEnd, whenClosed } from "./exchange.ts";
import { type AuditRow, TokenRefused } from "./handler.ts";
import { hasBody, isAmbiguous, readRequestId } from "./head.ts";
import type { Timer } from "./metrics.ts";
import type { Route } from "./path.ts";
import { endLate, Gone, stallTime } from "./payload.ts";
import type { Answer, Limits } from "./pipeline.ts";
import type { NoteRate } from "./rateheaders.ts";
import { errorReply, print, type Reply, send, toApiError } from "./reply.ts";
import type { Stop } from "./stop.ts";

export interface ConnectionTools {
  readonly answer: Answer;
  readonly route: (target: string) => Route;
  readonly unready: () => string | null;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly log: Log;
  readonly stop: Stop;
  readonly requestIds: () => string;
  readonly noteAudit: (row: AuditRow) => Promise<void>;
  readonly noteUnknown: Timer;
  readonly noteRate: NoteRate;
  readonly crowd: Crowd;
  readonly brake: Brake;
  /** One request more or less is running. */
  readonly count: (change: 1 | -1) => void;
}

/** Pipelined requests that may wait; then the connection is read no further until half of them are gone. */
const mostWaiting = 64;

export function serveConnection(server: Server, tools: ConnectionTools): void {
  const { limits, clock, log, stop, crowd, brake } = tools;

  /** Null: it is answered already, which spares what is remembered the cost of a promise. */
  function serve(connection: Connection, request: IncomingMessage, response: ServerResponse): Promise<void> | null {
    tools.count(1);
    const begun = performance.now();
    const head = connection.readHead(request.rawHeaders);
    const exchange: Exchange = {
      request,
      response,
      connection,
      head,
      id: readRequestId(head.requestId) ?? tools.requestIds(),
      address: connection.address,
      headers: [],
      caller: null,
      bound: null,
      parameters: {},
      dryRun: false,
      applied: "",
    };
    let answer: Reply | Promise<Reply | null>;
    try {
      answer = tools.answer(exchange);
    } catch (error) {
      answer = refuse(exchange, error);
    }
    if (answer instanceof Promise) return serveLater(exchange, answer, begun);
    note(exchange, answer, begun);
    finish(exchange, answer);
    return null;
  }

  async function serveLater(exchange: Exchange, answer: Promise<Reply | null>, begun: number): Promise<void> {
    let reply: Reply | null;
    try {
      reply = await answer;
    } catch (error) {
      if (error instanceof Gone) return;
      // A token that was just refused is not looked up once more.
      if (!(error instanceof ApiError && error.status === 401)) await tools.noteRate(exchange);
      reply = refuse(exchange, error);
      await auditRefusal(exchange, error, reply.status);
      if (reply.status === 401) await slow(exchange);
    }
    note(exchange, reply, begun);
    if (reply !== null) finish(exchange, reply);
    else await whenClosed(exchange.response);
  }

  function note({ bound }: Exchange, reply: Reply | null, begun: number): void {
    const timer = bound?.note ?? tools.noteUnknown;
    timer(reply?.status ?? 200, (performance.now() - begun) / 1000);
  }

  function refuse(exchange: Exchange, error: unknown): Reply {
    const fault = toApiError(error);
    const { bound } = exchange;
    if (!(error instanceof ApiError)) {
      const level = error instanceof StorageError ? "warn" : "error";
      log(level, "a request failed", { request: exchange.id, operation: bound?.name, error });
    }
    return errorReply(fault, exchange.id);
  }

  /** Changes that were asked for, and whatever was asked for with a token that is not good. Resolves when the answer may leave. */
  async function auditRefusal(exchange: Exchange, error: unknown, status: number): Promise<void> {
    const { bound } = exchange;
    if (bound === null || bound.operation.access === "open") return;
    const caller = exchange.caller ?? (error instanceof TokenRefused ? error.caller : null);
    const isBadToken = exchange.caller === null && error instanceof ApiError && error.code !== "token_missing";
    if (isBadToken || (bound.change && !exchange.dryRun))
      await tools.noteAudit(auditRow(exchange, bound, caller, clock.now(), status));
  }

  /** Resolves when a refusal of a token may leave: at once, or later where the network sends many. */
  async function slow({ address }: Exchange): Promise<void> {
    const ms = brake(address, performance.now());
    if (ms > 0) await stop.race(sleep(ms, undefined, { ref: false }));
  }

  function finish(exchange: Exchange, reply: Reply): void {
    const { request, response, connection, head, headers } = exchange;
    if (exchange.applied !== "") headers.push("Preference-Applied", exchange.applied);
    if (exchange.dryRun) headers.push("X-Dry-Run", "true");
    // What is remembered is answered before the parser has come to the end of a request without a body.
    const unread = !request.complete && hasBody(head);
    // A body of unknown length, or one that the client may now never send, cannot be waited for.
    const lost = isAmbiguous(head) || (unread && (head.transferEncoding !== undefined || head.expect !== undefined));
    const { status } = reply;
    if (
      request.httpVersion !== "1.1" ||
      stop.asked ||
      lost ||
      status === 408 ||
      status === 413 ||
      status === 431 ||
      status === 501
    )
      response.shouldKeepAlive = false;
    // The parser does not find its way back to HTTP behind an upgrade that was asked for and is not given.
    if (connection.broken !== null || head.upgrade !== undefined) response.shouldKeepAlive = false;
    if (unread && !response.shouldKeepAlive) lingerAtEnd(connection.socket);
    else if (unread) endLate(request, limits.bodyTime);
    try {
      send(request, response, exchange.id, reply, headers);
    } catch (error) {
      log("error", "an answer could not be written", { request: exchange.id, error });
      connection.socket.destroy();
    }
    // A client that does not take its answer must not be waited for without end.
    if (response.writableLength > 0) connection.socket.setTimeout(stallTime(limits));
  }

  function endTurn(connection: Connection, response: ServerResponse): void {
    const { socket, waiting } = connection;
    tools.count(-1);
    connection.last = response;
    if (socket.destroyed || !response.shouldKeepAlive) {
      connection.closed = true;
      waiting.length = 0;
    } else if (waiting.length === mostWaiting / 2) socket.resume();
  }

  /** The turns of those who came meanwhile, when that of `response` is over. */
  async function goOn(connection: Connection, serving: Promise<void>, response: ServerResponse): Promise<void> {
    await serving;
    endTurn(connection, response);
    for (let turn = connection.waiting.shift(); turn; turn = connection.waiting.shift()) {
      await serve(connection, turn.request, turn.response);
      endTurn(connection, turn.response);
    }
    if (connection.farewell !== null) await part(connection, connection.farewell);
    connection.busy = false;
    crowd.release(connection.socket);
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
        endTurn(connection, response);
        connection.busy = false;
        crowd.touch(connection.socket);
        return;
      }
      crowd.hold(connection.socket);
      goOn(connection, serving, response).catch((error: unknown) => fail(connection, error));
    } catch (error) {
      fail(connection, error);
    }
  }

  function fail(connection: Connection, error: unknown): void {
    log("error", "a connection failed", { error });
    connection.socket.destroy();
  }

  function say(connection: Connection, text: string): void {
    connection.closed = true;
    linger(connection.socket, text);
  }

  /** Node:http still holds an answer back while the one before it is on its way out. */
  async function part(connection: Connection, farewell: () => string): Promise<void> {
    if (connection.closed) return;
    connection.busy = true;
    if (connection.last !== null) await whenClosed(connection.last);
    say(connection, farewell());
    connection.busy = false;
  }

  /** The last words on a connection, after the answers that are still due. */
  function leave(connection: Connection, fault: ApiError, headers: readonly string[] = []): void {
    if (connection.closed || connection.farewell !== null) return;
    connection.farewell = () => {
      const id = tools.requestIds();
      tools.noteUnknown(fault.status, 0);
      return print(id, errorReply(fault, id, headers), clock.now());
    };
    if (!connection.busy) part(connection, connection.farewell).catch((error: unknown) => fail(connection, error));
  }

  /** A method that the parser or node:http keeps for itself: no operation has it, but the path may be known. */
  function leaveUnknown(connection: Connection, target: string): void {
    const unready = tools.unready();
    const route = tools.route(target);
    if (!route.found && route.reason === "path_not_readable")
      leave(
        connection,
        new ApiError("path_not_readable", "The request target is not a path in percent-encoded UTF-8."),
      );
    else if (unready !== null) leave(connection, new ApiError("not_ready", unready));
    else if (!route.found)
      leave(connection, new ApiError("path_not_found", "Nothing is offered at this path; /docs says what is."));
    else {
      const allow = route.allow.join(", ");
      leave(connection, new ApiError("method_not_allowed", `This path takes ${allow}.`), ["Allow", allow]);
    }
  }

  server.on("request", take);
  server.on("checkContinue", take);
  server.on("checkExpectation", take);

  server.on("connect", (request: IncomingMessage, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    const connection = connectionOf(request.socket);
    connection.latest = request;
    leaveUnknown(connection, request.url ?? "");
  });

  server.on("clientError", (error: ParserError, socket: Duplex) => {
    const connection = connectionOf(socket as Connection["socket"]);
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else if (connection.closed || connection.broken !== null) return;
    else if (connection.latest !== null && !connection.latest.complete) {
      connection.broken = bodyError(error);
      if (connection.onBroken !== null) connection.onBroken();
      else if (!connection.busy) socket.destroy();
    } else {
      const unknown = unknownMethod(error);
      if (unknown !== null) leaveUnknown(connection, unknown.target);
      else leave(connection, headError(error, limits));
    }
  });
}
