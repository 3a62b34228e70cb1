/**
 * The type of an operation: plain data from which the request reader, the handler types, OpenAPI, the SDK and the invariant tests are
 * derived. The contract (`contract.ts`) is a table of such values.
 */
import type { Static, TObject, TSchema } from "typebox";
import type { ErrorCode, MissingCode } from "./errors.ts";

/** Scopes of tokens. */
export const scopes = [
  "server:read",
  "server:write",
  "dns:read",
  "dns:write",
  "network:read",
  "network:write",
  "account:admin",
  "metrics:read",
] as const;

/** Scope of a token. */
export type Scope = (typeof scopes)[number];

/** Returns true if a token with the scopes `held` has `wanted`. `x:write` includes `x:read`; `account:admin` includes only `metrics:read`. */
export function grants(held: readonly string[], wanted: Scope): boolean {
  if (held.includes(wanted)) return true;
  if (wanted === "metrics:read") return held.includes("account:admin");
  return wanted.endsWith(":read") && held.includes(wanted.replace(":read", ":write"));
}

/** HTTP method of an operation. `HEAD` and `OPTIONS` are derived. */
export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** An operation of the API. */
export interface Operation {
  readonly method: Method;
  /** Literal segments and `{parameters}`; a parameter is an id. */
  readonly path: string;
  /** Required access: a scope, `any` token, or `open` (no token). */
  readonly access: Scope | "any" | "open";
  /** The token may use this object of its own (by the `id` of the path) without the scope. */
  readonly own?: "project" | "token";
  readonly summary: string;
  readonly description?: string;
  /** For each path parameter, the error code if no object has this id. */
  readonly params?: Readonly<Record<string, MissingCode>>;
  /** Filters and options of the query. Paging and `dryRun` are added by kind of operation. */
  readonly query?: TObject;
  readonly body?: TObject;
  /** Most bytes of the body, if its elements are limited by number. Default: the limit of the service, 1 MiB. */
  readonly bodyBytes?: number;
  /** The body is content of any length and media type, which the handler reads as a stream. `Content-Range` gives its position. */
  readonly content?: true;
  /** Schema of the JSON response; `null`: the response is empty. */
  readonly answer: TSchema | null;
  /** Media type of a response that is not JSON, or of a second form that `Accept` selects. */
  readonly media?: string;
  /** The response is an array with paging, filters and `X-Total-Count`. */
  readonly list?: boolean;
  /** The response is one object with an `ETag`. */
  readonly etag?: boolean;
  /** Seconds that the response waits by default for the change to take effect; `Prefer: wait` can extend it. */
  readonly wait?: number;
  /** Name of the operation that returns the object which this one creates, changes or deletes in the background. */
  readonly resultOperation?: string;
  /** A `POST` that changes nothing and has a body for its input. It is not audited and is allowed in blocked projects. */
  readonly readOnlyPost?: boolean;
  /** The operation is idempotent without an `Idempotency-Key`. */
  readonly repeatable?: boolean;
  /** A change that is allowed in a blocked project. */
  readonly allowedWhenBlocked?: boolean;
  /**
   * A read whose response contains more than committed rows and the power of VMs (counters, time), or rows whose commits are not counted.
   * The response of any other read may be cached until the next commit or change of power.
   */
  readonly observes?: boolean;
  /** Requests do not count towards the rate limit of the token. */
  readonly unlimited?: boolean;
  /** The operation creates a session: attempts are limited for each client network, also successful ones. */
  readonly signsIn?: boolean;
  /** The operation responds before the service is ready and while it stops. */
  readonly alwaysAnswers?: boolean;
  /** Statuses from 400 on whose response has the schema of a success. */
  readonly alsoReturns?: readonly number[];
  /** Error codes besides those that every operation of its kind can return. */
  readonly errors?: readonly ErrorCode[];
}

/** For each row of a table, its keys that the type `Row` does not have. */
export type UnknownKeys<T, Row> = {
  readonly [N in keyof T]: { readonly [Key in Exclude<keyof T[N], keyof Row>]: never };
};

/** Returns the table with its exact type. An operation with a key that `Operation` does not have is a type error. */
export function operations<const T extends Readonly<Record<string, Operation>>>(
  table: T & UnknownKeys<T, Operation>,
): T {
  return table;
}

type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

/** Ids of the path, by parameter name. */
export type Params<Op extends Operation> = { readonly [Name in ParamNames<Op["path"]>]: number };
/** Parsed body of a request; undefined: the operation has none. */
export type Body<Op extends Pick<Operation, "body">> = Op["body"] extends TObject ? Static<Op["body"]> : undefined;
/** Parsed query of a request. */
export type Query<Op extends Operation> = Op["query"] extends TObject ? Static<Op["query"]> : Record<never, never>;
/** Body of a response; undefined: it is empty. */
export type Answer<Op extends Pick<Operation, "answer">> = Op["answer"] extends TSchema
  ? Static<Op["answer"]>
  : undefined;

/** Returns true if the response of a read depends only on committed rows and the power of VMs, so that it may be cached. */
export function isStored(op: Operation): boolean {
  return op.method === "GET" && op.access !== "open" && op.observes !== true;
}

/** Returns true for a change: it accepts `Idempotency-Key`, `Prefer: wait` and `dryRun`, and is audited. All others only read. */
export function isChange(op: Pick<Operation, "method" | "readOnlyPost">): boolean {
  return op.method !== "GET" && op.readOnlyPost !== true;
}
