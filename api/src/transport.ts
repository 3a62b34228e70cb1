/**
 * Sends requests over HTTP and retries them. Every request can be retried: a read changes nothing, and each change carries an
 * `Idempotency-Key`, with which the service returns the first response again. This module knows no operation; fetch, sleep and random
 * numbers are parameters.
 */
import type { ErrorCode, FieldError, Problem } from "./errors.ts";

/** Options of the connection to the service. */
export interface TransportOptions {
  /** URL of the service, with or without a path: `http://127.0.0.1:8080`, `https://cloud.example.com/brume`. */
  readonly url: string;
  readonly token?: string | undefined;
  /** Number of retries after a connection error, 429 or 503. Default 4. */
  readonly retries?: number | undefined;
  /** Timeout of one attempt in milliseconds. Default 90,000, because `wait` can delay a response by 60 s. */
  readonly timeout?: number | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Resolves after `ms` milliseconds, or rejects with the reason of the signal. */
  readonly sleep?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
  /** Returns a number from 0 up to, but not including, 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** A request of the SDK. */
export interface Outgoing {
  readonly method: string;
  /** Path and query below `url`. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Blob | Uint8Array<ArrayBuffer> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Statuses from 400 on that count as a success of this operation. */
  readonly accepts?: readonly number[] | undefined;
}

/** A response to the SDK. */
export interface Incoming {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Sends requests to the service. */
export interface Transport {
  /** Sends a request with retries. Throws `ApiError` for an error response and `ConnectionError` if there is no response. */
  send(request: Outgoing): Promise<Incoming>;
  /** Sends a request once and returns a success with its body unread, for streams. Throws like `send`. */
  open(request: Outgoing): Promise<Response>;
  readonly retries: number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Returns the pause in milliseconds after `failures` failed attempts: doubled from 200 ms up to 20 s, half of it random. */
  pause(failures: number): number;
}

const longestPause = 20_000;
/** Longest `Retry-After` that is waited for; a longer one is left to the caller. */
const longestRetryAfter = 60_000;

/** An error response. Programs compare `code`; the other fields are those of the error object (`problem`). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** `unreadable`: the response is no error object of Brume, for example the page of a proxy. */
  readonly code: ErrorCode | "unreadable";
  readonly status: number;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  /** JSON Pointer of the first entry of `errors` (`/Rules/0/Source`, or `?name` for a query parameter); null: no single field is wrong. */
  readonly pointer: string | null;
  readonly requestId: string;
  /** The error object of the response. */
  readonly problem: Problem | null;
  readonly headers: Headers;

  constructor(what: string, status: number, headers: Headers, problem: Problem | null) {
    const code = problem?.code ?? "unreadable";
    const detail = problem?.detail ?? "The answer is not an error object of this service.";
    super(`${what}: ${status} ${code}: ${[detail, ...errorLines(problem)].join("\n  ")}`);
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.errors = problem?.errors ?? [];
    this.pointer = this.errors[0]?.pointer ?? null;
    this.requestId = headers.get("x-request-id") ?? "";
    this.problem = problem;
    this.headers = headers;
  }
}

/** No response arrived; `cause` is the last reason. The outcome of a change is unknown. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

const errorLines = (problem: Problem | null) =>
  (problem?.errors ?? []).map(({ pointer, detail }) => (pointer === "" ? detail : `${pointer}: ${detail}`));

function readProblem(text: string): Problem | null {
  try {
    const value: unknown = JSON.parse(text);
    const isProblem = typeof value === "object" && value !== null && "code" in value && "errors" in value;
    return isProblem && Array.isArray(value.errors) ? (value as Problem) : null;
  } catch {
    return null;
  }
}

/** Resolves after `ms` milliseconds, or rejects with the reason of the signal. */
export function sleepFor(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      const reason: unknown = signal?.reason;
      reject(reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Returns true if the same request may succeed later. */
export const isPassing = (error: ApiError) =>
  error.status === 429 ||
  error.status === 502 ||
  error.status === 503 ||
  error.status === 504 ||
  error.code === "idempotency_key_busy";

/** Returns `Retry-After` in milliseconds (delay-seconds of RFC 9110, section 10.2.3); 0 if it is absent. */
function retryAfter(error: Error): number {
  const text = error instanceof ApiError ? (error.headers.get("retry-after") ?? "") : "";
  return /^\d{1,9}$/.test(text) ? Number(text) * 1000 : 0;
}

function keepConnectionError(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  throw error;
}

/** Creates the transport of a client. Throws `TypeError` if the URL is not valid. */
export function createTransport(options: TransportOptions): Transport {
  const { retries = 4, timeout = 90_000, sleep = sleepFor, random = Math.random, token } = options;
  const fetchFrom = options.fetch ?? ((input, init) => fetch(input, init));
  const base = options.url.replace(/\/+$/, "");

  const pause = (failures: number) => Math.min(200 * 2 ** failures, longestPause) * (0.5 + 0.5 * random());

  const refusal = ({ method, target }: Outgoing, { status, headers }: Response, text: string) =>
    new ApiError(`${method} ${target}`, status, headers, readProblem(text));

  async function reach<T>(
    request: Outgoing,
    signal: AbortSignal,
    take: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { method, target, headers, body } = request;
    try {
      const response = await fetchFrom(base + target, {
        method,
        headers: { ...headers, ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
        ...(body !== undefined && { body }),
        signal,
        cache: "no-store",
        credentials: "omit",
      });
      return await take(response);
    } catch (error) {
      request.signal?.throwIfAborted();
      throw new ConnectionError(`${method} ${base}${target}: no answer`, { cause: error });
    }
  }

  async function attempt(request: Outgoing): Promise<Incoming | ApiError> {
    const lost = AbortSignal.timeout(timeout);
    const signal = request.signal ? AbortSignal.any([request.signal, lost]) : lost;
    return reach(request, signal, async (response) => {
      const text = await response.text();
      const isAnswer = response.status < 400 || request.accepts?.includes(response.status);
      return isAnswer ? { status: response.status, headers: response.headers, text } : refusal(request, response, text);
    });
  }

  return {
    retries,
    sleep,
    pause,
    async open(request) {
      const signal = request.signal ?? new AbortController().signal;
      const outcome = await reach(request, signal, async (response) =>
        response.ok ? response : refusal(request, response, await response.text()),
      );
      if (outcome instanceof ApiError) throw outcome;
      return outcome;
    },
    async send(request) {
      for (let failures = 0; ; failures++) {
        request.signal?.throwIfAborted();
        const outcome = await attempt(request).catch(keepConnectionError);
        if (!(outcome instanceof Error)) return outcome;
        const requestedPause = retryAfter(outcome);
        const isFinal = outcome instanceof ApiError && !isPassing(outcome);
        if (isFinal || failures >= retries || requestedPause > longestRetryAfter) throw outcome;
        // A random part is added to `Retry-After`, so that clients that were rejected together do not retry together.
        await sleep(requestedPause + pause(requestedPause > 0 ? 0 : failures), request.signal);
      }
    },
  };
}
