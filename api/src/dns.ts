/**
 * Domains and their records: the operations on domains, and the operations on records, which `record/` derives from the table of record types.
 */
import { type Static, Type } from "typebox";
import { newDomainErrors } from "./claim.ts";
import {
  boolean,
  date,
  id,
  integer,
  Labels,
  labelFilter,
  list,
  listQuery,
  nameFilter,
  nullable,
  optional,
  optionalId,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { operations } from "./operation.ts";
import {
  DnsRecord,
  domainStates,
  RecordFields,
  recordOperations,
  recordParam,
  recordRuleErrors,
} from "./record/record.ts";
import { limits } from "./record/spec.ts";
import { recordTypes } from "./record/types.ts";

export { DnsRecord, RecordFields } from "./record/record.ts";
export { limits } from "./record/spec.ts";
export { type RecordType, recordTypes } from "./record/types.ts";

const ImportReport = Type.Object(
  {
    State: word(["Completed", "Failed"]),
    Records: integer(0, 1_000_000),
    Skipped: list(text()),
    Detail: text(),
  },
  { title: "ImportReport" },
);
/** Result of the import of a zone into a new domain. */
export type ImportReport = Static<typeof ImportReport>;

/** A domain with its records. */
export const Domain = Type.Object(
  {
    ID: id(),
    Name: text(),
    NamePunyCode: text(),
    TechName: text(),
    State: word(domainStates),
    DateCreate: date(),
    IsDelegate: boolean({
      description:
        "`true`: the parent zone delegates the domain to at least one of `NameServers`. See also `Delegation`.",
    }),
    LinkedRecords: list(DnsRecord),
    NameServers: list(text()),
    Serial: integer(0, 4_294_967_295),
    Import: nullable(ImportReport),
    Delegation: word(["Delegated", "Partial", "NotDelegated", "Unknown"]),
    Labels,
  },
  { title: "Domain" },
);
/** TypeScript type of this schema. */
export type Domain = Static<typeof Domain>;

const changeOps = ["Create", "Update", "Delete"] as const;

const ChangeInput = Type.Object({
  Op: word(changeOps),
  TypeRecord: optional(word(recordTypes)),
  ID: optionalId(),
  ...RecordFields.properties,
});
/** One change of a changeset. */
export type ChangeInput = Static<typeof ChangeInput>;

const AppliedChange = Type.Object(
  { Op: word(changeOps), Before: nullable(DnsRecord), After: nullable(DnsRecord) },
  { title: "AppliedChange" },
);
/** One applied change, with the record before and after it. */
export type AppliedChange = Static<typeof AppliedChange>;

/** The serial that contains the changes, and each record before and after. */
export const ChangesetResult = Type.Object(
  {
    Serial: integer(0, 4_294_967_295),
    Created: integer(0, limits.changes),
    Updated: integer(0, limits.changes),
    Deleted: integer(0, limits.changes),
    Records: list(AppliedChange),
  },
  { title: "ChangesetResult" },
);
/** TypeScript type of this schema. */
export type ChangesetResult = Static<typeof ChangesetResult>;

const Version = Type.Object(
  {
    Serial: integer(0, 4_294_967_295),
    Date: date(),
    TokenID: nullable(id()),
    RequestID: nullable(text()),
    Changes: list(AppliedChange),
  },
  { title: "Version" },
);
/** One version of a domain: the changes of a serial. */
export type Version = Static<typeof Version>;

const domainParam = { id: "domain_not_found" } as const;

/** Operations on domains and records. */
export const dnsOperations = operations({
  listDomains: {
    method: "GET",
    path: "/dns",
    access: "dns:read",
    summary: "List domains with their records",
    query: listQuery({
      name: nameFilter,
      state: wordsFilter(domainStates),
      label: labelFilter,
      records: optional(boolean({ description: "`false`: every `LinkedRecords` is `[]`." })),
    }),
    answer: list(Domain),
    list: true,
  },
  createDomain: {
    method: "POST",
    path: "/dns",
    access: "dns:write",
    summary: "Create a domain",
    description: "The name server serves the domain before the API responds.",
    body: Type.Object({
      Name: text({ maxLength: 1024, "x-also": ["DomainName"] }),
      Ip: optional(
        text({ description: "IPv4 or IPv6 address: also creates an A or AAAA record at the top of the domain." }),
      ),
      Migrate: optional(
        boolean({ description: "Import the existing records from the current name servers of the domain." }),
      ),
      ZoneFile: optional(text({ description: "A master file (RFC 1035 section 5) to import.", "x-verbatim": true })),
      Labels: optional(Labels),
    }),
    answer: Domain,
    etag: true,
    resultOperation: "readDomain",
    wait: 2,
    errors: [...newDomainErrors, "zone_file_invalid", "quota_exceeded", "token_restricted"],
  },
  readDomain: {
    method: "GET",
    path: "/dns/{id}",
    access: "dns:read",
    summary: "Read a domain with its records",
    description:
      "With `Accept: text/dns` the response is a zone file: SOA, NS set, then records by owner, all names absolute.",
    params: domainParam,
    answer: Domain,
    media: "text/dns",
    etag: true,
  },
  updateDomain: {
    method: "PUT",
    path: "/dns/{id}",
    access: "dns:write",
    summary: "Edit the labels of a domain",
    params: domainParam,
    body: Type.Object({ Labels: optional(Labels) }),
    answer: Domain,
    etag: true,
    resultOperation: "readDomain",
    repeatable: true,
    errors: ["token_restricted"],
  },
  deleteDomain: {
    method: "DELETE",
    path: "/dns/{id}",
    access: "dns:write",
    summary: "Delete a domain and all its records",
    description: "The name server then refuses queries for the domain.",
    params: domainParam,
    answer: null,
    wait: 2,
    errors: ["token_restricted"],
  },
  changeRecords: {
    method: "POST",
    path: "/dns/{id}/changeset",
    access: "dns:write",
    summary: "Change many records at once",
    description:
      "Atomic: all changes or none, with one new serial. The changeset is validated against the resulting zone, so it can replace an A record with a CNAME. Add `dryRun` to preview it.",
    params: domainParam,
    body: Type.Object({ Changes: list(ChangeInput, { minItems: 1, maxItems: limits.changes }) }),
    answer: ChangesetResult,
    wait: 2,
    errors: ["record_type_mismatch", "record_in_other_domain", ...recordRuleErrors],
  },
  importZone: {
    method: "PUT",
    path: "/dns/{id}/zonefile",
    access: "dns:write",
    summary: "Import a zone file",
    description:
      "`Merge` (default) adds missing records; `Replace` also deletes the records that the file does not contain. The SOA and the NS records at the top are skipped.",
    params: domainParam,
    body: Type.Object({
      ZoneFile: text({ "x-verbatim": true, minLength: 1 }),
      Mode: optional(word(["Merge", "Replace"])),
    }),
    answer: ChangesetResult,
    wait: 2,
    repeatable: true,
    errors: ["zone_file_invalid", ...recordRuleErrors],
  },
  listVersions: {
    method: "GET",
    path: "/dns/{id}/history",
    access: "dns:read",
    summary: "List the versions of a domain, newest first",
    params: domainParam,
    query: listQuery({}),
    answer: list(Version),
    list: true,
  },
  restoreVersion: {
    method: "POST",
    path: "/dns/{id}/restore",
    access: "dns:write",
    summary: "Restore the records of an earlier serial",
    description: "Creates a new version with a new serial. Add `dryRun` to preview it.",
    params: domainParam,
    body: Type.Object({ Serial: integer(0, 4_294_967_295) }),
    answer: ChangesetResult,
    wait: 2,
    errors: recordRuleErrors,
  },
  readRecord: {
    method: "GET",
    path: "/dns/record/{id}",
    access: "dns:read",
    summary: "Read one record by its own id",
    params: recordParam,
    answer: DnsRecord,
    etag: true,
  },
  deleteRecord: {
    method: "DELETE",
    path: "/dns/{domainid}/{recordId}",
    access: "dns:write",
    summary: "Delete a record",
    description: "The name server stops serving the record before the API responds.",
    params: { domainid: "domain_not_found", recordId: "record_not_found" },
    answer: null,
    wait: 2,
  },
  ...recordOperations,
});
