/**
 * The contract and its handlers, brought together once when the service starts: per operation what the pipeline would
 * otherwise have to work out for every request.
 */
import { errorCodes, type FieldError, type MissingCode } from "@brume/api/errors.ts";
import { isChange, isStored, type Operation } from "@brume/api/operation.ts";
import { type TObject, Type } from "typebox";
import { ApiError } from "../base/error.ts";
import type { Reader, Tx } from "../store/db.ts";
import type { ChangeResult, ListPage, ReadResult, Request } from "./handler.ts";
import type { Metrics, Timer } from "./metrics.ts";
import { parseId } from "./path.ts";

/** A handler as the pipeline sees it, which knows operations only as data. `Handlers` fits. */
export interface AnyHandler {
  read?(request: Request, db: Reader): Promise<ReadResult<unknown>>;
  list?(request: Request, db: Reader): Promise<ListPage<unknown>>;
  check?(body: object): readonly FieldError[];
  alsoCheck?(body: object): readonly FieldError[];
  spares?(body: object, fault: FieldError): boolean;
  prepare?(request: Request): Promise<(tx: Tx) => Promise<ChangeResult<unknown>>>;
  change?(request: Request, tx: Tx): Promise<ChangeResult<unknown>>;
}

interface Parameter {
  readonly name: string;
  readonly missing: MissingCode;
  /** `domain`, `public network`. */
  readonly noun: string;
}

export interface Bound {
  readonly name: string;
  readonly operation: Operation;
  readonly handler: AnyHandler;
  readonly change: boolean;
  /** Fields of the body; null: whatever comes is thrown away. */
  readonly fields: TObject | null;
  /** Fields that only answers have, its own and that of reading the same object: ignored in a body, in strict mode too. */
  readonly answered: ReadonlySet<string>;
  /** Whether its answer is remembered until the next commit. */
  readonly remembered: boolean;
  /** Whether it draws from the token's rate limit. */
  readonly counted: boolean;
  /** Whether it answers before the service is ready, and while it stops. */
  readonly alwaysAnswers: boolean;
  readonly parameters: readonly Parameter[];
  /** What `Accept` may ask for instead of JSON. */
  readonly otherMedia: string | null;
  /** That other form is a stream of events. */
  readonly streams: boolean;
  readonly note: Timer;
}

const noFields = Type.Object({});

const keysOf = (operation: Operation | undefined): string[] =>
  Object.keys((operation?.answer as TObject | null | undefined)?.properties ?? {});

/** `read`: the operation that reads what the path names. */
export function bindOperation(
  name: string,
  operation: Operation,
  handler: AnyHandler,
  metrics: Metrics,
  read?: Operation,
): Bound {
  const change = isChange(operation);
  const verb = change
    ? handler.prepare === undefined
      ? "change"
      : "prepare"
    : operation.list === true
      ? "list"
      : "read";
  if (handler[verb] === undefined) throw new Error(`operation ${name} has no handler with ${verb}()`);
  const streams = operation.media === "text/event-stream";
  return {
    name,
    operation,
    handler,
    change,
    fields: operation.body ?? (operation.method === "POST" || operation.method === "PUT" ? noFields : null),
    answered: new Set([...keysOf(operation), ...keysOf(read)]),
    remembered: isStored(operation),
    counted: operation.unlimited !== true,
    alwaysAnswers: operation.alwaysAnswers === true,
    parameters: [...operation.path.matchAll(/\{([^}]+)\}/g)].map(([, parameter = ""]) => {
      const missing = operation.params?.[parameter];
      if (missing === undefined) throw new Error(`operation ${name} does not say what a missing ${parameter} is`);
      return { name: parameter, missing, noun: errorCodes[missing].noun };
    }),
    otherMedia: operation.media ?? null,
    streams,
    note: metrics.timer(name),
  };
}

export type Ids = Readonly<Record<string, number>>;

const noIds: Ids = Object.freeze({});

/** Ids of the path; what is no id names nothing and throws the 404 of its kind. */
export function readIds(bound: Bound, texts: Readonly<Record<string, string>>): Ids {
  if (bound.parameters.length === 0) return noIds;
  const ids: Record<string, number> = {};
  for (const { name, missing, noun } of bound.parameters) {
    const id = parseId(texts[name] ?? "");
    if (id === null)
      throw new ApiError(missing, `There is no ${noun} with such an ID: it must be a number from 1 to 2147483647.`);
    ids[name] = id;
  }
  return ids;
}

/** What a request is about, as far as its path tells: the innermost object. For the audit of what did not come to a change. */
export function subjectOf(
  bound: Bound,
  texts: Readonly<Record<string, string>>,
): { resource: string | null; id: number | null } {
  const last = bound.parameters.at(-1);
  if (last === undefined) return { resource: null, id: null };
  return { resource: last.noun.replaceAll(" ", ""), id: parseId(texts[last.name] ?? "") || null };
}
