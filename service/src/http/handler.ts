/**
 * Types of the handlers that the features pass to `http`, one per operation of the contract. A read gets committed state. A change gets
 * a transaction, in which its rows, events, audit row and idempotency key commit together.
 */

import type { Contract, OperationName } from "@brume/api/contract.ts";
import type { FieldError } from "@brume/api/errors.ts";
import type { EventType } from "@brume/api/event.ts";
import type { Answer, Body, Operation, Params, Query, Scope } from "@brume/api/operation.ts";
import { ApiError } from "../base/error.ts";
import type { Pieces } from "../base/pieces.ts";
import type { Batched, Reader, Tx } from "../store/db.ts";

/** Restriction of a token to one domain and some of its records, in addition to its scopes. */
export interface Restriction {
  readonly domainId: number;
  /** ASCII name of the domain. */
  readonly domain: string;
  /** Pattern for the owners of records, relative to the domain, with the wildcards `*` and `?`; null: all. */
  readonly pattern: string | null;
  /** Record types, such as `TXT`; null: all. */
  readonly types: readonly string[] | null;
}

/** The token of a request and its project. */
export interface Caller {
  readonly tokenId: number;
  readonly tokenName: string;
  readonly projectId: number;
  readonly projectBlocked: boolean;
  readonly scopes: readonly Scope[];
  readonly restriction: Restriction | null;
  /** Null: the token has no limit. */
  readonly rateLimit: { readonly requests: number; readonly seconds: number } | null;
  /** Time of expiry in ms since 1970; null: never. */
  readonly expiresAt: number | null;
  /** Id of the session, if the request has a session cookie instead of a token. */
  readonly sessionId?: number;
}

/** Position of the content in the whole. */
export interface ContentPosition {
  /** The first byte. */
  readonly from: number;
  /** The byte after the last; null: known at the end. */
  readonly to: number | null;
  /** Bytes of the whole; null: the client does not state it. */
  readonly whole: number | null;
}

/** The content of one request. */
export interface Content {
  readonly position: ContentPosition;
  /**
   * Passes each part to `take`, in order, and waits for it. Resolves at the end of the content. Rejects with the error of `take`, the reason
   * of `signal`, `content_range_invalid` (more or fewer bytes than stated), `request_timeout`, `body_not_readable`, `not_ready` (the
   * service stops) or `Gone`.
   */
  read(take: (part: Uint8Array) => Promise<void>, signal: AbortSignal): Promise<void>;
}

/** A request after all its parts are validated. */
export interface Request<Op extends Operation = Operation> {
  readonly params: Params<Op>;
  readonly query: Query<Op>;
  readonly body: Body<Op>;
  /** Field errors for which `failsElementOnly` returned true. The invalid values are missing in `body`. */
  readonly elementErrors: readonly FieldError[];
  readonly caller: Caller;
  readonly requestId: string;
  /** Address of the client. */
  readonly address: string;
  readonly dryRun: boolean;
  /** The body of an operation with `content`; null: the operation has none. */
  readonly content: Content | null;
  /** `Accept` selects the second media type of the operation instead of JSON. */
  readonly otherMedia: boolean;
  /** Returns scheme and authority of the request URL, such as `http://127.0.0.1:8080`. */
  origin(): string;
  /** Compares `If-Match` with the current ETag of the object, such as `server-17-3` (no quotes). Throws `etag_mismatch`. */
  expect(tag: string): void;
}

/** One page of a list. */
export interface Page<T, Items = readonly T[]> {
  readonly items: Items;
  /** Number of objects that match the filters, on all pages. */
  readonly total: number;
  /** Cursor of the next page; null: this is the last one. */
  readonly next: string | null;
}

/** The objects of a page as JSON. */
export interface PrintedItems {
  readonly texts: readonly string[];
}

/**
 * A page of a response. An async iterable creates large objects one by one, so that only one is in memory at a time. Instead of an object, it
 * may contain the pieces of its JSON.
 */
export type ListPage<T> = Page<T, readonly T[] | AsyncIterable<T | AsyncIterable<string>> | PrintedItems>;

/**
 * Opens a large body. Only a read may return one. The ETag is read from the same snapshot as the pieces. A reader that does not need the
 * body never opens it; once opened, the pieces are read to their end.
 */
export type OpenBody = () => Promise<{ readonly tag?: string; readonly pieces: AsyncIterable<string> }>;

/** Result of a read: the body of the response, and its ETag and status. */
export interface ReadResult<A> {
  readonly answer: A;
  /** ETag without quotes. */
  readonly tag?: string;
  /** A body in this media type, instead of `answer`. */
  readonly text?: { readonly type: string; readonly body: string | Pieces | OpenBody };
  /** Headers of the response, as alternating names and values. */
  readonly headers?: readonly string[];
  /** Status instead of 200. Only readiness uses it: its body contains the failed checks. */
  readonly status?: 503;
}

/** The change of one object. Each becomes an event; the first one of a request is also stored in its audit row. */
export interface ResourceChange {
  readonly type: EventType;
  readonly id: number;
  readonly parent: number | null;
  /** Project of the object, if it is not the project of the caller. */
  readonly project?: number;
  /** The object as GET returns it before and after the change, with empty secrets; null: it does not exist. */
  readonly before: unknown;
  readonly after: unknown;
  /** Only for the audit: no event is appended, because the event of another object contains this change. */
  readonly silent?: boolean;
}

