/**
 * How one request reaches the service and its answer comes back: the address, the headers, and trying again. Every request may
 * be tried again, because reads change nothing and each change carries an `Idempotency-Key`, under which the service gives a
 * repeat the answer of the first. Nothing here knows an operation; fetch, sleep and chance come in from outside.
 */
import type { FaultCode, FieldFault, Problem } from "./errors.ts";

export interface TransportOptions {
  /** Where the service answers, with or without a path: `http://127.0.0.1:8080`, `https://cloud.example.com/brume`. */
  readonly url: string;
  readonly token?: string | undefined;
  /** How often a request is sent again after a lost connection, 429 or 503. Default 4. */
  readonly retries?: number | undefined;
  /** Milliseconds until an attempt without an answer counts as lost. Default 90,000: `wait` may hold an answer for 60 s. */
  readonly timeout?: number | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  readonly sleep?: ((ms: number, signal?: AbortSignal) => Promise<void>) | undefined;
  /** From 0 to just below 1, as `Math.random`. */
  readonly random?: (() => number) | undefined;
}

export interface Outgoing {
  readonly method: string;
  /** Path and query below `url`. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Statuses from 400 on that are an answer of this operation all the same. */
  readonly accepts?: readonly number[] | undefined;
}

export interface Incoming {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface Transport {
  /** Sends until there is an answer. Throws `ApiError` if it is a refusal, `ConnectionError` if there is none. */
  send(request: Outgoing): Promise<Incoming>;
  /** One attempt, the body of a success unread: for streams. Throws like `send`. */
  open(request: Outgoing): Promise<Response>;
  readonly retries: number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Milliseconds before the attempt after `failures` failed ones: doubling from 200 ms to 20 s, half of it by chance. */
  pause(failures: number): number;
}

const longestPause = 20_000;
/** Above this a `Retry-After` is the caller's business. */
const longestRetryAfter = 60_000;

/** The service refused. `code` is what programs compare; the fields are those of the error object (`problem`). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** `unreadable`: not an error object of Brume, such as a page of a proxy in between. */
  readonly code: FaultCode | "unreadable";
  readonly status: number;
  readonly detail: string;
  readonly errors: readonly FieldFault[];
  readonly requestId: string;
  /** The error object as it came. */
  readonly problem: Problem | null;
  readonly headers: Headers;

  constructor(what: string, status: number, headers: Headers, problem: Problem | null) {
    const code = problem?.code ?? "unreadable";
    const detail = problem?.detail ?? "The answer is not an error object of this service.";
    super(`${what}: ${status} ${code}: ${[detail, ...faultLines(problem)].join("\n  ")}`);
    this.code = code;
    this.status = status;
    this.detail = detail;
    this.errors = problem?.errors ?? [];
    this.requestId = headers.get("x-request-id") ?? "";
    this.problem = problem;
    this.headers = headers;
  }
}

/** No answer came; `cause` is the last reason. For a change it is not known whether it happened. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

const faultLines = (problem: Problem | null) =>
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

function sleepFor(ms: number, signal?: AbortSignal): Promise<void> {
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

/** May the same request succeed a little later? */
export const isPassing = (error: ApiError) =>
  error.status === 429 ||
  error.status === 502 ||
  error.status === 503 ||
  error.status === 504 ||
  error.code === "idempotency_key_busy";

/** Milliseconds that the answer asks to wait (delay-seconds of RFC 9110, section 10.2.3); 0 if it does not say. */
function retryAfter(error: Error): number {
  const text = error instanceof ApiError ? (error.headers.get("retry-after") ?? "") : "";
  return /^\d{1,9}$/.test(text) ? Number(text) * 1000 : 0;
}

function keepConnectionError(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  throw error;
}

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
        const asked = retryAfter(outcome);
        const isHopeless = outcome instanceof ApiError && !isPassing(outcome);
        if (isHopeless || failures >= retries || asked > longestRetryAfter) throw outcome;
        // Chance on top of what was asked: many clients that were refused together shall not come back together.
        await sleep(asked + pause(asked > 0 ? 0 : failures), request.signal);
      }
    },
  };
}
