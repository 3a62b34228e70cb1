/** Route handlers for domains: list, create, read, update, delete. */
import type { Labels } from "@brume/api/common.ts";
import { type Domain, type ImportReport, limits } from "@brume/api/dns.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { mergeQuotas, type Quotas, requireQuota } from "../account/model/rules.ts";
import { findProject, lockProject } from "../account/table.ts";
import { readConsistently } from "../base/consistent.ts";
import { ApiError, fieldError, invalidFields } from "../base/error.ts";
import { quote } from "../base/quote.ts";
import { runInTurns } from "../base/turn.ts";
import type { Reconciler } from "../engine/flow.ts";
import { sendReconcile } from "../engine/task.ts";
import { afterPreparing, type Caller, type Handlers, type ResourceChange } from "../http/handler.ts";
import { json } from "../http/reply.ts";
import { type Reader, reserveEarly, reserveIds, rest, runResting, type Tx } from "../store/db.ts";
import { canSeeRecord, domainNotFound, findVisibleDomain, getDomain, requireFullDomainAccess } from "./access.ts";
import { nextSerial, renderZone } from "./apply.ts";
import { filterDomains } from "./domainfilter.ts";
import { type Fetched, type LeftOut, listSkipped } from "./migrate.ts";
import { readAddress } from "./model/address.ts";
import { type DomainName, readDomainName } from "./model/name.ts";
import type { StoredRecord } from "./model/record.ts";
import { describeConflict, findConflicts } from "./model/rules.ts";
import { automaticSoa, servedOwner, sortKey } from "./model/served.ts";
import { domainTag, maxInEvent, printedOf, printLongDomain, showDomain, showLongDomain } from "./model/show.ts";
import { readZone, zoneFileError } from "./model/zonefile/parse.ts";
import { printZone } from "./model/zonefile/print.ts";
import { requireFreeName } from "./names.ts";
import { listAll } from "./neighbours.ts";
import type { DnsContext } from "./recordroutes.ts";
import * as table from "./table.ts";
import { appendLongVersion } from "./version.ts";
import { largeZone, printFromSnapshot, streamJson, streamZoneFile, type ZoneStream } from "./zonestream.ts";

type Names = "listDomains" | "createDomain" | "readDomain" | "updateDomain" | "deleteDomain";

/** Returns the errors of the fields of a new domain that do not depend on stored data. */
function checkDomain(body: { Name?: string; Ip?: string; Migrate?: boolean; ZoneFile?: string }): FieldError[] {
  const errors: FieldError[] = [];
  const domain = body.Name === undefined ? null : readDomainName(body.Name);
  if (domain !== null && "reason" in domain) errors.push(fieldError("/Name", domain.code, `Name ${domain.reason}.`));
  if (body.Ip && readAddress(body.Ip) === null)
    errors.push(fieldError("/Ip", "format_invalid", `Ip must be an IPv4 or IPv6 address, not ${quote(body.Ip)}.`));
  if (body.Migrate === true && body.ZoneFile !== undefined)
    errors.push(fieldError("/Migrate", "fields_conflict", "Migrate must not be true if ZoneFile is given."));
  return errors;
}

/** Records stored together: it takes less than a slice. */
const storedTogether = 256;

const zoneFileType = "text/dns; charset=us-ascii";

/** Maximum number of reads of a domain that keeps changing. */
const maxReads = 5;

/** Returns a domain and its records of the same serial, as far as the caller may see them. Throws `domain_not_found`. */
async function readTogether(db: Reader, caller: Caller, id: number) {
  const { row, rest } =
    (await readConsistently({
      find: () => findVisibleDomain(db, caller, id),
      version: ({ version }) => version,
      read: () => table.listRecords(db, id),
      attempts: maxReads,
    })) ?? domainNotFound(id);
  return { row, records: rest.filter((record) => canSeeRecord(caller, record)) };
}

