/**
 * Handles the requests of the control plane: headers, size, schema, deadline, then the method of the driver, and its result or error as
 * data. A verb with notes responds with lines of JSON, the last of which is the result; every other verb with one JSON value.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, pipeline } from "node:stream";
import type { Log } from "../base/log.ts";
import type { Stream } from "../drivers/machine/interface.ts";
import type { BoundVerb } from "./bound.ts";
import type { CallLimits, Calls, RunningCall } from "./calls.ts";
import { eventsPath } from "./contract/session.ts";
import { headers } from "./contract/verb.ts";
import { AgentError, errorCodes, toWire, type WireError } from "./error.ts";
import type { EventLog } from "./events.ts";
import type { Fence } from "./fence.ts";
import { type Head, readHead } from "./head.ts";

/** Dependencies of `createHandler`. */
export interface HandlerOptions {
  readonly verbs: ReadonlyMap<string, BoundVerb>;
  readonly fence: Fence;
  readonly calls: Calls;
  readonly events: EventLog;
  readonly limits: CallLimits;
  readonly release: string;
  readonly log: Log;
}

/** Handles requests, and requests that become a stream. */
export interface Handler {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Ends the streams whose connection fits. */
  endStreams(fits: (socket: Duplex) => boolean): void;
}

const lines = { "content-type": "application/x-ndjson" } as const;
/** Milliseconds between two notes of one call about a transfer. */
const notePeriod = 100;
/** The verb that returns the fence number. */
const greeting = "session.hello";

