/**
 * Domains and their records: the operations on domains, and the operations on records, which `record/` derives from the table of record types.
 */
import type { Static } from "typebox";
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
  object,
  optional,
  optionalId,
  shownAs,
  text,
  word,
  wordsFilter,
} from "./common.ts";
import { forms } from "./form.ts";
import { operations } from "./operation.ts";
import {
  changeForms,
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

const ImportReport = object("ImportReport", "Result of the import of records. `null`: nothing was imported.", {
  State: word(["Completed", "Failed"], { description: "`Failed`: no record was imported." }),
  Records: integer(0, 1_000_000, { description: "Number of imported records." }),
  Skipped: list(text({ description: "A line and its reason." }), { description: "What was not imported." }),
  Detail: text({ description: "Why the import failed; otherwise empty." }),
});
/** TypeScript type of this schema. */
export type ImportReport = Static<typeof ImportReport>;

const serial = <const D extends string>(description: D) => integer(0, 4_294_967_295, { description });

/** A domain with its records. */
export const Domain = object("Domain", "A domain with its records.", {
  ID: id({ description: "Id of the domain." }),
  Name: text({ description: "Name of the domain, in Unicode." }),
  NamePunyCode: text({ description: "Name of the domain, in ASCII." }),
  TechName: text({ description: "`NamePunyCode` with `_` for each dot." }),
  State: word(domainStates, { description: "`New`: stored. `Active`: served by the name server." }),
  DateCreate: date({ description: "When the domain was created." }),
  IsDelegate: boolean({
    description:
      "`true`: the parent zone delegates the domain to at least one of `NameServers`. See also `Delegation`.",
  }),
  LinkedRecords: list(DnsRecord, { description: "Records of the domain, by id." }),
  NameServers: list(text({ description: "Host name of a name server." }), {
    description: "Name servers to which the parent zone should delegate the domain.",
  }),
  Serial: serial("Serial of the SOA record. It grows with each change of the records."),
  Import: nullable(ImportReport),
  Delegation: word(["Delegated", "Partial", "NotDelegated", "Unknown"], {
    description:
      "Name servers in the parent zone. `Delegated`: `NameServers` only. `Partial`: some of them, or also others. `NotDelegated`: none of them. `Unknown`: not checked.",
  }),
  Labels,
});
/** TypeScript type of this schema. */
export type Domain = Static<typeof Domain>;

const changeOps = ["Create", "Update", "Delete"] as const;
const op = word(changeOps, { description: "What happens to the record." });

const ChangeInput = object(
  "ChangeRequest",
  "One change of a changeset. The other fields are those of the operation that creates or updates such a record.",
  {
    Op: op,
    TypeRecord: optional(
      word(recordTypes, { description: "Type of the record. Default for an update: the stored type." }),
    ),
    ID: optionalId({ description: "Id of the record." }),
    ...RecordFields.properties,
  },
  forms([
    ...changeForms,
    {
      title: "UpdateRecordChange",
      description: "Updates a record. Absent fields stay unchanged.",
      where: { Op: ["Update"] },
      needs: ["ID"],
    },
    { title: "DeleteRecordChange", description: "Deletes a record.", where: { Op: ["Delete"] }, needs: ["ID"] },
  ]),
);
/** TypeScript type of this schema. */
export type ChangeInput = Static<typeof ChangeInput>;

const AppliedChange = object("AppliedChange", "One applied change, with the record before and after it.", {
  Op: op,
  Before: nullable(DnsRecord),
  After: nullable(DnsRecord),
});
/** TypeScript type of this schema. */
export type AppliedChange = Static<typeof AppliedChange>;

/** What a changeset did to the records. */
export const ChangesetResult = object("ChangesetResult", "Result of a changeset.", {
  Serial: serial("Serial of the domain after the change."),
  Created: integer(0, limits.changes, { description: "Number of created records." }),
  Updated: integer(0, limits.changes, { description: "Number of updated records." }),
  Deleted: integer(0, limits.changes, { description: "Number of deleted records." }),
  Records: list(AppliedChange, { description: "The changes, in the order of the request." }),
});
/** TypeScript type of this schema. */
export type ChangesetResult = Static<typeof ChangesetResult>;

const Version = object("Version", "One version of a domain: the changes of a serial.", {
  Serial: serial("Serial of the version."),
  Date: date({ description: "When the version was created." }),
  TokenID: nullable(id({ description: "Token of the request. `null`: the service made the change." })),
  RequestID: nullable(text({ description: "`X-Request-Id` of the request. `null`: the service made the change." })),
  Changes: list(AppliedChange, { description: "The changes since the previous version." }),
});
/** TypeScript type of this schema. */
export type Version = Static<typeof Version>;

const count = (description: string) => integer(0, Number.MAX_SAFE_INTEGER, { description });

/** Query counters of a domain. */
export const DomainMetrics = object("DomainMetrics", "Query counters of a domain. They start at 0 with the service.", {
  Serial: nullable(serial("Serial that the name server serves. `null`: it does not serve the domain.")),
  Queries: count("Queries for the domain."),
  Answers: list(
    object("AnswerCount", "Number of responses with one response code.", {
      Code: text({ description: "Response code, such as `NOERROR` or `NXDOMAIN`." }),
      Count: count("Responses with this code."),
    }),
    { description: "Responses by code; only codes that occurred." },
  ),
});
/** TypeScript type of this schema. */
export type DomainMetrics = Static<typeof DomainMetrics>;

const domainParam = { id: "domain_not_found" } as const;

/** Operations on domains and records. */
export const dnsOperations = operations({
  listDomains: {
    method: "GET",
    path: "/dns",
    access: "dns:read",
    summary: "List domains with their records",
    description: "Returns the domains of the project, by id.",
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
    body: object(
      "CreateDomainRequest",
      "A new domain.",
      {
        Name: text({
          maxLength: 1024,
          "x-also": ["DomainName"],
          description: "Name of the domain, in Unicode or ASCII, without a final dot.",
        }),
        Ip: optional(
          text({ description: "IPv4 or IPv6 address: also creates an A or AAAA record at the top of the domain." }),
        ),
        Migrate: optional(
          boolean({
            description:
              "`true`: import the existing records from the current name servers of the domain. Default `false`.",
          }),
        ),
        ZoneFile: optional(text({ description: "A master file (RFC 1035 section 5) to import.", "x-verbatim": true })),
        Labels: optional(Labels),
      },
      forms([
        {
          title: "CreateDomain",
          description: "An empty domain, or one with the records of a zone file.",
          where: { Migrate: [false, null] },
        },
        {
          title: "MigrateDomain",
          description: "A domain with the records of its current name servers.",
          where: { Migrate: [true] },
          without: ["ZoneFile"],
        },
      ]),
    ),
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
    description: "Records have operations of their own.",
    params: domainParam,
    body: object(
      "UpdateDomainRequest",
      "What changes. Absent fields stay unchanged.",
      { Labels: optional(Labels) },
      shownAs(Domain),
    ),
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
    body: object("ChangeRecordsRequest", "The changes, which are applied together.", {
      Changes: list(ChangeInput, {
        minItems: 1,
        maxItems: limits.changes,
        description: "Changes of different records.",
      }),
    }),
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
    body: object("ImportZoneRequest", "The records to import.", {
      ZoneFile: text({ "x-verbatim": true, minLength: 1, description: "A master file (RFC 1035 section 5)." }),
      Mode: optional(
        word(["Merge", "Replace"], {
          description:
            "`Merge` (default): add missing records. `Replace`: also delete the records that the file does not contain.",
        }),
      ),
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
    description: "At least 1,000 versions or 90 days are stored.",
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
    body: object("RestoreVersionRequest", "The version to restore.", {
      Serial: serial("Serial of the version, from the history of the domain."),
    }),
    answer: ChangesetResult,
    wait: 2,
    errors: recordRuleErrors,
  },
  readDomainMetrics: {
    method: "GET",
    path: "/dns/{id}/metrics",
    access: "dns:read",
    observes: true,
    summary: "Get the query counters of a domain",
    description:
      "Counts since the start of the service, refreshed every 5 s. A rate is the difference of two reads. `/metrics` has the same for all domains.",
    params: domainParam,
    answer: DomainMetrics,
  },
  readRecord: {
    method: "GET",
    path: "/dns/record/{id}",
    access: "dns:read",
    summary: "Read one record by its own id",
    description: "Returns a record of any type.",
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
