/**
 * The driver interface for webhook delivery: sends one POST request at a time to an endpoint. Users choose the endpoints, and the host
 * reaches networks that users do not reach, so the driver checks every address before it sends anything.
 */

/** A request to an endpoint. `url` has the scheme `http:` or `https:`. */
export interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The result of a delivery. `status` is the HTTP status, null without a response. `error` is one sentence, null for a status of 200 to 299.
 */
export interface Answer {
  readonly status: number | null;
  readonly error: string | null;
}

/** Sends webhooks. */
export interface Sender {
  /** Sends the message and resolves to the result; never rejects. Ends within seconds, earlier when `signal` is aborted. */
  send(message: Message, signal: AbortSignal): Promise<Answer>;
  /**
   * Checks the addresses of the endpoint. Resolves to the reason why webhooks must not call it, worded to follow the name of the field, or
   * to null. A name that does not resolve is not refused.
   */
  judge(url: string): Promise<string | null>;
  /** Closes idle connections. */
  close(): void;
}
