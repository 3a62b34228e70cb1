/**
 * What a feature's `routes` hand to `http`: one handler per operation of the contract. A read gets committed state; a change gets
 * the transaction in which everything it does, its events, its audit and its idempotency key commit together.
 */
import type { Contract, OperationName } from "@brume/api/contract.ts";
import type { FieldError } from "@brume/api/errors.ts";
import type { EventType } from "@brume/api/event.ts";
import type { Answer, Body, Operation, Params, Query, Scope } from "@brume/api/operation.ts";
import { ApiError } from "../base/error.ts";
import type { Reader, Tx } from "../store/db.ts";

/** What a token is limited to, besides its scopes. */
export interface Restriction {
  readonly domainId: number;
  /** Its ASCII name. */
  readonly domain: string;
  /** Owners relative to the domain, `*` and `?` as wildcards; null: all. */
  readonly pattern: string | null;
  readonly types: readonly string[] | null;
}

/** Who asks. */
export interface Caller {
  readonly tokenId: number;
  readonly tokenName: string;
  readonly projectId: number;
  readonly projectBlocked: boolean;
  readonly scopes: readonly Scope[];
  readonly restriction: Restriction | null;
  readonly rateLimit: { readonly requests: number; readonly seconds: number } | null;
  /** Milliseconds since 1970; null: never. */
  readonly expiresAt: number | null;
}

export interface Request<Op extends Operation = Operation> {
  readonly params: Params<Op>;
  readonly query: Query<Op>;
  readonly body: Body<Op>;
  /** Faults of fields that the handler spares: what they are about is missing in the body. */
  readonly elementErrors: readonly FieldError[];
  readonly caller: Caller;
  readonly requestId: string;
  readonly dryRun: boolean;
  /** The media type that `Accept` asks for is the operation's second form. */
  readonly otherMedia: boolean;
  /** Where the caller reached the service, as it says itself: `http://127.0.0.1:8080`. */
  origin(): string;
  /** Holds `If-Match` against the object's present tag: `"server-17-3"` without the quotes. Throws `etag_mismatch`. */
  expect(tag: string): void;
}

/** One page of a list. */
export interface Page<T, Items = readonly T[]> {
  readonly items: Items;
  /** How many match the filters, on all pages. */
  readonly total: number;
  /** Where the next page begins; null: this is the last. */
  readonly next: string | null;
}

/** A page as it is answered: objects that are large are made one after another, and none is kept longer than its text takes. */
export type ListPage<T> = Page<T, readonly T[] | AsyncIterable<T>>;

export interface ReadResult<A> {
  readonly answer: A;
  /** Entity tag without quotes. */
  readonly tag?: string;
  /** A body in the operation's second form instead of `answer`. */
  readonly text?: { readonly type: string; readonly body: string };
  /** Instead of 200, for the one answer that says with its body that something is not well. */
  readonly status?: 503;
}

/** What happened to one object: told as an event and, the first of a change, kept in the audit. */
export interface ResourceChange {
  readonly type: EventType;
  readonly id: number;
  readonly parent: number | null;
  /** Whose it is, if not the caller's project. */
  readonly project?: number;
  /** As GET showed and shows it, secrets empty; null: not there. */
  readonly before: unknown;
  readonly after: unknown;
  /** Kept in the audit only, because a larger event tells of it. */
  readonly silent?: boolean;
}

export interface ChangeResult<A> extends ReadResult<A> {
  readonly changes: readonly ResourceChange[];
  /** The work that it ordered, where what is answered does not show whether it goes on: who repeats the request may wait for its end. */
  readonly tasks?: readonly number[];
  /**
   * Called once after the commit, in order of commits. Brings the change into the world, waits at most `ms`, and
   * resolves to the answer as it is then, or undefined if it is still the same.
   */
  refresh?(ms: number): Promise<A | undefined>;
}

export interface ReadHandler<Op extends Operation> {
  /** As of a change: what a schema cannot say of the fields of a question. */
  check?(body: Body<Op> extends object ? Partial<Body<Op>> : object): readonly FieldError[];
  read(request: Request<Op>, db: Reader): Promise<ReadResult<Answer<Op>>>;
}

export interface ListHandler<Op extends Operation> {
  list(request: Request<Op>, db: Reader): Promise<ListPage<Answer<Op> extends readonly (infer T)[] ? T : never>>;
}

/** What of the fields of a change is checked besides its schema. */
interface FieldChecks<Op extends Operation> {
  /**
   * What a schema cannot say of the fields and no stored object is needed for. Told together with what the schema found, so fields
   * may be missing that were refused already; a second fault of the same field is left out.
   */
  check?(body: Body<Op> extends object ? Partial<Body<Op>> : object): readonly FieldError[];
  /** The same where what is stored counts first: told only beside faults that the schema found. */
  alsoCheck?(body: Body<Op> extends object ? Partial<Body<Op>> : object): readonly FieldError[];
  /** Whether a fault of a field refuses less than the request. Then `change` is told of it. */
  spares?(body: Body<Op> extends object ? Partial<Body<Op>> : object, fault: FieldError): boolean;
}

export interface DirectChange<Op extends Operation> extends FieldChecks<Op> {
  change(request: Request<Op>, tx: Tx): Promise<ChangeResult<Answer<Op>>>;
}

/** A change that looks things up before its transaction begins, because that is slow. Made by `afterPreparing`. */
export interface PreparedChange<Op extends Operation> extends FieldChecks<Op> {
  /** Resolves to the change itself. */
  prepare(request: Request<Op>): Promise<(tx: Tx) => Promise<ChangeResult<Answer<Op>>>>;
}

export type ChangeHandler<Op extends Operation> = DirectChange<Op> | PreparedChange<Op>;

interface ChangeAfter<Op extends Operation, Found> extends FieldChecks<Op> {
  /** Slow look-ups before the transaction. */
  prepare(request: Request<Op>): Promise<Found>;
  /** Gets what `prepare` found. May run again, as every transaction. */
  change(request: Request<Op>, tx: Tx, found: NoInfer<Found>): Promise<ChangeResult<Answer<Op>>>;
}

/** A change that uses what its `prepare` found; the type goes from one to the other. */
export function afterPreparing<Op extends Operation, Found>(handler: ChangeAfter<Op, Found>): PreparedChange<Op> {
  const { prepare, change, ...checks } = handler;
  return {
    ...checks,
    async prepare(request) {
      const found = await prepare(request);
      return (tx) => change(request, tx, found);
    },
  };
}

export type Handler<Op extends Operation> = Op["list"] extends true
  ? ListHandler<Op>
  : Op["method"] extends "GET"
    ? ReadHandler<Op>
    : Op["readOnlyPost"] extends true
      ? ReadHandler<Op>
      : ChangeHandler<Op>;

/** Handlers of some operations of the contract, by name. */
export type Handlers<Name extends OperationName = OperationName> = { readonly [N in Name]: Handler<Contract[N]> };

/** A token that is known and may not be used: it has expired, or comes from an address that it may not. */
export class TokenRefused extends ApiError {
  readonly caller: Caller;
  constructor(caller: Caller, code: "token_expired" | "scope_missing", detail: string) {
    super(code, detail);
    this.caller = caller;
  }
}

/** One row of the audit (docs/spec.md#audit). */
export interface AuditRow {
  readonly date: number;
  /** Null: the token is unknown, or there is none. */
  readonly caller: Caller | null;
  readonly address: string;
  readonly operation: OperationName;
  readonly resource: string | null;
  readonly resourceId: number | null;
  readonly status: number;
  readonly requestId: string;
  /** JSON. */
  readonly before: string | null;
  readonly after: string | null;
}