/** Result of a change: the response, the changed objects and the background work. */
export interface ChangeResult<A> extends ReadResult<A> {
  readonly changes: readonly ResourceChange[];
  /**
   * Ids of the tasks that the change queued, if the response does not show when they end. A repeated request with `Prefer: wait` waits
   * for them.
   */
  readonly tasks?: readonly number[];
  /**
   * Called once after the commit, in the order of commits. Starts to apply the change, waits at most `ms` milliseconds for it, and
   * resolves to the response body at that time, or to undefined if the body has not changed.
   */
  refresh?(ms: number): Promise<A | undefined>;
  /**
   * A part of the body that `refresh` resolves to if all goes well, as the same object. It is long, so its text is created while the change
   * is applied. The operation has a `resultOperation` with the same ids.
   */
  readonly expected?: object | undefined;
}

/** Handler of a read that returns one object. */
export interface ReadHandler<Op extends Operation> extends Pick<FieldChecks<Op>, "prepareCheck" | "check"> {
  read(request: Request<Op>, db: Reader): Promise<ReadResult<Answer<Op>>>;
}

/** Handler of a read that returns a list. */
export interface ListHandler<Op extends Operation> {
  list(request: Request<Op>, db: Reader): Promise<ListPage<Answer<Op> extends readonly (infer T)[] ? T : never>>;
}

/** Checks of the fields of a change, or of a read-only POST, beyond its schema. They use no stored data. */
interface FieldChecks<Op extends Operation> {
  /** Does the slow part of `check` with yields. Called before it if the body is long. */
  prepareCheck?(body: Body<Op> extends object ? Partial<Body<Op>> : object): Generator<void, void>;
  /**
   * Returns the errors that the schema cannot express. They are reported together with the errors of the schema, so fields that the
   * schema has rejected are missing in `body`. A second error of the same field is dropped.
   */
  check?(body: Body<Op> extends object ? Partial<Body<Op>> : object): readonly FieldError[];
  /** As `check`, for rules that `change` checks itself, after others that need stored data. Called only if there are other errors. */
  alsoCheck?(body: Body<Op> extends object ? Partial<Body<Op>> : object): readonly FieldError[];
  /** Returns true if the error fails only one element (groups with `BestEffort`, VPN tunnels). `change` gets it in `elementErrors`. */
  failsElementOnly?(body: Body<Op> extends object ? Partial<Body<Op>> : object, error: FieldError): boolean;
}

/** A change that runs only in its transaction. */
export interface DirectChange<Op extends Operation> extends FieldChecks<Op> {
  /** Adds the request to a batch, which may execute it with others of the same commit, instead of `change`. Not called for a dry run. */
  batched?(request: Request<Op>): Batched<ChangeResult<Answer<Op>>>;
  change(request: Request<Op>, tx: Tx): Promise<ChangeResult<Answer<Op>>>;
}

/** A change with slow look-ups (files, network) before its transaction. Created by `afterPreparing`. */
export interface PreparedChange<Op extends Operation> extends FieldChecks<Op> {
  /** Does the look-ups. Resolves to the function that runs in the transaction. */
  prepare(request: Request<Op>): Promise<Prepared<Answer<Op>>>;
}

/** The part of a change that runs in its transaction. `release` is called once after it, also if it fails. */
export type Prepared<A> = ((tx: Tx) => Promise<ChangeResult<A>>) & { readonly release?: () => void };

/** A handler that writes: with or without work before its transaction. */
export type ChangeHandler<Op extends Operation> = DirectChange<Op> | PreparedChange<Op>;

interface ChangeAfter<Op extends Operation, Prepared> extends FieldChecks<Op> {
  /** Slow look-ups before the transaction. */
  prepare(request: Request<Op>): Promise<Prepared>;
  /** Gets the result of `prepare`. May run more than once, as every transaction. */
  change(request: Request<Op>, tx: Tx, prepared: NoInfer<Prepared>): Promise<ChangeResult<Answer<Op>>>;
}

/** Creates a change whose transaction gets the result of `prepare`, with its type. */
export function afterPreparing<Op extends Operation, Prepared>(handler: ChangeAfter<Op, Prepared>): PreparedChange<Op> {
  const { prepare, change, ...checks } = handler;
  return {
    ...checks,
    async prepare(request) {
      const prepared = await prepare(request);
      return (tx) => change(request, tx, prepared);
    },
  };
}

/** Type of the handler of an operation, derived from the contract. */
export type Handler<Op extends Operation> = Op["list"] extends true
  ? ListHandler<Op>
  : Op["method"] extends "GET"
    ? ReadHandler<Op>
    : Op["readOnlyPost"] extends true
      ? ReadHandler<Op>
      : ChangeHandler<Op>;

/** Handlers of some operations of the contract, by name. */
export type Handlers<Name extends OperationName = OperationName> = { readonly [N in Name]: Handler<Contract[N]> };

/** Thrown for a known token that cannot be used: it has expired, or the address of the client is not allowed. */
export class TokenRefused extends ApiError {
  readonly caller: Caller;
  constructor(caller: Caller, code: "token_expired" | "scope_missing", detail: string) {
    super(code, detail);
    this.caller = caller;
  }
}

/** One row of the audit (docs/spec.md#audit). */
export interface AuditRow {
  /** Milliseconds since 1970. */
  readonly date: number;
  /** Null: the token is unknown, or the request has none. */
  readonly caller: Caller | null;
  readonly address: string;
  readonly operation: OperationName;
  readonly resource: string | null;
  readonly resourceId: number | null;
  readonly status: number;
  readonly requestId: string;
  /** The object before and after the change, as JSON; null: it does not exist, or the request failed. */
  readonly before: string | null;
  readonly after: string | null;
}
