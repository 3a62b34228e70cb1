/**
 * Executes a change. The rows of the handler, the events, the audit row and the idempotency key commit in one transaction. Only then is
 * the change applied to the host and waited for. A dry run takes the same path and is rolled back at the end.
 */
import type { OperationName } from "@brume/api/contract.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { runAside } from "../base/turn.ts";
import { append } from "../engine/event.ts";
import { rest, runResting, type Store, type Tx } from "../store/db.ts";
import { type Bound, subjectOf } from "./bind.ts";
import type { Exchange } from "./exchange.ts";
import type { AuditRow, Caller, ChangeResult, Request, ResourceChange } from "./handler.ts";
import type { Claim } from "./idempotency.ts";
import type { AuditTable } from "./refusallog.ts";
import type { Reply } from "./reply.ts";
import { createPrint, type Print, show, showPrinted } from "./show.ts";
import type { Stop } from "./stop.ts";

/** Dependencies of a change. */
export interface ChangeContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly audit: AuditTable;
  readonly stop: Stop;
}

/** Thrown at the end of a dry run to roll its transaction back. */
class DryRunEnd extends Error {
  readonly outcome: ChangeResult<unknown>;
  constructor(outcome: ChangeResult<unknown>) {
    super("dry run");
    this.outcome = outcome;
  }
}

const resourceOf = (type: string): string => type.slice(0, type.indexOf("."));

/** Objects whose texts are created together. */
const printedTogether = 100;

/** Appends the events of the changes, in slices. */
async function appendEvents(
  tx: Tx,
  changes: readonly ResourceChange[],
  caller: Caller,
  requestId: string,
  now: number,
  print: Print,
): Promise<void> {
  for (let from = 0; from < changes.length; from += printedTogether) {
    if (from > 0) await rest(tx);
    const events = changes
      .slice(from, from + printedTogether)
      .filter(({ silent }) => silent !== true)
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
    await append(tx, events);
  }
}

/** Creates the audit row of a request. `change` is its first changed object, if there is one. */
export function auditRow(
  exchange: Exchange,
  bound: Bound,
  caller: Caller | null,
  date: number,
  status: number,
  change?: ResourceChange,
  print = createPrint(),
): AuditRow {
  const subject = change ? { resource: resourceOf(change.type), id: change.id } : subjectOf(bound, exchange.parameters);
  return {
    date,
    caller,
    address: exchange.address,
    operation: bound.name as OperationName,
    resource: subject.resource,
    resourceId: subject.id,
    status,
    requestId: exchange.id,
    before: print(change?.before),
    after: print(change?.after),
  };
}

/**
 * Executes the change and waits up to `wait` milliseconds for its effect. `claim` is the idempotency key of the request; null: none.
 * Rejects with any error of the handler, after a rollback.
 */
export async function executeChange(
  context: ChangeContext,
  exchange: Exchange,
  bound: Bound,
  request: Request,
  claim: Claim | null,
  wait: number,
): Promise<Reply> {
  const { store, clock, log, audit } = context;
  const { handler } = bound;
  const { caller } = request;
  const change = await handler.prepare?.(request);
  const print = createPrint();
  const isExpected = ({ expected }: ChangeResult<unknown>): boolean => expected !== undefined && wait > 0;
  let reply: Reply | undefined;
  const batched = request.dryRun ? undefined : handler.batched?.(request);
  const write = store.write(async (tx, output?: ChangeResult<unknown>) => {
    const outcome = (output ??
      (await (change === undefined ? handler.change?.(request, tx) : change(tx)))) as ChangeResult<unknown>;
    if (request.dryRun) throw new DryRunEnd(outcome);
    // A change of thousands of objects has texts of megabytes.
    await rest(tx);
    const now = clock.now();
    await appendEvents(tx, outcome.changes, caller, exchange.id, now, print);
    await rest(tx);
    // Parts of a long content are no changes of an object, and would displace other rows.
    if (bound.operation.content !== true || outcome.changes.length > 0)
      await audit.write(tx, auditRow(exchange, bound, caller, now, 200, outcome.changes[0], print));
    if (claim !== null) {
      await rest(tx);
      // A long response that is about to change is created once.
      if (!isExpected(outcome)) {
        if (outcome.text === undefined) await runResting(tx, print.inTurns(outcome.answer));
        reply = show(outcome, print);
      }
      await claim.store(tx, reply ?? null, outcome.tasks ?? [], now);
    }
    return outcome;
  }, batched);
  let outcome: ChangeResult<unknown>;
  try {
    outcome = await write;
  } catch (error) {
    if (error instanceof DryRunEnd) return await showPrinted(error.outcome, print);
    throw error;
  } finally {
    change?.release?.();
  }
  try {
    // Nothing is awaited between the commit and this call, so that changes are applied in the order of commits.
    const refreshing = outcome.refresh?.(wait);
    const ready = refreshing && (wait > 0 ? context.stop.race(refreshing) : refreshing);
    const printing = ready && isExpected(outcome) && runAside(print.inTurns(outcome.expected), ready);
    const answer = await ready;
    await printing;
    if (answer !== undefined || isExpected(outcome)) {
      const { text, ...others } = outcome;
      // Another answer needs another text.
      const isSame = answer === undefined || (answer === outcome.answer && text !== undefined);
      reply = await showPrinted(isSame ? outcome : { ...others, answer }, print);
      await claim?.amend(reply, outcome.tasks ?? []);
    }
  } catch (error) {
    // The change is committed, so the response must be 200.
    log("error", "A change is committed, but applying it or updating its response failed.", {
      request: exchange.id,
      operation: bound.name,
      error,
    });
  }
  return reply ?? showPrinted(outcome, print);
}