/** The initial records of a new domain, and how they were imported. */
interface Content {
  readonly records: readonly StoredRecord[];
  /** Labels as JSON, for the records that have labels. */
  readonly labels?: ReadonlyMap<StoredRecord, string>;
  /** Labels of the domain as JSON; null: there are none. */
  readonly domainLabels?: string | null;
  readonly report: ImportReport | null;
}

/** Collects, with yields, the initial records of a domain: from `Ip`, and from the zone file or its present name servers. Throws `zone_file_invalid`. */
function* collect(
  body: { readonly ZoneFile?: string },
  first: StoredRecord | null,
  domain: DomainName,
  fetched: Fetched | undefined,
  max: number,
): Generator<void, Content> {
  const firstRecords = first === null ? [] : [first];
  const isFirst = (record: StoredRecord) =>
    record.type === first?.type && record.owner === "@" && record.value === first.value;
  if (body.ZoneFile !== undefined) {
    const zone = yield* readZone(body.ZoneFile, domain.ascii, max);
    const errors = (yield* findConflicts([...firstRecords, ...zone.records], firstRecords.length))
      .filter(
        ({ code, index }) =>
          !(code === "record_exists" && isFirst(zone.records[index - firstRecords.length] as StoredRecord)),
      )
      .map(({ index, code, other }) => {
        const all = [...firstRecords, ...zone.records];
        const conflict = { code, other: other === null ? null : (all[other] ?? null) };
        const { message } = describeConflict(all[index] as StoredRecord, conflict, { id: 0, ascii: domain.ascii });
        return { line: zone.lines[index - firstRecords.length] ?? 0, reason: message.replace(/\.$/, "") };
      });
    if (errors.length > 0) throw zoneFileError(errors);
    return {
      records: [...firstRecords, ...zone.records.filter((record) => !isFirst(record))],
      labels: zone.labels,
      domainLabels: zone.domainLabels,
      report: { State: "Completed", Records: zone.records.length, Skipped: zone.skipped, Detail: "" },
    };
  }
  if (fetched !== undefined) {
    const others = fetched.records.filter((record) => !isFirst(record));
    const most = Math.max(0, max - firstRecords.length);
    const records = others.slice(0, most);
    // Fetched records that conflict with the requested address are left out.
    const conflicting = new Map(
      (yield* findConflicts([...firstRecords, ...records], firstRecords.length)).map(({ index, code }) => [
        records[index - firstRecords.length],
        code,
      ]),
    );
    const accepted = records.filter((record) => !conflicting.has(record));
    const leftOut = others.flatMap((record, index): LeftOut[] => {
      const code = index < most ? conflicting.get(record) : "quota_exceeded";
      return code === undefined ? [] : [{ record, code }];
    });
    const cut = others.length - records.length;
    const detail = cut === 0 ? "" : ` ${cut} records exceed the quota RecordsPerDomain.`;
    return {
      records: [...firstRecords, ...accepted],
      report: {
        State: fetched.state,
        Records: accepted.length,
        Skipped: listSkipped(fetched, domain.ascii, leftOut),
        Detail: fetched.detail + detail,
      },
    };
  }
  return { records: firstRecords, report: null };
}

