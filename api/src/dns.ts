/**
 * Domains and records: one table of seven record types, and the operations that are made from it.
 * Which fields a type takes, and what a field means, is said once here; how they are read is in the service's `dns/rules`.
 */
import { type Static, type TObject, type TProperties, Type } from "typebox";
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

export const recordTypes = ["A", "AAAA", "CNAME", "MX", "NS", "SRV", "TXT"] as const;
export type RecordType = (typeof recordTypes)[number];

/** Defaults and limits (docs/spec.md#defaults-and-limits). */
export const limits = {
  ttl: 3600,
  maxTtl: 2_147_483_647,
  textBytes: 4096,
  /** All records of one type at one name; with 1,535 bytes for the rest it fits into one message (RFC 1035 section 4.2.2). */
  setBytes: 64_000,
  changes: 10_000,
  importSeconds: 5,
} as const;

const number16 = integer(0, 65_535, { "x-either": true });
const host = text({ maxLength: 1024 });

const common = {
  DomainId: optionalId({ description: "The domain; required to make a record." }),
  Name: optional(host),
  HostName: optional(host),
  TTL: optional(integer(0, limits.maxTtl, { description: "Seconds. Default 3600." })),
  Labels: optional(Labels),
};

/** Which fields each type reads beside the common ones. What is required is for the rules to say: names stand in for each other. */
const ownFields = {
  A: { IP: optional(text({ maxLength: 64 })) },
  AAAA: { IP: optional(text({ maxLength: 64 })) },
  CNAME: { MnemonicName: optional(host) },
  MX: { ExtHostName: optional(host), Priority: optional(number16) },
  NS: { ExtHostName: optional(host) },
  SRV: {
    Service: optional(text({ maxLength: 64 })),
    Proto: optional(text({ maxLength: 64 })),
    Priority: optional(number16),
    Weight: optional(number16),
    Port: optional(number16),
    Target: optional(host),
  },
  TXT: { Text: optional(text({ "x-verbatim": true })) },
} as const;

export const RecordFields = Type.Object({
  ...common,
  ...ownFields.A,
  ...ownFields.CNAME,
  ...ownFields.MX,
  ...ownFields.SRV,
  ...ownFields.TXT,
});
/** Every field of any type, as read; a type's own operation reads only its own. */
export type RecordFields = Static<typeof RecordFields>;

type Bodies = {
  [T in RecordType]: typeof common & (typeof ownFields)[T] extends infer F extends TProperties ? TObject<F> : never;
};
/** The compiler sees no single type in a spread of one of seven, so it is told. */
const recordBody = <T extends RecordType>(type: T) =>
  Type.Object({ ...common, ...ownFields[type] }) as unknown as Bodies[T];

/** Of domains and their records: stored, and served. */
const domainStates = ["New", "Active"] as const;

export const DnsRecord = Type.Object(
  {
    ID: id(),
    TypeRecord: word(recordTypes),
    IP: text(),
    HostName: text(),
    Priority: text(),
    Text: text(),
    MnemonicName: text(),
    ExtHostName: text(),
    State: word(domainStates),
    DateCreate: date(),
    Service: text(),
    Proto: text(),
    Weight: text(),
    TTL: integer(0, limits.maxTtl),
    Port: text(),
    Target: text(),
    CanonicalDescription: text({ description: "One zone file line." }),
    PunyName: text({ description: "Owner in ASCII: `@`, or absolute with dot." }),
    DomainID: id(),
    Labels,
  },
  { title: "Record" },
);
export type DnsRecord = Static<typeof DnsRecord>;

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

const Change = Type.Object({
  Op: word(changeOps),
  TypeRecord: optional(word(recordTypes)),
  ID: optionalId(),
  ...RecordFields.properties,
});
export type Change = Static<typeof Change>;

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

const ruleFaults = [
  "name_outside_domain",
  "token_restricted",
  "quota_exceeded",
  "cname_at_apex",
  "cname_conflict",
  "delegation_conflict",
  "record_exists",
] as const;

const domainParam = { id: "domain_not_found" } as const;
const recordParam = { id: "record_not_found" } as const;

