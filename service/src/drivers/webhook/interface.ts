/**
 * What the service needs of the way to the endpoints of webhooks: one POST at a time, to addresses that it may call. Users name the
 * endpoints, and this machine can reach what they cannot, so every address is judged before anything is sent to it.
 */

export interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What came of it; `error` is one sentence, null for a status of 200 to 299. */
export interface Answer {
  readonly status: number | null;
  readonly error: string | null;
}

export interface Sender {
  /** Never rejects. Ends by itself within seconds, sooner when `signal` is aborted. */
  send(message: Message, signal: AbortSignal): Promise<Answer>;
  /** Why the endpoint may not be called, as far as can be told now; null: it may. Goes on after the name of the field. */
  judge(url: string): Promise<string | null>;
  close(): void;
}
