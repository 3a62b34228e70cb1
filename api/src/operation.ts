/**
 * What an operation is: plain data, from which reading, handler types, OpenAPI, SDK, CLI and the access laws are derived.
 * Nothing here runs; whoever wants to know what the API promises reads values of this type.
 */
import { type Static, type TObject, type TSchema } from "typebox";
import type { FaultCode, MissingCode } from "./errors.ts";

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

export type Scope = (typeof scopes)[number];

/** Does a token with `held` scopes have `wanted`? `x:write` includes `x:read`; `account:admin` includes `metrics:read` and no other. */
export function grants(held: readonly string[], wanted: Scope): boolean {
  if (held.includes(wanted)) return true;
  if (wanted === "metrics:read") return held.includes("account:admin");
  return wanted.endsWith(":read") && held.includes(wanted.replace(":read", ":write"));
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export interface Operation {
  readonly method: Method;
  /** Literal segments and `{parameters}`; a parameter is an id. */
  readonly path: string;
  /** What the token needs: a scope, any token, or nothing at all. */
  readonly access: Scope | "any" | "open";
  /** Which of the caller's own things (by the path's `id`) it may use without the scope. */
  readonly own?: "project" | "token";
  readonly summary: string;
  readonly description?: string;
  /** Per parameter of the path the fault that an id without an object gets. */
  readonly params?: Readonly<Record<string, MissingCode>>;
  /** Filters and options of the query; paging and `dryRun` are added where they belong. */
  readonly query?: TObject;
  readonly body?: TObject;
  /** Schema of the JSON answer; null for an empty one. */
  readonly answer: TSchema | null;
  /** Media type, where the answer is not JSON; or a second form that `Accept` chooses. */
  readonly media?: string;
  /** A list is an array with paging, filters and `X-Total-Count`. */
  readonly list?: boolean;
  /** The answer is one object that carries an `ETag`. */
  readonly tagged?: boolean;
  /** Seconds the answer waits by itself for the change to take effect (`Prefer: wait` asks for more). */
  readonly wait?: number;
  /** The operation that reads the object which this one answers with, or takes away in its own time, by its id. */
  readonly shows?: string;
  /** A `POST` that only asks, and has a body because its question is long: neither audited nor kept from blocked projects. */
  readonly asks?: boolean;
  /** Sending it twice has the effect of sending it once. */
  readonly repeatable?: boolean;
  /** A change that stays possible in a blocked project. */
  readonly whenBlocked?: boolean;
  /**
   * Of a read: the answer shows more than committed rows (the state of machines, counters, the time), or rows that reads of this kind
   * alone show and whose commits are not counted. The answer of any other read may be repeated until the next commit.
   */
  readonly observes?: boolean;
  /** It does not draw from the token's rate limit. */
  readonly unlimited?: boolean;
  /** It answers also before the service is ready, and while it stops. */
  readonly alwaysAnswers?: boolean;
  /** What it can answer besides the faults that every operation of its kind can. */
  readonly faults?: readonly FaultCode[];
}

/** Gives a table of operations its exact type. */
export function operations<const T extends Readonly<Record<string, Operation>>>(table: T): T {
  return table;
}

type ParamNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamNames<Rest>
  : never;

/** Ids of the path, by the names the path gives them. */
export type Params<Op extends Operation> = { readonly [Name in ParamNames<Op["path"]>]: number };
export type Body<Op extends Operation> = Op["body"] extends TObject ? Static<Op["body"]> : undefined;
export type Query<Op extends Operation> = Op["query"] extends TObject ? Static<Op["query"]> : Record<never, never>;
export type Answer<Op extends Operation> = Op["answer"] extends TSchema ? Static<Op["answer"]> : undefined;

/** Whether the answer to a read depends on nothing but what is committed, and so may be repeated until the next commit. */
export function isStored(op: Operation): boolean {
  return op.method === "GET" && op.access !== "open" && op.observes !== true;
}

/** Changes are all but GET and what only asks: they take `Idempotency-Key`, `Prefer: wait`, `dryRun` and are audited. */
export function isChange(op: Operation): boolean {
  return op.method !== "GET" && op.asks !== true;
}
