/**
 * Route handlers for single records: read, create, update, delete. All record types share these handlers; the specs of the types
 * (`api/src/record`) contain the differences.
 */
import { type DnsRecord, type RecordFields, type RecordType, recordTypes } from "@brume/api/dns.ts";
import type { FieldError } from "@brume/api/errors.ts";
import type { Clock } from "../base/clock.ts";
import { ApiError, errorAt, fieldError, invalidFields } from "../base/error.ts";
import type { ChangeResult, Handlers, Request, ResourceChange } from "../http/handler.ts";
import { type Batch, type Batched, inBatch, type Snapshot, type Tx } from "../store/db.ts";
import { canSeeRecord, findVisibleDomain, getDomain, getRecord, requireRecordAccess } from "./access.ts";
import { type Applied, type Author, applyChanges, showChange } from "./apply.ts";
import type { FetchZone } from "./migrate.ts";
import { checkFields, ownerField, readRecord } from "./model/record.ts";
import { recordTag, showRow, storedOf } from "./model/show.ts";
import type { ZonePublisher } from "./publisher.ts";
import { type Creation, createRecordBatch } from "./recordbatch.ts";
import * as table from "./table.ts";

/** Dependencies shared by the DNS route handlers. */
export interface DnsContext {
  readonly clock: Clock;
  readonly zones: ZonePublisher;
  /** Host names of the automatic NS sets. */
  readonly nameServers: readonly string[];
  /** Opens a snapshot of the database, for reads that take many turns. */
  readonly snapshot: () => Promise<Snapshot>;
  /** Fetches the records of a domain (ASCII) from its present name servers. */
  readonly fetchZone: FetchZone;
}

/** Returns the event and audit entry of a changed record, from its API form. */
export function recordEvent(
  change: Applied["changes"][number],
  { Before, After }: ReturnType<typeof showChange>,
  domain: Pick<table.DomainRow, "id">,
): ResourceChange {
  const what = { Create: "created", Update: "changed", Delete: "deleted" } as const;
  const id = change.after?.id ?? change.before?.id ?? 0;
  return { type: `record.${what[change.op]}`, id, parent: domain.id, before: Before, after: After } as const;
}

/** Returns one event and audit entry per changed record. */
const emitRecordEvents = ({ domain, changes }: Applied): ResourceChange[] =>
  changes.map((change) => recordEvent(change, showChange(change, domain), domain));

/**
 * Returns the `refresh` of a change: it publishes the step and waits up to `ms`. Responses are written as if the step were served. If it is
 * not served in time, `refresh` resolves to `shown()`, a response with the actual state; else to undefined.
 */
export const awaitPublish =
  <A>({ zones }: DnsContext, { domain, step }: Applied, shown: () => A) =>
  async (ms: number): Promise<A | undefined> => {
    if (step !== null) await zones.publish(step, ms);
    return zones.served(domain.ascii) >= domain.serial ? undefined : shown();
  };

/** Replaces the ids of created records by 0 in a dry run, whose rows are rolled back. */
export function hideNewIds(changes: Applied["changes"], dryRun: boolean): Applied["changes"] {
  if (!dryRun) return changes;
  return changes.map((change) =>
    change.op === "Create" && change.after !== null ? { ...change, after: { ...change.after, id: 0 } } : change,
  );
}

/** Returns the author of a change (token, request, time) and what it may see. */
export const authorOf = ({ caller, requestId }: Pick<Request, "caller" | "requestId">, clock: Clock): Author => ({
  token: caller.tokenId,
  request: requestId,
  now: clock.now(),
  canSee: (record) => canSeeRecord(caller, record),
});

/** The part of a request that all record types share. */
type RecordRequest = Pick<Request, "caller" | "requestId" | "dryRun" | "expect"> & { readonly body: RecordFields };

/** Handles the requests of every record type: each type has some of the fields, and all are optional. */
interface RecordHandler<A extends RecordRequest> {
  alsoCheck(body: RecordFields): readonly FieldError[];
  change(request: A, tx: Tx): Promise<ChangeResult<DnsRecord>>;
}

