/**
 * Reads the bytes of a body, within limits of size and time. The pipeline reads the body only after all checks that do not need it, so
 * `100 Continue` is sent only here.
 */
import type { IncomingMessage } from "node:http";
import { ApiError } from "../base/error.ts";
import type { Exchange } from "./exchange.ts";

/** Limits of a body. */
export interface PayloadLimits {
  /** Maximum size in bytes. */
  readonly body: number;
  /** Milliseconds for the complete body. */
  readonly bodyTime: number;
}

/** Returns the milliseconds after which a connection whose client does not read its response is closed. */
export const stallTime = ({ bodyTime }: PayloadLimits): number => 2 * bodyTime;

/** Thrown when the client closed the connection during its request, so no response is possible. */
export class Gone extends Error {
  override readonly name = "Gone";
}

/** Creates the error of a body with more than `limit` bytes. */
export function tooLarge(limit: number): ApiError {
  return new ApiError("body_too_large", `The body must not be longer than ${limit} bytes.`);
}

/**
 * Reads the body of a request to its end. With `keep: false` the bytes are dropped and the result is empty. Rejects with
 * `body_too_large`, `request_timeout`, `body_not_readable` (broken chunks) or `Gone`.
 */
export async function receive(
  exchange: Exchange,
  limits: PayloadLimits,
  turnEnd: TurnEnd,
  keep: boolean,
): Promise<Uint8Array> {
  const { request, response, connection, head } = exchange;
  if (head.expect !== undefined && request.httpVersionMinor > 0 && head.expect.toLowerCase() === "100-continue")
    response.writeContinue();
  // Without a first read node:http treats the body as unwanted and reads it once more at the end.
  request.read(0);
  // After this the parser has processed all input that arrived with the head: most bodies are complete.
  await turnEnd();
  if (request.complete && connection.broken === null) {
    const complete = request.read() as Uint8Array | null;
    request.read();
    if (complete !== null && complete.length > limits.body) throw tooLarge(limits.body);
    return complete !== null && keep ? complete : nothing;
  }
  return gather(exchange, limits, keep);
}

/** Closes the connection after `ms` milliseconds if the body of a request that has its response is still incomplete. */
export function endLate(request: IncomingMessage, ms: number): void {
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, ms).unref();
  request.once("close", () => clearTimeout(timer));
}

const nothing = new Uint8Array();

/** Resolves at the end of the current turn of the event loop. */
export type TurnEnd = () => Promise<void>;

/**
 * Creates a `TurnEnd` that resolves after all sockets with input have been read once. All requests of one turn share one `setImmediate`.
 * Microtasks and ticks would run too early, between a head and its body.
 */
export function createTurnEnd(): TurnEnd {
  let ending: Promise<void> | null = null;
  return () => {
    ending ??= new Promise((resolve) => {
      setImmediate(() => {
        ending = null;
        resolve();
      });
    });
    return ending;
  };
}

function gather({ request, connection }: Exchange, limits: PayloadLimits, keep: boolean): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    const stop = (): void => {
      clearTimeout(timer);
      connection.onBroken = null;
      request.off("data", take).off("end", finish).off("close", leave).off("error", leave);
    };
    const fail = (error: Error): void => {
      stop();
      // Further input is read and dropped, otherwise the response could not be sent.
      request.on("error", () => {}).resume();
      reject(error);
    };
    const take = (chunk: Uint8Array): void => {
      size += chunk.length;
      if (size > limits.body) fail(tooLarge(limits.body));
      else if (keep) chunks.push(chunk);
    };
    const finish = (): void => {
      stop();
      resolve(chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks));
    };
    const leave = (): void => fail(new Gone());
    const timer = setTimeout(() => {
      fail(new ApiError("request_timeout", `The body did not arrive within ${limits.bodyTime / 1000} seconds.`));
    }, limits.bodyTime);
    connection.onBroken = () => fail(connection.broken ?? new Gone());
    if (connection.broken !== null && connection.latest === request) return connection.onBroken();
    if (request.destroyed && !request.complete) return leave();
    request.on("data", take).on("end", finish).on("close", leave).on("error", leave);
  });
}
