/** One record at a time: read, create, update, delete. All types share their handlers, for their specs say how they differ. */
import { type DnsRecord, type RecordFields, type RecordType, recordTypes } from "@brume/api/dns.ts";
import type { FieldFault } from "@brume/api/errors.ts";
import type { Clock } from "../base/clock.ts";
import { Fault, faultAt, fieldFault, invalidFields } from "../base/fault.ts";
import type { Handlers, Happening, Outcome, Request } from "../http/handler.ts";
import type { Tx } from "../store/db.ts";
import { type Applied, applyWishes, type By, showChange } from "./apply.ts";
import type { FetchZone } from "./migrate.ts";
import type { Zones } from "./publisher.ts";
import { checkFields, ownerField, readRecord } from "./record.ts";
import { recordTag, showRow, storedOf } from "./show.ts";
import { findSeenDomain, getDomain, getRecord, holdSight, sees } from "./sight.ts";
import * as table from "./table.ts";

export interface DnsTools {
  readonly clock: Clock;
  readonly zones: Zones;
  /** Names in the automatic NS set. */
  readonly nameServers: readonly string[];
  /** What a domain (ASCII) has where it is served at present. */
  readonly fetchZone: FetchZone;
}

/** What each changed record's event and audit say. */
export const tellRecords = ({ domain, changes }: Applied): Happening[] =>
  changes.map((change) => {
    const { Before, After } = showChange(change, domain);
    const what = { Create: "created", Update: "changed", Delete: "deleted" } as const;
    const id = change.after?.id ?? change.before?.id ?? 0;
    return { type: `record.${what[change.op]}`, id, parent: domain.id, before: Before, after: After } as const;
  });

/**
 * Hands the step to the name server. Answers are written as though it were served; when it is not in time, `shown` gives the answer
 * that says so.
 */
export const settleStep =
  <A>({ zones }: DnsTools, { domain, step }: Applied, shown: () => A) =>
  async (ms: number): Promise<A | undefined> => {
    if (step !== null) await zones.publish(step, ms);
    return zones.served(domain.ascii) >= domain.serial ? undefined : shown();
  };

/** New rows of a dry run have no id. */
export function hideNewIds(changes: Applied["changes"], dryRun: boolean): Applied["changes"] {
  if (!dryRun) return changes;
  return changes.map((change) =>
    change.op === "Create" && change.after !== null ? { ...change, after: { ...change.after, id: 0 } } : change,
  );
}

export const byOf = ({ caller, requestId }: Pick<Request, "caller" | "requestId">, clock: Clock): By => ({
  token: caller.tokenId,
  request: requestId,
  now: clock.now(),
  sees: (record) => sees(caller, record),
});

/** What the change of a record is asked with, whichever the type. */
type Asked = Pick<Request, "caller" | "requestId" | "dryRun" | "expect"> & { readonly body: RecordFields };

/** Takes the requests of each type: their fields are some of all, and all are optional. */
interface RecordHandler<A extends Asked> {
  alsoCheck(body: RecordFields): readonly FieldFault[];
  change(request: A, tx: Tx): Promise<Outcome<DnsRecord>>;
}

function createOf(type: RecordType, tools: DnsTools): RecordHandler<Asked> {
  return {
    alsoCheck: (body) => checkFields(type, body, false),
    async change(request, tx) {
      const { body, caller, dryRun } = request;
      if (body.DomainId === undefined)
        throw invalidFields([
          fieldFault("/DomainId", "field_required", "DomainId is required: the domain of the record."),
        ]);
      await table.lockDomain(tx, body.DomainId);
      const domain = await findSeenDomain(tx, caller, body.DomainId);
      if (domain === undefined)
        throw invalidFields([
          fieldFault("/DomainId", "unknown_reference", `There is no domain ${body.DomainId} in this project.`),
        ]);
      const record = readRecord(type, body, domain);
      holdSight(caller, record);
      const wish = { op: "Create", record, labels: JSON.stringify(body.Labels ?? {}), at: "" } as const;
      const pointer = `/${ownerField(type, body)}`;
      const made = await applyWishes(tx, domain, [{ ...wish, pointer }], byOf(request, tools.clock), tools.nameServers);
      const applied = { ...made, changes: hideNewIds(made.changes, dryRun) };
      return recordOutcome(tools, applied, applied.changes[0]?.after);
    },
  };
}

