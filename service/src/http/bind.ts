/**
 * Binds each operation of the contract to its handler when the service starts. The result contains all that the pipeline would
 * otherwise compute for every request.
 */
import { errorCodes, type FieldError, type MissingCode } from "@brume/api/errors.ts";
import { isChange, isStored, type Operation } from "@brume/api/operation.ts";
import { type TObject, Type } from "typebox";
import { ApiError } from "../base/error.ts";
import type { Batched, Reader, Tx } from "../store/db.ts";
import type { ChangeResult, ListPage, Prepared, ReadResult, Request } from "./handler.ts";
import type { Metrics, Timer } from "./metrics.ts";
import { parseId } from "./path.ts";

/** A handler without the types of its operation, as the pipeline calls it. The values of `Handlers` are assignable to it. */
export interface AnyHandler {
  read?(request: Request, db: Reader): Promise<ReadResult<unknown>>;
  list?(request: Request, db: Reader): Promise<ListPage<unknown>>;
  prepareCheck?(body: object): Generator<void, void>;
  check?(body: object): readonly FieldError[];
  alsoCheck?(body: object): readonly FieldError[];
  failsElementOnly?(body: object, error: FieldError): boolean;
  prepare?(request: Request): Promise<Prepared<unknown>>;
  batched?(request: Request): Batched<ChangeResult<unknown>>;
  change?(request: Request, tx: Tx): Promise<ChangeResult<unknown>>;
}

interface Parameter {
  readonly name: string;
  /** Error code if no object has this id. */
  readonly missing: MissingCode;
  /** Name of the object in sentences, such as `public network`. */
  readonly noun: string;
}

/** An operation with its handler and its derived properties. */
export interface Bound {
  readonly name: string;
  readonly operation: Operation;
  readonly handler: AnyHandler;
  /** The operation changes data; otherwise it only reads. */
  readonly change: boolean;
  /** Schema of the body; null: a body is read and dropped. */
  readonly fields: TObject | null;
  /** The response may be cached until the next commit. */
  readonly cached: boolean;
  /** The request counts towards the rate limit of the token. */
  readonly counted: boolean;
  /** The operation responds before the service is ready and while it stops. */
  readonly alwaysAnswers: boolean;
  /** Ids of the path, in its order. */
  readonly parameters: readonly Parameter[];
  /** Media type that `Accept` can select instead of JSON; null: none. */
  readonly otherMedia: string | null;
  /** `otherMedia` is an event stream. */
  readonly streams: boolean;
  /** Records the duration of a request in the metrics. */
  readonly recordDuration: Timer;
}

const noFields = Type.Object({});

/** Binds one operation. Throws if the handler does not have the required method. */
export function bindOperation(name: string, operation: Operation, handler: AnyHandler, metrics: Metrics): Bound {
  const change = isChange(operation);
  const verb = change
    ? handler.prepare === undefined
      ? "change"
      : "prepare"
    : operation.list === true
      ? "list"
      : "read";
  if (handler[verb] === undefined) throw new Error(`Operation ${name} has no handler with ${verb}().`);
  const streams = operation.media === "text/event-stream";
  return {
    name,
    operation,
    handler,
    change,
    fields:
      operation.body ??
      (operation.content !== true && (operation.method === "POST" || operation.method === "PUT") ? noFields : null),
    cached: isStored(operation),
    counted: operation.unlimited !== true,
    alwaysAnswers: operation.alwaysAnswers === true,
    parameters: [...operation.path.matchAll(/\{([^}]+)\}/g)].map(([, parameter = ""]) => {
      const missing = operation.params?.[parameter];
      if (missing === undefined) throw new Error(`Operation ${name} has no error code for a missing ${parameter}.`);
      return { name: parameter, missing, noun: errorCodes[missing].noun };
    }),
    otherMedia: operation.media ?? null,
    streams,
    recordDuration: metrics.timer(name),
  };
}

/** Ids of a path, by parameter name. */
export type Ids = Readonly<Record<string, number>>;

const noIds: Ids = Object.freeze({});

/** Parses the ids of the path. Throws the `not found` error of the object if a text is not an id. */
export function readIds(bound: Bound, texts: Readonly<Record<string, string>>): Ids {
  if (bound.parameters.length === 0) return noIds;
  const ids: Record<string, number> = {};
  for (const { name, missing, noun } of bound.parameters) {
    const id = parseId(texts[name] ?? "");
    if (id === null) throw new ApiError(missing, `No ${noun} has this ID: an ID is a number from 1 to 2147483647.`);
    ids[name] = id;
  }
  return ids;
}

/** Returns kind and id of the innermost object of the path, for the audit row of a request that changed nothing. */
export function subjectOf(
  bound: Bound,
  texts: Readonly<Record<string, string>>,
): { resource: string | null; id: number | null } {
  const last = bound.parameters.at(-1);
  if (last === undefined) return { resource: null, id: null };
  return { resource: last.noun.replaceAll(" ", ""), id: parseId(texts[last.name] ?? "") || null };
}
