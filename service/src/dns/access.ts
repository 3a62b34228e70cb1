/**
 * What a caller may see and touch of DNS: domains of its own project, and for a restricted token one domain and the records that
 * its pattern and types let through. What it may not see does not exist for it.
 */
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { ApiError } from "../base/error.ts";
import type { EventRow } from "../engine/event.ts";
import type { Caller } from "../http/handler.ts";
import type { Reader } from "../store/db.ts";
import { readOwner } from "./model/name.ts";
import { ownerMatches } from "./model/pattern.ts";
import type { StoredRecord } from "./model/record.ts";
import * as table from "./table.ts";

type Seen = Pick<StoredRecord, "owner"> & { readonly type: string };

export function canSeeRecord({ restriction }: Caller, { type, owner }: Seen): boolean {
  if (restriction === null) return true;
  if (restriction.types !== null && !restriction.types.includes(type)) return false;
  return restriction.pattern === null || ownerMatches(restriction.pattern, owner);
}

const seesDomain = ({ restriction }: Caller, id: number): boolean =>
  restriction === null || restriction.domainId === id;

export function findVisibleDomain(db: Reader, caller: Caller, id: number): Promise<table.OwnedDomain | undefined> {
  return seesDomain(caller, id)
    ? table.findDomain.first(db, { id, project: caller.projectId })
    : Promise.resolve(undefined);
}

/** Throws `domain_not_found`. */
export async function getDomain(db: Reader, caller: Caller, id: number): Promise<table.OwnedDomain> {
  const domain = await findVisibleDomain(db, caller, id);
  if (domain === undefined) throw new ApiError("domain_not_found", `There is no domain ${id} in this project.`);
  return domain;
}

export type RecordInDomain = table.RecordRow & { readonly name: string; readonly ascii: string };

/** Throws `record_not_found`. */
export async function getRecord(db: Reader, caller: Caller, id: number): Promise<RecordInDomain> {
  const row = await table.findRecord.first(db, { id, project: caller.projectId });
  if (row === undefined || !seesDomain(caller, row.domain_id) || !canSeeRecord(caller, row))
    throw new ApiError("record_not_found", `There is no record ${id} in this project.`);
  return row;
}

/**
 * What a restricted token hears of an event: of its domain without the records it may not see, of records only its own, of deletions
 * (which no longer say of what) only those it asked for.
 */
export function filterEventForToken(caller: Caller, row: EventRow): EventRow | null {
  const { restriction } = caller;
  if (restriction === null) return row;
  if (row.data === null) return row.resource === "domain" || row.token_id === caller.tokenId ? row : null;
  const isSeen = (record: DnsRecord): boolean => {
    const owner = readOwner(record.PunyName, restriction.domain, true);
    return typeof owner === "string" && canSeeRecord(caller, { type: record.TypeRecord, owner });
  };
  if (row.resource === "record") return isSeen(JSON.parse(row.data) as DnsRecord) ? row : null;
  if (row.resource !== "domain") return null;
  const domain = JSON.parse(row.data) as Domain;
  return { ...row, data: JSON.stringify({ ...domain, LinkedRecords: domain.LinkedRecords.filter(isSeen) }) };
}

/** Throws `token_restricted` when a restricted token would make or turn something into this record. */
export function requireRecordAccess(caller: Caller, record: StoredRecord): void {
  if (canSeeRecord(caller, record)) return;
  throw new ApiError(
    "token_restricted",
    `Token ${caller.tokenId} may not have ${record.type} records at "${record.owner}".`,
  );
}

/** Throws `token_restricted` for what concerns a domain as a whole. */
export function requireFullDomainAccess(caller: Caller, what: string): void {
  if (caller.restriction === null) return;
  throw new ApiError("token_restricted", `Token ${caller.tokenId} is restricted to records and may not ${what}.`);
}
