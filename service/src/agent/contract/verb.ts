/**
 * The type of a verb of the host agent: plain data, as the operations of the API (`api/src/operation.ts`). A verb is one method of a driver
 * interface and one request. Client and agent derive arguments, checks, deadlines and paths from it, so no code is written per verb.
 */
import type { Answer, Body, Operation, UnknownKeys } from "@brume/api/operation.ts";
import type { TObject, TSchema } from "typebox";

/** Version of the protocol between the control plane and the agent. It grows when a message changes so that the other side misreads it. */
export const protocol = 3;

/** A method of a driver interface as one request. */
export interface Verb extends Pick<Operation, "summary" | "description"> {
  /** Fields of the body that are the arguments of the method, in their order. */
  readonly args: readonly string[];
  readonly body: TObject;
  /** Schema of the result; null: the method returns nothing. */
  readonly answer: TSchema | null;
  /** Longest time in milliseconds. A request can set a shorter deadline. */
  readonly time: number;
  /** Largest body in bytes; default 64 KiB. */
  readonly bytes?: number;
  /**
   * Argument after `args` that is not data. `signal`: an AbortSignal. `transfer`: an object with `signal` and `progress`. `repair`: a
   * function that is called with the name of each repaired part.
   */
  readonly extra?: "signal" | "transfer" | "repair";
  /** Schema of what the method reports while it runs: one line of the response for each call of `progress` or the function. */
  readonly note?: TSchema;
  /** The body contains a spec with a generation, and the result is the generation in force. An older generation is refused. */
  readonly generation?: true;
  /** The result is a byte stream: the connection becomes the stream. `read`: only from the agent; `write`: only to it. */
  readonly stream?: "both" | "read" | "write";
}

/** Returns the table with its exact type. A verb with a key that `Verb` does not have is a type error. */
export function verbs<const T extends Readonly<Record<string, Verb>>>(table: T & UnknownKeys<T, Verb>): T {
  return table;
}

/** The same type with read-only arrays and fields, as the driver interfaces declare their arguments. */
export type Sent<T> = T extends string | number | boolean | null | undefined
  ? T
  : { readonly [Key in keyof T]: Sent<T[Key]> };

/** Input of a verb: the arguments by name. */
export type Input<V extends Verb> = Sent<Body<V>>;
/** Result of a verb. */
export type Result<V extends Verb> = Answer<V>;

type Named<Names extends readonly string[], Fields> = {
  readonly [At in keyof Names]: Names[At] extends keyof Fields ? Fields[Names[At]] : never;
};
/** The arguments of a verb as a tuple, for the comparison with the method of the driver interface. */
export type Arguments<V extends Verb> = Named<V["args"], Input<V>>;

/** Names of the headers of a request. All are required but `deadline`. */
export const headers = {
  /** Version of the protocol. */
  protocol: "brume-protocol",
  /** Unique id of the request: 1-64 letters, digits and hyphens. */
  request: "brume-request",
  /** Fence number of the control plane's lease. */
  fence: "brume-fence",
  /** Milliseconds until the caller stops waiting. */
  deadline: "brume-deadline",
  /** In a response: the last event that happened before the result. */
  event: "brume-event",
} as const;

const second = 1000;
const minute = 60 * second;
/** Longest times of verbs in milliseconds. */
export const times = { read: 30 * second, change: 5 * minute, long: 60 * minute, transfer: 24 * 60 * minute } as const;
/** Sizes of bodies in bytes. */
export const sizes = { plain: 65_536, machine: 4 << 20, network: 16 << 20 } as const;