function createOf(
  type: RecordType,
  context: DnsContext,
  batch: Batch<Creation, ChangeResult<DnsRecord>>,
): RecordHandler<RecordRequest> & { batched(request: RecordRequest): Batched<ChangeResult<DnsRecord>> } {
  return {
    batched: (request) => inBatch(batch, { type, request }),
    alsoCheck: (body) => checkFields(type, body, false),
    async change(request, tx) {
      const { body, caller, dryRun } = request;
      if (body.DomainId === undefined)
        throw invalidFields([
          fieldError("/DomainId", "field_required", "DomainId is required: the domain of the record."),
        ]);
      await table.lockDomain(tx, body.DomainId);
      const domain = await findVisibleDomain(tx, caller, body.DomainId);
      if (domain === undefined)
        throw invalidFields([
          fieldError("/DomainId", "unknown_reference", `There is no domain ${body.DomainId} in this project.`),
        ]);
      const record = readRecord(type, body, domain);
      requireRecordAccess(caller, record);
      const change = { op: "Create", record, labels: JSON.stringify(body.Labels ?? {}), at: "" } as const;
      const pointer = `/${ownerField(type, body)}`;
      const result = await applyChanges(
        tx,
        domain,
        [{ ...change, pointer }],
        authorOf(request, context.clock),
        context.nameServers,
      );
      const applied = { ...result, changes: hideNewIds(result.changes, dryRun) };
      return recordOutcome(context, applied, applied.changes[0]?.after);
    },
  };
}

function updateOf(
  type: RecordType,
  context: DnsContext,
): RecordHandler<RecordRequest & { readonly params: { readonly id: number } }> {
  return {
    alsoCheck: (body) => checkFields(type, body, true),
    async change(request, tx) {
      const { body, caller, params } = request;
      const found = await getRecord(tx, caller, params.id);
      await table.lockDomain(tx, found.domain_id);
      const { name: _name, ascii: _ascii, ...row } = await getRecord(tx, caller, params.id);
      request.expect(recordTag(row));
      if (row.type !== type)
        throw new ApiError("record_type_mismatch", `Record ${row.id} is of type ${row.type}, not ${type}.`);
      if (body.DomainId !== undefined && body.DomainId !== row.domain_id)
        throw errorAt("record_in_other_domain", "/DomainId", `Record ${row.id} belongs to domain ${row.domain_id}.`);
      const domain = await getDomain(tx, caller, row.domain_id);
      const record = readRecord(type, body, domain, storedOf(row));
      requireRecordAccess(caller, record);
      const labels = body.Labels === undefined ? row.labels : JSON.stringify(body.Labels);
      const change = { op: "Update", row, record, labels, at: "", pointer: `/${ownerField(type, body)}` } as const;
      const applied = await applyChanges(tx, domain, [change], authorOf(request, context.clock), context.nameServers);
      return recordOutcome(context, applied, applied.changes[0]?.after ?? row);
    },
  };
}

function recordOutcome(
  context: DnsContext,
  applied: Applied,
  row: table.RecordRow | null | undefined,
): ChangeResult<DnsRecord> {
  if (row === null || row === undefined) throw new Error("The record is missing from the result of its own change.");
  const changes = emitRecordEvents(applied);
  const show = (served: number) => showRow(row, applied.domain, served);
  return {
    // The same object as in the event, so that it is serialised once.
    answer: (changes[0]?.after as DnsRecord | undefined) ?? show(Number.MAX_SAFE_INTEGER),
    tag: recordTag(row),
    changes,
    refresh: awaitPublish(context, applied, () => show(context.zones.served(applied.domain.ascii))),
  };
}

type Names = "readRecord" | "deleteRecord" | `createRecord${RecordType}` | `updateRecord${RecordType}`;

export function recordRoutes(context: DnsContext): Handlers<Names> {
  const batch = createRecordBatch({
    authorOf: (request) => authorOf(request, context.clock),
    nameServers: context.nameServers,
    show: (created) => recordOutcome(context, created, created.row),
  });
  const perType = Object.fromEntries(
    recordTypes.flatMap((type) => [
      [`createRecord${type}`, createOf(type, context, batch)],
      [`updateRecord${type}`, updateOf(type, context)],
    ]),
  ) as unknown as Handlers<`createRecord${RecordType}` | `updateRecord${RecordType}`>;
  return {
    ...perType,
    readRecord: {
      async read({ params, caller }, db) {
        const row = await getRecord(db, caller, params.id);
        return { answer: showRow(row, row, context.zones.served(row.ascii)), tag: recordTag(row) };
      },
    },
    deleteRecord: {
      async change(request, tx) {
        const { params, caller } = request;
        await table.lockDomain(tx, params.domainid);
        const domain = await getDomain(tx, caller, params.domainid);
        const { name: _name, ascii: _ascii, ...row } = await getRecord(tx, caller, params.recordId);
        if (row.domain_id !== domain.id)
          throw new ApiError("record_not_found", `There is no record ${params.recordId} in domain ${domain.id}.`);
        request.expect(recordTag(row));
        const change = { op: "Delete", row, at: "", pointer: "" } as const;
        const applied = await applyChanges(tx, domain, [change], authorOf(request, context.clock), context.nameServers);
        return {
          answer: undefined,
          changes: emitRecordEvents(applied),
          refresh: awaitPublish(context, applied, () => undefined),
        };
      },
    },
  };
}
