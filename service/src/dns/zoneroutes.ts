/** Route handlers for changesets, zone files, history and restore (docs/spec.md#changesets-zone-files-and-history). */
import type { ChangeInput as ChangeField, ChangesetResult, Version } from "@brume/api/dns.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { mergeQuotas, type Quotas, requireQuota } from "../account/model/rules.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import { createPieces } from "../base/pieces.ts";
import { runInTurns } from "../base/turn.ts";
import type { Caller, ChangeResult, Handlers, Request, ResourceChange } from "../http/handler.ts";
import { defaultLimit, mostParts } from "../http/list.ts";
import { decodeCursor, encodeCursor } from "../http/read/page.ts";
import { json } from "../http/reply.ts";
import { flushJournals, rest, runResting, type Tx } from "../store/db.ts";
import { canSeeRecord, getDomain, requireFullDomainAccess, requireRecordAccess } from "./access.ts";
import { applyChanges, showChange } from "./apply.ts";
import * as versions from "./changetable.ts";
import type { RecordChange } from "./model/change.ts";
import { type Difference, findDifferences } from "./model/difference.ts";
import { checkFields, ownerField, readRecord, type StoredRecord } from "./model/record.ts";
import { describeConflict, findConflicts } from "./model/rules.ts";
import { domainTag, storedOf } from "./model/show.ts";
import { readZone, zoneFileError } from "./model/zonefile/parse.ts";
import { listAll, listAround } from "./neighbours.ts";
import { authorOf, awaitPublish, type DnsContext, hideNewIds, recordEvent } from "./recordroutes.ts";
import * as table from "./table.ts";
import { type PastRecord, type PastVersion, readVersions, showVersion, stateAt } from "./version.ts";

type Names = "changeRecords" | "importZone" | "listVersions" | "restoreVersion";

/** Returns the error of an element that does not identify its record. */
function missingIn({ Op, ID, TypeRecord }: Partial<ChangeField>, at: string): FieldError | null {
  if (Op === "Create" && TypeRecord === undefined)
    return fieldError(`${at}/TypeRecord`, "field_required", "TypeRecord is required to create a record.");
  if ((Op === "Update" || Op === "Delete") && ID === undefined)
    return fieldError(`${at}/ID`, "field_required", `ID is required to ${Op.toLowerCase()} a record.`);
  return null;
}

/** Returns the errors of an element of a changeset that do not depend on stored data. */
function checkChange(change: ChangeField, at: string): FieldError[] {
  const missing = missingIn(change, at);
  const { Op, TypeRecord } = change;
  const fields =
    Op === "Delete" || TypeRecord === undefined ? [] : checkFields(TypeRecord, change, Op === "Update", at);
  return missing === null ? [...fields] : [missing, ...fields];
}

/** Parses the elements of a changeset. Throws one error that lists all invalid fields of all elements. */
async function readChanges(
  tx: Tx,
  request: Request,
  domain: table.OwnedDomain,
  changes: readonly ChangeField[],
): Promise<RecordChange[]> {
  const { caller } = request;
  const ids = changes.flatMap(({ ID, Op }) => (ID === undefined || Op === "Create" ? [] : [ID]));
  const rows = new Map((await table.listByIds(tx, domain.id, ids)).map((row) => [row.id, row]));
  const errors: FieldError[] = [];
  const restricted: ApiError[] = [];
  const used = new Set<number>();
  const requested: RecordChange[] = [];

  const readOne = (change: ChangeField, at: string): RecordChange | FieldError => {
    const { Op, ID, TypeRecord, DomainId } = change;
    const missing = missingIn(change, at);
    if (missing !== null) return missing;
    const error = (field: string, code: FieldError["code"], detail: string) =>
      fieldError(`${at}/${field}`, code, detail);
    if (DomainId !== undefined && DomainId !== domain.id)
      return error("DomainId", "record_in_other_domain", `DomainId must be ${domain.id}, not ${DomainId}.`);
    if (Op === "Create" && TypeRecord !== undefined) {
      const record = readRecord(TypeRecord, change, domain, undefined, at);
      requireRecordAccess(caller, record);
      const labels = JSON.stringify(change.Labels ?? {});
      return { op: "Create", record, labels, at, pointer: `/${ownerField(TypeRecord, change)}` };
    }
    const row = ID === undefined ? undefined : rows.get(ID);
    if (ID === undefined || row === undefined || !canSeeRecord(caller, row))
      return error("ID", "unknown_reference", `There is no record ${ID} in domain ${domain.id}.`);
    if (used.has(ID)) return error("ID", "fields_conflict", `Record ${ID} occurs more than once in the changeset.`);
    used.add(ID);
    const { type } = storedOf(row);
    if (TypeRecord !== undefined && TypeRecord !== type)
      return error("TypeRecord", "record_type_mismatch", `Record ${ID} is of type ${type}, not ${TypeRecord}.`);
    if (Op === "Delete") return { op: "Delete", row, at, pointer: "/ID" };
    const record = readRecord(type, change, domain, storedOf(row), at);
    requireRecordAccess(caller, record);
    const labels = change.Labels === undefined ? row.labels : JSON.stringify(change.Labels);
    return { op: "Update", row, record, labels, at, pointer: `/${ownerField(type, change)}` };
  };

  changes.forEach((change, index) => {
    try {
      const wanted = readOne(change, `/Changes/${index}`);
      if ("code" in wanted) errors.push(wanted);
      else requested.push(wanted);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "token_restricted") restricted.push(error);
      else errors.push(...error.errors);
    }
  });
  if (errors.length > 0) throw invalidFields(errors);
  if (restricted[0] !== undefined) throw restricted[0];
  return requested;
}