export function createHandler(options: HandlerOptions): Handler {
  const { verbs, fence, calls, events, limits, release, log } = options;
  const streams = { event: 0, other: 0 };
  const sockets = new Set<Duplex>();

  function find(request: IncomingMessage, isStream: boolean): BoundVerb {
    const bound = verbs.get((request.url ?? "").split("?", 1)[0] ?? "");
    if (
      bound === undefined ||
      request.method !== (isStream ? "GET" : "POST") ||
      (bound.verb.stream !== undefined) !== isStream
    )
      throw new AgentError("verb_unknown", "the host agent has no such verb");
    return bound;
  }

  /** Reads the headers and checks the fence number. The request for a number has none yet. */
  function readAll(request: IncomingMessage, name: string): Head {
    calls.admit();
    const head = readHead(request.headers, release);
    if (name === greeting) return { ...head, fence: Number.POSITIVE_INFINITY };
    fence.pass(head.fence);
    return head;
  }

  function beginCall({ request, fence: number, deadline }: Head, { name, verb }: BoundVerb): RunningCall {
    // A newer control plane may have connected while the body was read.
    if (name !== greeting) fence.pass(number);
    return calls.begin(request, number, Math.max(1, Math.min(deadline ?? verb.time, verb.time)));
  }

  /** Counts a stream. Throws `busy` beyond the limit of its kind. Returns the function that ends the count. */
  function admitStream(kind: keyof typeof streams): () => void {
    if (streams[kind] >= limits.streams)
      throw new AgentError("busy", `the host agent has ${streams[kind]} streams already`);
    streams[kind]++;
    return once(() => void streams[kind]--);
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET" && request.url?.startsWith(`${eventsPath}?`)) return follow(request, response);
    const bound = find(request, false);
    const head = readAll(request, bound.name);
    let held = 0;
    const hold = (bytes: number): void => {
      calls.hold(bytes);
      held += bytes;
    };
    try {
      await answer(bound, head, parse(await readBody(request, bound.bytes, hold)), response);
    } finally {
      calls.release(held);
    }
  }

  /** Runs a call and sends its result. */
  async function answer(bound: BoundVerb, head: Head, body: unknown, response: ServerResponse): Promise<void> {
    const input = bound.check(body);
    const call = beginCall(head, bound);
    // A caller that is gone gets no result.
    response.on("close", () => {
      if (!response.writableFinished) call.abort(new AgentError("aborted", "the caller is gone"));
    });
    const isNoting = bound.verb.note !== undefined;
    /** Sends the last line of a response of lines. Without notes its length is known, which is cheaper for both sides. */
    const finish = (value: object): void => {
      const text = `${JSON.stringify(value)}\n`;
      if (!response.headersSent) response.writeHead(200, { ...lines, "content-length": Buffer.byteLength(text) });
      response.end(text);
    };
    let noted = 0;
    const note = (value: unknown): void => {
      const isTransfer = bound.verb.extra === "transfer";
      const now = performance.now();
      if (response.writableEnded || (isTransfer && now < noted + notePeriod)) return;
      noted = now;
      if (!response.headersSent) response.writeHead(200, lines);
      response.write(`${JSON.stringify({ note: value })}\n`);
    };
    try {
      const result = await inTime(
        bound,
        bound.run(input, { signal: call.signal, note, request: head.request }),
        call.signal,
      );
      const value = bound.verb.answer === null ? null : (result ?? null);
      if (!isNoting) return sendJson(response, 200, value, events.last());
      finish({ event: events.last(), answer: value });
    } catch (error) {
      if (!isNoting) throw error;
      finish({ event: events.last(), error: report(bound.name, error) });
    } finally {
      call.end();
    }
  }

  function follow(request: IncomingMessage, response: ServerResponse): void {
    const head = readAll(request, eventsPath);
    const ended = admitStream("event");
    const query = new URLSearchParams(request.url?.slice(eventsPath.length));
    const after = Number(query.get("after") ?? 0);
    const { socket } = request;
    const leave = fence.onRaise((number) => {
      if (number > head.fence) response.destroy();
    });
    response.on("close", () => {
      ended();
      leave();
    });
    socket.setKeepAlive(true, 5000);
    events.stream(response, query.get("epoch"), Number.isSafeInteger(after) && after >= 0 ? after : 0);
  }

  /** Logs what is not a refusal of the driver's caller, and returns the error as data. */
  function report(name: string, error: unknown): WireError {
    const wire = toWire(error);
    if (wire.code === "driver_failed" || wire.code === "aborted") log("debug", `${name} failed.`, { error });
    else log("warn", `The host agent refused ${name}: ${wire.detail}`, { code: wire.code });
    return wire;
  }

  return {
    request(request, response) {
      respond(request, response).catch((error: unknown) => {
        const wire = report(request.url?.split("?", 1)[0]?.slice(0, 100) ?? "", error);
        if (response.headersSent || response.destroyed) response.destroy();
        else {
          // The rest of a body that was refused is not read.
          if (!request.complete) response.setHeader("connection", "close");
          sendJson(response, errorCodes[wire.code].status, wire, events.last());
        }
      });
    },
    upgrade(request, socket, first) {
      socket.on("error", () => {});
      open(request, socket, first).catch((error: unknown) => {
        const wire = report(request.url?.split("?", 1)[0]?.slice(0, 100) ?? "", error);
        const body = JSON.stringify(wire);
        socket.end(
          `HTTP/1.1 ${errorCodes[wire.code].status} Error\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
        );
      });
    },
    endStreams(fits) {
      for (const socket of sockets) if (fits(socket)) socket.destroy();
    },
  };

  async function openInTime(bound: BoundVerb, head: Head, input: Readonly<Record<string, unknown>>): Promise<Stream> {
    const call = beginCall(head, bound);
    const running = bound.run(input, { signal: call.signal, note: () => {}, request: head.request }) as Promise<Stream>;
    try {
      return await inTime(bound, running, call.signal);
    } catch (error) {
      // The driver may open it later, and a stream without an end would hold its file or console.
      running.then(
        (late) => late.destroy(),
        () => {},
      );
      throw error;
    } finally {
      call.end();
    }
  }

  async function open(request: IncomingMessage, socket: Duplex, first: Buffer): Promise<void> {
    const bound = find(request, true);
    const head = readAll(request, bound.name);
    const input = bound.check(parse(new URLSearchParams(request.url?.split("?", 2)[1]).get("input") ?? ""));
    const ended = admitStream("other");
    let stream: Stream;
    try {
      stream = await openInTime(bound, head, input);
    } catch (error) {
      ended();
      throw error;
    }
    const leave = fence.onRaise((number) => {
      if (number > head.fence) socket.destroy();
    });
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: brume-bytes\r\n\r\n");
    if (first.length > 0) socket.unshift(first);
    sockets.add(socket);
    const end = once(() => {
      ended();
      sockets.delete(socket);
      leave();
      socket.destroy();
      stream.destroy();
    });
    const { stream: direction } = bound.verb;
    if (direction === "read") socket.on("close", end);
    else pipeline(socket, stream, end);
    // What was written is on disk when the stream has ended; then the connection ends.
    if (direction !== "write") pipeline(stream, socket, end);
  }
}

/** Returns a function that runs `work` at its first call only. */
function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

/** Resolves like `work`. A method without a signal cannot be stopped, so at the deadline only the caller is released. */
async function inTime<T>({ verb }: BoundVerb, work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (verb.extra === "signal" || verb.extra === "transfer") return work;
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  promise.catch(() => {});
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", stop);
    work.catch(() => {});
  }
}

/** Reads the body. Throws `input_too_large` beyond `most` bytes. `hold` is called with the bytes of each part, and may throw. */
async function readBody(request: IncomingMessage, most: number, hold: (bytes: number) => void): Promise<string> {
  const refuse = (): never => {
    throw new AgentError("input_too_large", `the body is larger than ${most} bytes`);
  };
  if (Number(request.headers["content-length"] ?? 0) > most) refuse();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const parts: Buffer[] = [];
  let size = 0;
  let isRefused = false;
  request.on("data", (part: Buffer) => {
    if (isRefused) return;
    size += part.length;
    try {
      if (size > most) refuse();
      hold(part.length);
      parts.push(part);
    } catch (error) {
      isRefused = true;
      parts.length = 0;
      reject(error);
    }
  });
  request.on("end", () => resolve((parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString("utf8")));
  request.on("error", reject);
  return promise;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new AgentError("input_invalid", "the body is not JSON");
  }
}

function sendJson(response: ServerResponse, status: number, value: unknown, event: number): void {
  const text = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    [headers.event]: event,
  });
  response.end(text);
}