function updateOf(
  type: RecordType,
  tools: DnsTools,
): RecordHandler<Asked & { readonly params: { readonly id: number } }> {
  return {
    alsoCheck: (body) => checkFields(type, body, true),
    async change(request, tx) {
      const { body, caller, params } = request;
      const found = await getRecord(tx, caller, params.id);
      await table.lockDomain(tx, found.domain_id);
      const { name: _name, ascii: _ascii, ...row } = await getRecord(tx, caller, params.id);
      request.expect(recordTag(row));
      if (row.type !== type)
        throw new Fault("record_type_mismatch", `Record ${row.id} is of type ${row.type}, not ${type}.`);
      if (body.DomainId !== undefined && body.DomainId !== row.domain_id)
        throw faultAt("record_in_other_domain", "/DomainId", `Record ${row.id} belongs to domain ${row.domain_id}.`);
      const domain = await getDomain(tx, caller, row.domain_id);
      const record = readRecord(type, body, domain, storedOf(row));
      holdSight(caller, record);
      const labels = body.Labels === undefined ? row.labels : JSON.stringify(body.Labels);
      const wish = { op: "Update", row, record, labels, at: "", pointer: `/${ownerField(type, body)}` } as const;
      const applied = await applyWishes(tx, domain, [wish], byOf(request, tools.clock), tools.nameServers);
      return recordOutcome(tools, applied, applied.changes[0]?.after ?? row);
    },
  };
}

function recordOutcome(tools: DnsTools, applied: Applied, row: table.RecordRow | null | undefined): Outcome<DnsRecord> {
  if (row === null || row === undefined) throw new Error("a record that was written is not there");
  const happenings = tellRecords(applied);
  const show = (served: number) => showRow(row, applied.domain, served);
  return {
    // The same object as the event's, so that it is shown and written as text once.
    answer: (happenings[0]?.after as DnsRecord | undefined) ?? show(Number.MAX_SAFE_INTEGER),
    tag: recordTag(row),
    happenings,
    settle: settleStep(tools, applied, () => show(tools.zones.served(applied.domain.ascii))),
  };
}

type Names = "readRecord" | "deleteRecord" | `createRecord${RecordType}` | `updateRecord${RecordType}`;

export function recordRoutes(tools: DnsTools): Handlers<Names> {
  const perType = Object.fromEntries(
    recordTypes.flatMap((type) => [
      [`createRecord${type}`, createOf(type, tools)],
      [`updateRecord${type}`, updateOf(type, tools)],
    ]),
  ) as unknown as Handlers<`createRecord${RecordType}` | `updateRecord${RecordType}`>;
  return {
    ...perType,
    readRecord: {
      async read({ params, caller }, db) {
        const row = await getRecord(db, caller, params.id);
        return { answer: showRow(row, row, tools.zones.served(row.ascii)), tag: recordTag(row) };
      },
    },
    deleteRecord: {
      async change(request, tx) {
        const { params, caller } = request;
        await table.lockDomain(tx, params.domainid);
        const domain = await getDomain(tx, caller, params.domainid);
        const { name: _name, ascii: _ascii, ...row } = await getRecord(tx, caller, params.recordId);
        if (row.domain_id !== domain.id)
          throw new Fault("record_not_found", `There is no record ${params.recordId} in domain ${domain.id}.`);
        request.expect(recordTag(row));
        const wish = { op: "Delete", row, at: "", pointer: "" } as const;
        const applied = await applyWishes(tx, domain, [wish], byOf(request, tools.clock), tools.nameServers);
        return {
          answer: undefined,
          happenings: tellRecords(applied),
          settle: settleStep(tools, applied, () => undefined),
        };
      },
    },
  };
}