/** Converts differences to changes at one position of the request. */
const changesOf = (differences: readonly Difference[], place: { at: string; pointer: string }): RecordChange[] =>
  differences.map((difference) => ({ ...difference, ...place }));

/** Throws, with yields before, `zone_file_invalid` with the lines, if records of the file conflict with each other or with remaining records. */
function* requireNoConflict(
  domain: table.DomainRow,
  present: readonly table.RecordRow[],
  differences: readonly Difference[],
  lines: readonly number[],
): Generator<void, void> {
  const removed = new Set(differences.flatMap((one) => (one.op === "Create" ? [] : [one.row.id])));
  yield;
  const remaining = present.filter((row) => !removed.has(row.id)).map(storedOf);
  yield;
  const written = differences.filter((one) => one.op !== "Delete");
  const records: StoredRecord[] = [...remaining, ...written.map(({ record }) => record)];
  yield;
  const errors = (yield* findConflicts(records, remaining.length)).map(({ index, code, other }) => {
    const one = written[index - remaining.length] as (typeof written)[number];
    const conflict = { code, other: other === null ? null : (records[other] ?? null) };
    const { message } = describeConflict(one.record, conflict, domain);
    return { line: lines[one.index] ?? 0, reason: message.replace(/\.$/, "") };
  });
  if (errors.length > 0) throw zoneFileError(errors);
}

/** Changes whose texts are created together. */
const shownTogether = 100;