/** Where owner and value are looked for; the first that is not empty is taken. */
const ownerFields = "Owner: `Name`, `HostName`, else the top.";
const wanted: Readonly<Record<RecordType, string>> = {
  A: `${ownerFields} Value: \`IP\`, of four decimal numbers.`,
  AAAA: `${ownerFields} Value: \`IP\`.`,
  CNAME: "Owner: `MnemonicName`. Target: `Name`, `HostName`.",
  MX: "Owner: `Name`, else the top, and host: `HostName`; with `ExtHostName`, which is the host then, owner: `HostName`, `Name`, else the top.",
  NS: "Owner: `HostName`, else the top. Server: `Name`, `ExtHostName`.",
  SRV: `${ownerFields} Required: \`Service\`, \`Proto\`, \`Target\`, \`Port\`.`,
  TXT: `${ownerFields} Value: \`Text\`, at most ${limits.textBytes} bytes; \`"a=1" "b=2"\` is two strings.`,
};

const createRecord = <T extends RecordType, P extends string>(type: T, path: P) =>
  ({
    method: "POST",
    path,
    access: "dns:write",
    summary: `Create ${/^[AMNS]/.test(type) ? "an" : "a"} ${type} record`,
    description: `${wanted[type]} Served by the name server when the answer leaves.`,
    body: recordBody(type),
    answer: DnsRecord,
    tagged: true,
    shows: "readRecord",
    wait: 2,
    faults: ruleFaults,
  }) as const;

const updateRecord = <T extends RecordType, P extends string>(type: T, path: P) =>
  ({
    method: "PUT",
    path,
    access: "dns:write",
    summary: `Update ${/^[AMNS]/.test(type) ? "an" : "a"} ${type} record`,
    description: "Absent fields, the owner included, stay. An edit that changes nothing leaves the serial alone.",
    params: recordParam,
    body: recordBody(type),
    answer: DnsRecord,
    tagged: true,
    shows: "readRecord",
    wait: 2,
    repeatable: true,
    faults: ["record_type_mismatch", "record_in_other_domain", ...ruleFaults],
  }) as const;

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
    tagged: true,
    shows: "readDomain",
    wait: 2,
    faults: [...newDomainFaults, "zone_file_invalid", "quota_exceeded", "token_restricted"],
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
    tagged: true,
  },
  updateDomain: {
    method: "PUT",
    path: "/dns/{id}",
    access: "dns:write",
    summary: "Edit the labels of a domain",
    params: domainParam,
    body: Type.Object({ Labels: optional(Labels) }),
    answer: Domain,
    tagged: true,
    shows: "readDomain",
    repeatable: true,
    faults: ["token_restricted"],
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
    faults: ["token_restricted"],
  },
  changeRecords: {
    method: "POST",
    path: "/dns/{id}/changeset",
    access: "dns:write",
    summary: "Change many records at once",
    description:
      "All or nothing, one transaction, one step of the serial. Rules are held against the outcome, so a CNAME may take the place of an A. With `dryRun` it is the preview.",
    params: domainParam,
    body: Type.Object({ Changes: list(Change, { minItems: 1, maxItems: limits.changes }) }),
    answer: ChangesetResult,
    wait: 2,
    faults: ["record_type_mismatch", "record_in_other_domain", ...ruleFaults],
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
    faults: ["zone_file_invalid", ...ruleFaults],
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
    faults: ruleFaults,
  },
  readRecord: {
    method: "GET",
    path: "/dns/record/{id}",
    access: "dns:read",
    summary: "Read one record by its own id",
    params: recordParam,
    answer: DnsRecord,
    tagged: true,
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
  createRecordA: createRecord("A", "/dns/recorda"),
  updateRecordA: updateRecord("A", "/dns/recorda/{id}"),
  createRecordAAAA: createRecord("AAAA", "/dns/recordaaaa"),
  updateRecordAAAA: updateRecord("AAAA", "/dns/recordaaaa/{id}"),
  createRecordCNAME: createRecord("CNAME", "/dns/recordcname"),
  updateRecordCNAME: updateRecord("CNAME", "/dns/recordcname/{id}"),
  createRecordMX: createRecord("MX", "/dns/recordmx"),
  updateRecordMX: updateRecord("MX", "/dns/recordmx/{id}"),
  createRecordNS: createRecord("NS", "/dns/recordns"),
  updateRecordNS: updateRecord("NS", "/dns/recordns/{id}"),
  createRecordSRV: createRecord("SRV", "/dns/recordsrv"),
  updateRecordSRV: updateRecord("SRV", "/dns/recordsrv/{id}"),
  createRecordTXT: createRecord("TXT", "/dns/recordtxt"),
  updateRecordTXT: updateRecord("TXT", "/dns/recordtxt/{id}"),
});