/** Creates the handlers. `delegation` is requested for new and deleted domains. */
export function domainRoutes(context: DnsContext, delegation: Reconciler): Handlers<Names> {
  const { clock, zones, nameServers, fetchZone } = context;
  /** Shows all records as served. */
  const anySerial = Number.MAX_SAFE_INTEGER;

  /** Returns the event and audit entry of a domain. */
  const changeOf = (
    type: ResourceChange["type"],
    before: Domain | null,
    after: Domain | null,
    id = before?.ID ?? after?.ID ?? 0,
  ): ResourceChange => {
    const bound = (domain: Domain | null) =>
      domain !== null && domain.LinkedRecords.length > maxInEvent ? { ...domain, LinkedRecords: [] } : domain;
    return { type, id, parent: null, before: bound(before), after: bound(after) };
  };

  /** Returns the response with a domain, created in slices: a long one also as text. `served` as in `showRow`. */
  async function showResting(tx: Tx, row: table.DomainRow, records: readonly table.RecordRow[], served: number) {
    const answer = await runResting(tx, showLongDomain(row, records, served, nameServers));
    if (records.length <= maxInEvent) return { answer };
    const body = await runResting(tx, printLongDomain(answer));
    return { answer, text: { type: json, body } };
  }

  const streamOf = (caller: Caller, domain: number): ZoneStream => {
    const { served } = zones;
    return { caller, domain, snapshot: context.snapshot, served, nameServers };
  };

  return {
    listDomains: {
      async list({ query, caller }, db) {
        const { records: withRecords = true, ...filters } = query;
        const page = await filterDomains(db, caller, filters, {
          state: (row) => (row.serial <= zones.served(row.ascii) ? "Active" : "New"),
          parts: (row) => (withRecords ? row.record_count : 0),
        });
        async function* show(): AsyncGenerator<Domain | AsyncIterable<string>> {
          for (const row of page.items) {
            if (withRecords && row.record_count >= largeZone) {
              yield printFromSnapshot(streamOf(caller, row.id), row);
              continue;
            }
            const records = withRecords ? await table.listRecords(db, row.id) : [];
            const visible = records.filter((record) => canSeeRecord(caller, record));
            yield showDomain(row, visible, zones.served(row.ascii), nameServers);
          }
        }
        return { ...page, items: show() };
      },
    },
    readDomain: {
      async read({ params, caller, otherMedia }, db) {
        const found = await getDomain(db, caller, params.id);
        if (found.record_count >= largeZone) {
          const stream = streamOf(caller, found.id);
          const body = otherMedia ? streamZoneFile(stream) : streamJson(stream);
          const type = otherMedia ? zoneFileType : json;
          return { answer: showDomain(found, [], zones.served(found.ascii), nameServers), text: { type, body } };
        }
        const { row, records } = await readTogether(db, caller, params.id);
        const result = {
          answer: showDomain(row, otherMedia ? [] : records, zones.served(row.ascii), nameServers),
          tag: domainTag(row),
        };
        if (!otherMedia) return result;
        const soa = automaticSoa(row.ascii, nameServers);
        const body = printZone(row, soa, row.serial, nameServers, records.map(printedOf));
        return { ...result, text: { type: zoneFileType, body } };
      },
    },
    createDomain: afterPreparing({
      check: checkDomain,
      async prepare({ body, caller }) {
        const name = readDomainName(body.Name);
        if (body.Migrate !== true || body.ZoneFile !== undefined || "reason" in name) return undefined;
        requireFullDomainAccess(caller, "create domains");
        return fetchZone(name.ascii);
      },
      async change({ body, caller, requestId, dryRun }, tx, fetched) {
        requireFullDomainAccess(caller, "create domains");
        const domain = readDomainName(body.Name);
        if ("reason" in domain) throw invalidFields(checkDomain(body));
        const address = body.Ip ? readAddress(body.Ip) : null;

        await table.lockNames(tx);
        await lockProject(tx, caller.projectId);
        const reserved = reserveEarly(tx, "domain", 1);
        const [, project, domains, retired] = await Promise.all([
          requireFreeName(tx, caller.projectId, domain.ascii),
          findProject.first(tx, { id: caller.projectId }),
          table.countDomains(tx, caller.projectId),
          table.findRetiredSerial(tx, domain.ascii),
        ]);
        if (project === undefined) throw new ApiError("token_invalid", "The project of the token has been deleted.");
        requireQuota(project.quotas, "Domains", domains, 1);

        const first: StoredRecord | null = address === null ? null : { ...address, owner: "@", ttl: limits.ttl };
        const max = mergeQuotas(JSON.parse(project.quotas) as Partial<Quotas>).RecordsPerDomain;
        const content = collect(body, first, domain, fetched, max);
        const { records, labels, domainLabels, report } = await runResting(tx, content);
        requireQuota(project.quotas, "RecordsPerDomain", 0, records.length);

        const now = clock.now();
        const [id = 0] = await reserved();
        const row: table.DomainRow = {
          id,
          project_id: caller.projectId,
          name: domain.name,
          ascii: domain.ascii,
          subtree: sortKey(domain.ascii),
          serial: nextSerial(retired, now),
          record_count: records.length,
          is_delegate: 0,
          delegation: "Unknown",
          is_proven: 0,
          import_report: report === null ? null : JSON.stringify(report),
          created: now,
          labels: body.Labels === undefined ? (domainLabels ?? "{}") : JSON.stringify(body.Labels),
          version: 1,
        };
        table.addDomain(tx, row);
        const ids = records.length === 0 ? [] : await reserveIds(tx, "record", records.length);
        const rows: table.RecordRow[] = [];
        for (let from = 0; from < records.length; from += storedTogether) {
          const some = records.slice(from, from + storedTogether).map((record, index) => ({
            ...record,
            id: ids[from + index] ?? 0,
            domain_id: row.id,
            node: sortKey(servedOwner(record)),
            serial: row.serial,
            created: now,
            labels: labels?.get(record) ?? "{}",
            version: 1,
          }));
          table.insertRecords(tx, some);
          for (const each of some) rows.push(dryRun ? { ...each, id: 0 } : each);
          await rest(tx);
        }
        const changes = rows.map((after) => ({ op: "Create" as const, before: null, after }));
        await appendLongVersion(tx, row, changes, { token: caller.tokenId, request: requestId, now });
        sendReconcile(tx, delegation, row.id);
        await rest(tx);

        const shown = dryRun ? { ...row, id: 0 } : row;
        const shownRows = dryRun ? rows.map((record) => ({ ...record, domain_id: 0 })) : rows;
        const response = await showResting(tx, shown, shownRows, anySerial);
        const zone = await runResting(tx, renderZone(row, rows, nameServers));
        return {
          ...response,
          tag: domainTag(shown),
          changes: [changeOf("domain.created", null, response.answer)],
          async refresh(ms) {
            await zones.publish(zone, ms);
            const served = zones.served(row.ascii);
            return served >= row.serial ? undefined : runInTurns(showLongDomain(row, rows, served, nameServers));
          },
        };
      },
    }),
    updateDomain: {
      async change({ params, body, caller, expect }, tx) {
        await table.lockDomain(tx, params.id);
        const row = await getDomain(tx, caller, params.id);
        expect(domainTag(row));
        requireFullDomainAccess(caller, "update domains");
        const labels = body.Labels === undefined ? row.labels : JSON.stringify(body.Labels);
        const isChanged = labels !== row.labels;
        const changed = isChanged ? { ...row, labels, version: row.version + 1 } : row;
        if (isChanged) await table.updateDomain(tx, row.id, { labels, version: changed.version });
        const records = await listAll(tx, row.id);
        const response = await showResting(tx, changed, records, zones.served(row.ascii));
        const before = { ...response.answer, Labels: JSON.parse(row.labels) as Labels };
        const changes = isChanged ? [changeOf("domain.changed", before, response.answer)] : [];
        return { ...response, tag: domainTag(changed), changes };
      },
    },
    deleteDomain: {
      async change({ params, caller, expect }, tx) {
        await table.lockNames(tx);
        await table.lockDomain(tx, params.id);
        const row = await getDomain(tx, caller, params.id);
        expect(domainTag(row));
        requireFullDomainAccess(caller, "delete domains");
        const records = row.record_count > maxInEvent ? [] : await table.listRecords(tx, row.id);
        await table.deleteDomain(tx, row);
        sendReconcile(tx, delegation, row.id);
        return {
          answer: undefined,
          changes: [changeOf("domain.deleted", showDomain(row, records, anySerial, nameServers), null)],
          async refresh(ms) {
            await zones.withdraw(row.ascii, row.serial, ms);
            return undefined;
          },
        };
      },
    },
  };
}
