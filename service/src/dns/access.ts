/**
 * Access rules of DNS. A caller sees the domains of its project; a restricted token sees one domain and the records that match its pattern
 * and types. Objects that the caller may not see are reported as not found.
 */
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { ApiError } from "../base/error.ts";
import type { EventRow } from "../engine/eventquery.ts";
import type { Caller } from "../http/handler.ts";
import type { Reader } from "../store/db.ts";
import { readOwner } from "./model/name.ts";
import { ownerMatches } from "./model/pattern.ts";
import type { StoredRecord } from "./model/record.ts";
import * as table from "./table.ts";

type RecordPlace = Pick<StoredRecord, "owner"> & { readonly type: string };

/** Returns whether the caller's token may see (and change) a record of this type and owner in its domain. */
export function canSeeRecord({ restriction }: Caller, { type, owner }: RecordPlace): boolean {
  if (restriction === null) return true;
  if (restriction.types !== null && !restriction.types.includes(type)) return false;
  return restriction.pattern === null || ownerMatches(restriction.pattern, owner);
}

const canSeeDomain = ({ restriction }: Caller, id: number): boolean =>
  restriction === null || restriction.domainId === id;

/** Returns the domain if it belongs to the caller's project and the token may see it, else undefined. */
export function findVisibleDomain(db: Reader, caller: Caller, id: number): Promise<table.OwnedDomain | undefined> {
  return canSeeDomain(caller, id)
    ? table.findDomain.first(db, { id, project: caller.projectId })
    : Promise.resolve(undefined);
}

/** Returns the domain. Throws `domain_not_found` if it does not exist or the caller may not see it. */
export async function getDomain(db: Reader, caller: Caller, id: number): Promise<table.OwnedDomain> {
  return (await findVisibleDomain(db, caller, id)) ?? domainNotFound(id);
}

/** Throws `domain_not_found`. */
export function domainNotFound(id: number): never {
  throw new ApiError("domain_not_found", `There is no domain ${id} in this project.`);
}

/** A record with the names of its domain. */
export type RecordInDomain = table.RecordRow & { readonly name: string; readonly ascii: string };

/** Returns the record. Throws `record_not_found` if it does not exist or the caller may not see it. */
export async function getRecord(db: Reader, caller: Caller, id: number): Promise<RecordInDomain> {
  const row = await table.findRecord.first(db, { id, project: caller.projectId });
  if (row === undefined || !canSeeDomain(caller, row.domain_id) || !canSeeRecord(caller, row))
    throw new ApiError("record_not_found", `There is no record ${id} in this project.`);
  return row;
}

/**
 * Returns the event as the caller's token may see it, or null if it may not. A restricted token receives events of its domain without the
 * hidden records, and events of visible records. Events of deleted records contain no record: it receives those that it caused.
 */
export function filterEventForToken(caller: Caller, row: EventRow): EventRow | null {
  const { restriction } = caller;
  if (restriction === null) return row;
  if (row.data === null) return row.resource === "domain" || row.token_id === caller.tokenId ? row : null;
  const isVisible = (record: DnsRecord): boolean => {
    const owner = readOwner(record.PunyName, restriction.domain, true);
    return typeof owner === "string" && canSeeRecord(caller, { type: record.TypeRecord, owner });
  };
  if (row.resource === "record") return isVisible(JSON.parse(row.data) as DnsRecord) ? row : null;
  if (row.resource !== "domain") return null;
  const domain = JSON.parse(row.data) as Domain;
  return { ...row, data: JSON.stringify({ ...domain, LinkedRecords: domain.LinkedRecords.filter(isVisible) }) };
}

/** Throws `token_restricted` if a restricted token may not create or write this record. */
export function requireRecordAccess(caller: Caller, record: StoredRecord): void {
  if (canSeeRecord(caller, record)) return;
  throw new ApiError(
    "token_restricted",
    `Token ${caller.tokenId} does not allow ${record.type} records at "${record.owner}".`,
  );
}

/** Throws `token_restricted` for operations on a complete domain. `what` completes the sentence "the token may not …". */
export function requireFullDomainAccess(caller: Caller, what: string): void {
  if (caller.restriction === null) return;
  throw new ApiError("token_restricted", `Token ${caller.tokenId} is restricted to records and may not ${what}.`);
}
