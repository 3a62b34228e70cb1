/**
 * Domains and their records: the operations on domains, and those on records as `record/` derives them from the table of record types.
 */
import { type Static, Type } from "typebox";
import { newDomainFaults } from "./claim.ts";
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
import { DnsRecord, domainStates, RecordFields, recordOperations, recordParam, ruleFaults } from "./record/record.ts";
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
export type ImportReport = Static<typeof ImportReport>;

export const Domain = Type.Object(
  {
    ID: id(),
    Name: text(),
    NamePunyCode: text(),
    TechName: text(),
    State: word(domainStates),
    DateCreate: date(),
    IsDelegate: boolean({ description: "The parent names one of `NameServers`; `Delegation`: also whether others." }),
    LinkedRecords: list(DnsRecord),
    NameServers: list(text()),
    Serial: integer(0, 4_294_967_295),
    Import: nullable(ImportReport),
    Delegation: word(["Delegated", "Partial", "NotDelegated", "Unknown"]),
    Labels,
  },
  { title: "Domain" },
);
export type Domain = Static<typeof Domain>;

const changeOps = ["Create", "Update", "Delete"] as const;

const ChangeInput = Type.Object({
  Op: word(changeOps),
  TypeRecord: optional(word(recordTypes)),
  ID: optionalId(),
  ...RecordFields.properties,
});
export type ChangeInput = Static<typeof ChangeInput>;

const AppliedChange = Type.Object(
  { Op: word(changeOps), Before: nullable(DnsRecord), After: nullable(DnsRecord) },
  { title: "AppliedChange" },
);
export type AppliedChange = Static<typeof AppliedChange>;

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
export type Version = Static<typeof Version>;

const domainParam = { id: "domain_not_found" } as const;

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
    description: "The name server answers for it when the answer leaves.",
    body: Type.Object({
      Name: text({ maxLength: 1024, "x-also": ["DomainName"] }),
      Ip: optional(text({ description: "IPv4 or IPv6: also makes an A or AAAA record at the top." })),
      Migrate: optional(boolean({ description: "Fetch the existing records from the domain's present name servers." })),
      ZoneFile: optional(text({ description: "A master file (RFC 1035 section 5) to import.", "x-verbatim": true })),
      Labels: optional(Labels),
    }),
    answer: Domain,
    etag: true,
    resultOperation: "readDomain",
    wait: 2,
    errors: [...newDomainFaults, "zone_file_invalid", "quota_exceeded", "token_restricted"],
  },
  readDomain: {
    method: "GET",
    path: "/dns/{id}",
    access: "dns:read",
    summary: "Read a domain with its records",
    description:
      "With `Accept: text/dns` the answer is a zone file: SOA, NS set, then records by owner, all names absolute.",
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
    description: "From then on the name server refuses the name.",
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
      "All or nothing, one transaction, one step of the serial. Rules are held against the outcome, so a CNAME may take the place of an A. With `dryRun` it is the preview.",
    params: domainParam,
    body: Type.Object({ Changes: list(ChangeInput, { minItems: 1, maxItems: limits.changes }) }),
    answer: ChangesetResult,
    wait: 2,
    errors: ["record_type_mismatch", "record_in_other_domain", ...ruleFaults],
  },
  importZone: {
    method: "PUT",
    path: "/dns/{id}/zonefile",
    access: "dns:write",
    summary: "Bring the records to what a zone file says",
    description:
      "`Merge` (default) adds what is missing, `Replace` also deletes what the file does not have. SOA and top NS lines are left out.",
    params: domainParam,
    body: Type.Object({
      ZoneFile: text({ "x-verbatim": true, minLength: 1 }),
      Mode: optional(word(["Merge", "Replace"])),
    }),
    answer: ChangesetResult,
    wait: 2,
    repeatable: true,
    errors: ["zone_file_invalid", ...ruleFaults],
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
    summary: "Bring the records back to what they were at a serial",
    description: "As a new change, with a new serial; with `dryRun` it is the preview.",
    params: domainParam,
    body: Type.Object({ Serial: integer(0, 4_294_967_295) }),
    answer: ChangesetResult,
    wait: 2,
    errors: ruleFaults,
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
    description: "When the answer leaves, the name server no longer serves the record.",
    params: { domainid: "domain_not_found", recordId: "record_not_found" },
    answer: null,
    wait: 2,
  },
  ...recordOperations,
});
