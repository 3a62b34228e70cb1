/**
 * Errors between the control plane and the agent. They cross as data: a code, a sentence, and what callers distinguish. An error of a driver
 * arrives as `AgentError` with the same message and the same properties `final` and `isSilence`.
 */
import { type Static, Type } from "typebox";
import { plainCause } from "../base/plaincause.ts";

/**
 * What each code means. `retryable`: the same call may succeed later. `away`: the connection to the agent is lost or was never made.
 * `driver_failed`: the driver rejected; all others are refusals of the agent itself.
 */
export const errorCodes = {
  driver_failed: { status: 500, retryable: true },
  input_invalid: { status: 400, retryable: false },
  input_too_large: { status: 413, retryable: false },
  verb_unknown: { status: 404, retryable: false },
  protocol_mismatch: { status: 400, retryable: false },
  stale_fence: { status: 409, retryable: false },
  stale_generation: { status: 409, retryable: false },
  ports_unknown: { status: 409, retryable: true },
  aborted: { status: 409, retryable: true },
  deadline_exceeded: { status: 504, retryable: true },
  busy: { status: 429, retryable: true },
  stopping: { status: 503, retryable: true },
  away: { status: 503, retryable: true },
} as const satisfies Record<string, { readonly status: number; readonly retryable: boolean }>;

/** A key of `errorCodes`. */
export type AgentErrorCode = keyof typeof errorCodes;

/** An error as it is sent. */
export const WireError = Type.Object({
  code: Type.Unsafe<AgentErrorCode>({ type: "string", enum: Object.keys(errorCodes) }),
  detail: Type.String({ maxLength: 16_384 }),
  final: Type.Optional(Type.Boolean()),
  isSilence: Type.Optional(Type.Boolean()),
  applied: Type.Optional(Type.Integer({ minimum: 0 })),
});
/** An error as it is sent. */
export type WireError = Static<typeof WireError>;

/** What callers distinguish besides the code. */
export interface ErrorFacts {
  /** No retry can succeed. */
  readonly final?: boolean;
  /** It is unknown whether the work was done. */
  readonly isSilence?: boolean;
  /** With `stale_generation`: the generation in force. */
  readonly applied?: number;
  readonly cause?: unknown;
}

/** A call of the agent failed. The message is one sentence, for a driver the message of its error. */
export class AgentError extends Error {
  readonly code: AgentErrorCode;
  readonly final: boolean;
  readonly isSilence: boolean;
  readonly applied: number | undefined;

  constructor(code: AgentErrorCode, detail: string, facts: ErrorFacts = {}) {
    super(detail, { cause: facts.cause });
    this.name = "AgentError";
    this.code = code;
    this.final = facts.final ?? false;
    this.isSilence = facts.isSilence ?? false;
    this.applied = facts.applied;
  }

  /** Whether the same call may succeed later. */
  get retryable(): boolean {
    return errorCodes[this.code].retryable && !this.final;
  }
}

/** Longest message that is sent, in characters. */
const mostCharacters = 8192;

const isTrue = (error: Error, name: string): boolean => (error as unknown as Record<string, unknown>)[name] === true;

/** Returns the error of a driver or of the agent as data. Its text names nothing of the host, also that of an unexpected error. */
export function toWire(error: unknown): WireError {
  const { message } = error instanceof Error ? error : new Error(String(error));
  const facts = error instanceof Error ? error : new Error();
  // The agent's own texts about an input name only the input and what was expected.
  const isOfInput = error instanceof AgentError && error.code === "input_invalid";
  const plain = isOfInput ? null : plainCause(message, "see the log of the host");
  return {
    code: error instanceof AgentError ? error.code : "driver_failed",
    detail: (plain ?? message).slice(0, mostCharacters),
    ...(isTrue(facts, "final") && { final: true }),
    ...(isTrue(facts, "isSilence") && { isSilence: true }),
    ...(error instanceof AgentError && error.applied !== undefined && { applied: error.applied }),
  };
}

/** Returns the error that was sent. */
export const fromWire = ({ code, detail, ...facts }: WireError): AgentError => new AgentError(code, detail, facts);
