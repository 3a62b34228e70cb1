/**
 * The bytes of a body, up to a limit and within a time. The pipeline asks for them only after everything that can be decided
 * without; so a client that said `Expect: 100-continue` is told to go on only here.
 */
import type { IncomingMessage } from "node:http";
import { ApiError } from "../base/error.ts";
import type { Exchange } from "./exchange.ts";

export interface PayloadLimits {
  /** Bytes. */
  readonly body: number;
  /** Milliseconds for the whole body. */
  readonly bodyTime: number;
}

/** Milliseconds that a connection may stand still with an answer that its client does not take, before it is cut. */
export const stallTime = ({ bodyTime }: PayloadLimits): number => 2 * bodyTime;

/** The client went away in the middle of its request: there is nobody to answer. */
export class Gone extends Error {
  override readonly name = "Gone";
}

export function tooLarge(limit: number): ApiError {
  return new ApiError("body_too_large", `The body must not be longer than ${limit} bytes.`);
}

/**
 * Reads a body that there is to its end; `keep: false` drops what comes; `turnEnd` is that of the server. Rejects with `body_too_large`, `request_timeout`, `body_not_readable`
 * (broken chunks) or `Gone`.
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
  // Or node:http takes it for a body that nobody wants, and reads it once more in the end.
  request.read(0);
  // The parser has been through all that came with the head when the sockets were looked at: most bodies are here then.
  await turnEnd();
  if (request.complete && connection.broken === null) {
    const whole = request.read() as Uint8Array | null;
    request.read();
    if (whole !== null && whole.length > limits.body) throw tooLarge(limits.body);
    return whole !== null && keep ? whole : nothing;
  }
  return gather(exchange, limits, keep);
}

/** Cuts the connection of a request that was answered and whose body is not here after `ms` milliseconds. Nobody reads that body. */
export function endLate(request: IncomingMessage, ms: number): void {
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, ms).unref();
  request.once("close", () => clearTimeout(timer));
}

const nothing = new Uint8Array();

export type TurnEnd = () => Promise<void>;

/**
 * Resolves when all sockets that have something were read once, for all that wait in the same turn of the event loop together.
 * Microtasks and ticks run between a head and its body, too early.
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
      // Whatever still comes is read into nothing, or the answer could not leave.
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
