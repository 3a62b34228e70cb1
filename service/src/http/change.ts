/**
 * A change from its transaction to its answer: what the handler does, its events, its audit and its idempotency key commit
 * together, and only then the world outside is told and waited for. A dry run goes the same way and is rolled back at the end.
 */
import type { OperationName } from "@brume/api/contract.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { append, type NewEvent } from "../engine/event.ts";
import type { Store } from "../store/db.ts";
import { type Bound, subjectOf } from "./bind.ts";
import type { Exchange } from "./exchange.ts";
import type { AuditRow, Caller, ChangeResult, ReadResult, Request, ResourceChange } from "./handler.ts";
import type { Claim } from "./idempotency.ts";
import type { AuditTable } from "./refusallog.ts";
import { json, type Reply } from "./reply.ts";
import type { Stop } from "./stop.ts";

export interface ChangeTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: AuditTable;
  readonly stop: Stop;
}

/** Thrown to undo a transaction that did all it should. */
class DryRunEnd extends Error {
  readonly outcome: ChangeResult<unknown>;
  constructor(outcome: ChangeResult<unknown>) {
    super("dry run");
    this.outcome = outcome;
  }
}

/** An object as JSON; the same object is the answer, the event's and the audit's, and is written once. */
export type Print = (value: unknown) => string | null;

function createPrint(): Print {
  const printed = new Map<unknown, string>();
  return (value) => {
    if (value === null || value === undefined) return null;
    let text = printed.get(value);
    if (text === undefined) {
      text = JSON.stringify(value);
      printed.set(value, text);
    }
    return text;
  };
}

/** The answer to something found or changed. `undefined` stands for an operation that answers with nothing. */
export function show(found: ReadResult<unknown>, print: Print = JSON.stringify): Reply {
  const { answer, tag, text } = found;
  const status = found.status ?? 200;
  const headers = tag === undefined ? [] : ["ETag", `"${tag}"`];
  if (text !== undefined) return { status, type: text.type, body: text.body, headers };
  if (answer === undefined) return { status, type: null, body: "", headers };
  return { status, type: json, body: print(answer) ?? "null", headers };
}

const resourceOf = (type: string): string => type.slice(0, type.indexOf("."));

function tell(
  changes: readonly ResourceChange[],
  caller: Caller,
  requestId: string,
  now: number,
  print: Print,
): NewEvent[] {
  return changes
    .filter((happening) => happening.silent !== true)
    .map(({ type, id, parent, project, after }) => ({
      type,
      date: now,
      project: project ?? caller.projectId,
      resource: resourceOf(type),
      id,
      parent,
      token: caller.tokenId,
      request: requestId,
      data: print(after),
    }));
}

/** The audit's row of a request; `happening` is the first of a change that took place. */
export function auditRow(
  exchange: Exchange,
  bound: Bound,
  caller: Caller | null,
  date: number,
  status: number,
  happening?: ResourceChange,
  print = createPrint(),
): AuditRow {
  const subject = happening
    ? { resource: resourceOf(happening.type), id: happening.id }
    : subjectOf(bound, exchange.parameters);
  return {
    date,
    caller,
    address: exchange.address,
    operation: bound.name as OperationName,
    resource: subject.resource,
    resourceId: subject.id,
    status,
    requestId: exchange.id,
    before: print(happening?.before),
    after: print(happening?.after),
  };
}

/**
 * Runs the change and waits up to `wait` milliseconds for its effect. `claim` is the request's idempotency key, if it has one.
 * Whatever the handler throws undoes everything.
 */
export async function executeChange(
  tools: ChangeTools,
  exchange: Exchange,
  bound: Bound,
  request: Request,
  claim: Claim | null,
  wait: number,
): Promise<Reply> {
  const { store, clock, log, audit } = tools;
  const { handler } = bound;
  const { caller } = request;
  const change = await handler.prepare?.(request);
  const print = createPrint();
  let reply: Reply | undefined;
  const write = store.write(async (tx) => {
    const outcome = (await (change === undefined
      ? handler.change?.(request, tx)
      : change(tx))) as ChangeResult<unknown>;
    if (request.dryRun) throw new DryRunEnd(outcome);
    const now = clock.now();
    await append(tx, tell(outcome.changes, caller, exchange.id, now, print));
    await audit.write(tx, auditRow(exchange, bound, caller, now, 200, outcome.changes[0], print));
    if (claim !== null) {
      reply = show(outcome, print);
      await claim.keep(tx, reply, outcome.tasks ?? [], now);
    }
    return outcome;
  });
  let outcome: ChangeResult<unknown>;
  try {
    outcome = await write;
  } catch (error) {
    if (error instanceof DryRunEnd) return show(error.outcome);
    throw error;
  }
  try {
    // Nothing is awaited between the commit and this call, so that settling begins in the order of commits.
    const settling = outcome.refresh?.(wait);
    const later = settling && (await (wait > 0 ? tools.stop.race(settling) : settling));
    if (later !== undefined) {
      reply = show({ ...outcome, answer: later });
      await claim?.amend(reply, outcome.tasks ?? []);
    }
  } catch (error) {
    // The change is stored and will be: the caller must hear 200 and nothing else.
    log("error", "a change is stored, but bringing it into the world or its answer up to date failed", {
      request: exchange.id,
      operation: bound.name,
      error,
    });
  }
  return reply ?? show(outcome, print);
}