export function zoneRoutes(context: DnsContext): Handlers<Names> {
  /** Applies the changes and returns the result with its events. */
  async function apply(
    request: Request,
    tx: Tx,
    domain: table.OwnedDomain,
    requested: readonly RecordChange[],
    options?: { readonly isChecked: boolean },
  ): Promise<ChangeResult<ChangesetResult>> {
    const by = authorOf(request, context.clock);
    const result = await applyChanges(tx, domain, requested, by, context.nameServers, options);
    const applied = { ...result, changes: hideNewIds(result.changes, request.dryRun) };
    const counts = { Create: 0, Update: 0, Delete: 0 };
    for (const { op } of applied.changes) counts[op] += 1;
    const summary = {
      Serial: applied.domain.serial,
      Created: counts.Create,
      Updated: counts.Update,
      Deleted: counts.Delete,
    };
    // Thousands of records: their texts are created in slices, and never joined.
    const Records: ChangesetResult["Records"][number][] = [];
    const events: ResourceChange[] = [];
    const body = createPieces();
    body.add(`${JSON.stringify(summary).slice(0, -1)},"Records":[`);
    for (let from = 0; from < applied.changes.length; from += shownTogether) {
      if (from > 0) await rest(tx);
      const some = applied.changes.slice(from, from + shownTogether);
      const shown = some.map((change) => showChange(change, applied.domain));
      body.add(`${from > 0 ? "," : ""}${JSON.stringify(shown).slice(1, -1)}`);
      for (const [index, change] of some.entries()) {
        const one = shown[index] as (typeof shown)[number];
        Records.push(one);
        events.push(recordEvent(change, one, applied.domain));
      }
    }
    body.add("]}");
    const answer: ChangesetResult = { ...summary, Records };
    return {
      answer,
      text: { type: json, body: body.pieces() },
      changes: [
        {
          type: "domain.changed",
          id: domain.id,
          parent: null,
          before: { Serial: domain.serial },
          after: summary,
          silent: true,
        },
        ...events,
      ],
      refresh: awaitPublish(context, applied, () => answer),
    };
  }

  const open = async (request: Request<never>, tx: Tx, id: number): Promise<table.OwnedDomain> => {
    await table.lockDomain(tx, id);
    const domain = await getDomain(tx, request.caller, id);
    request.expect(domainTag(domain));
    return domain;
  };

  return {
    changeRecords: {
      alsoCheck: ({ Changes = [] }) => Changes.flatMap((change, index) => checkChange(change, `/Changes/${index}`)),
      async change(request, tx) {
        const domain = await open(request, tx, request.params.id);
        const requested = await readChanges(tx, request, domain, request.body.Changes);
        return apply(request, tx, domain, requested);
      },
    },
    importZone: {
      async change(request, tx) {
        const domain = await open(request, tx, request.params.id);
        requireFullDomainAccess(request.caller, "import zone files");
        const keep = request.body.Mode !== "Replace";
        const max = mergeQuotas(JSON.parse(domain.quotas) as Partial<Quotas>).RecordsPerDomain;
        const zone = await runResting(tx, readZone(request.body.ZoneFile, domain.ascii, max));
        // The parser stops after `max + 1` records: an incomplete result must not be imported.
        if (zone.records.length > max) requireQuota(domain.quotas, "RecordsPerDomain", 0, zone.records.length);
        // Nothing is deleted with `keep`, so records at other names do not matter.
        const present = keep ? await listAround(tx, domain, zone.records) : await listAll(tx, domain.id);
        // Unless the file marks the NS set at the top, the stored NS records there are kept.
        const compared = zone.definesTop ? present : present.filter((row) => !(row.type === "NS" && row.owner === "@"));
        await rest(tx);
        const wanted = zone.records.map((record) => ({ record, labels: zone.labels.get(record) ?? null }));
        const differences = await runResting(tx, findDifferences(compared, wanted, { keep }));
        await rest(tx);
        await runResting(tx, requireNoConflict(domain, present, differences, zone.lines));
        await rest(tx);
        const changes = changesOf(differences, { at: "/ZoneFile", pointer: "" });
        return apply(request, tx, domain, changes, { isChecked: true });
      },
    },
    restoreVersion: {
      async change(request, tx) {
        const domain = await open(request, tx, request.params.id);
        requireFullDomainAccess(request.caller, "restore versions");
        const { Serial } = request.body;
        await flushJournals(tx);
        const state = await stateAt(tx, domain.id, Serial);
        if (state === undefined)
          throw invalidFields([
            fieldError("/Serial", "unknown_reference", `Domain ${domain.id} has no version with serial ${Serial}.`),
          ]);
        const present = await table.listByIds(tx, domain.id, [...state.keys()]);
        await rest(tx);
        const wanted = [...state.values()]
          .filter((row) => row !== null)
          .map((row) => ({ record: storedOf(row), labels: row.labels }));
        const differences = await runResting(tx, findDifferences(present, wanted));
        return apply(request, tx, domain, changesOf(differences, { at: "", pointer: "/Serial" }));
      },
    },
    listVersions: {
      async list({ params, query, caller }, db) {
        const domain = await getDomain(db, caller, params.id);
        const limit = query.limit ?? (query.cursor === undefined ? Infinity : defaultLimit);
        const before = query.cursor === undefined ? undefined : decodeCursor(query.cursor).id;
        const canSee = visibilityOf(caller);
        const items: PastVersion[] = [];
        let parts = 0;
        let next: string | null = null;
        let visible = 0;
        // Only a restricted token reads the versions of other pages too: it must not count the hidden ones.
        const top = canSee === undefined ? before : undefined;
        for await (const version of readVersions(db, domain.id, { top, canSee })) {
          visible += 1;
          if (next !== null || version.serial >= (before ?? Infinity)) continue;
          const last = items.at(-1);
          // Each change contains a record before and after.
          parts += 2 * version.changes.length;
          if (last === undefined || (items.length < limit && parts <= mostParts)) items.push(version);
          else {
            next = encodeCursor({ id: last.serial });
            if (canSee === undefined) break;
          }
        }
        const total = canSee === undefined ? await versions.countVersions(db, domain.id) : visible;
        return { items: showVersions(items, domain), total, next };
      },
    },
  };
}

async function* showVersions(items: readonly PastVersion[], domain: table.DomainRow): AsyncGenerator<Version> {
  for (const version of items) yield await runInTurns(showVersion(version, domain));
}

type Visibility = (record: PastRecord) => boolean;

/** Returns the filter of a restricted token; undefined for others. */
const visibilityOf = (caller: Caller): Visibility | undefined =>
  caller.restriction === null ? undefined : (record) => canSeeRecord(caller, record);
