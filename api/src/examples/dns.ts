/** Domain 3, `example.com`, and its records. */
import type { AppliedChange, DnsRecord, Domain, RecordFields, RecordType } from "../dns.ts";
import { laterFields } from "../record/record.ts";
import { recordSpecs, recordTypes } from "../record/types.ts";
import { date, type Examples } from "./example.ts";

const blankFields = Object.fromEntries(Object.keys(laterFields).map((name) => [name, ""])) as {
  [Name in keyof typeof laterFields]: string;
};

/** The response to the create or update of a type's example. */
export function recordExample(type: RecordType, step: "create" | "update"): DnsRecord {
  const { id, [step]: example } = recordSpecs[type].examples;
  return {
    ID: id,
    TypeRecord: type,
    IP: "",
    HostName: "@",
    Priority: "",
    Text: "",
    MnemonicName: "",
    ExtHostName: "",
    State: "Active",
    DateCreate: date,
    Service: "",
    Proto: "",
    Weight: "",
    TTL: 3600,
    Port: "",
    Target: "",
    CanonicalDescription: "",
    PunyName: "@",
    DomainID: 3,
    ...blankFields,
    Labels: {},
    ...example.response,
  };
}

const a = recordExample("A", "create");
const movedA = recordExample("A", "update");
const txt = recordExample("TXT", "create");

const domain = (records: DnsRecord[], serial: number, labels: Record<string, string> = {}): Domain => ({
  ID: 3,
  Name: "example.com",
  NamePunyCode: "example.com",
  TechName: "example_com",
  State: "Active",
  DateCreate: date,
  IsDelegate: false,
  LinkedRecords: records,
  NameServers: ["ns1.brume.internal"],
  Serial: serial,
  Import: null,
  Delegation: "Unknown",
  Labels: labels,
});

const moved: AppliedChange = { Op: "Update", Before: a, After: movedA };
const removed: AppliedChange = { Op: "Delete", Before: txt, After: null };

/** A create and an update of every type. */
const recordExamples: Examples = Object.fromEntries(
  recordTypes.flatMap((type) => {
    const { id, create, update } = recordSpecs[type].examples;
    const request = (fields: object) => ({ DomainId: 3, ...fields }) as RecordFields;
    return [
      [`createRecord${type}`, { request: request(create.request), answer: recordExample(type, "create") }],
      [`updateRecord${type}`, { path: [id], request: request(update.request), answer: recordExample(type, "update") }],
    ];
  }),
);

/** Examples of the operations on domains and records. */
export const dnsExamples: Examples = {
  listDomains: { answer: [domain([txt], 1_795_166_100)] },
  createDomain: { request: { Name: "example.com" }, answer: domain([], 1_795_166_100) },
  readDomain: { path: [3], answer: domain([a, txt], 1_795_166_411) },
  updateDomain: {
    path: [3],
    request: { Labels: { team: "web" } },
    answer: domain([], 1_795_166_100, { team: "web" }),
  },
  deleteDomain: { path: [3] },
  changeRecords: {
    path: [3],
    request: {
      Changes: [
        { Op: "Update", ID: 8, IP: "10.63.0.3", TTL: 300 },
        { Op: "Delete", ID: 14 },
      ],
    },
    answer: { Serial: 1_795_166_412, Created: 0, Updated: 1, Deleted: 1, Records: [moved, removed] },
  },
  importZone: {
    path: [3],
    request: { ZoneFile: "www 300 IN A 10.63.0.3\n", Mode: "Replace" },
    answer: { Serial: 1_795_166_412, Created: 0, Updated: 1, Deleted: 1, Records: [moved, removed] },
  },
  listVersions: {
    path: [3],
    answer: [{ Serial: 1_795_166_412, Date: date, TokenID: 2, RequestID: "01JD4QK7Z8S3", Changes: [moved, removed] }],
  },
  restoreVersion: {
    path: [3],
    request: { Serial: 1_795_166_411 },
    answer: {
      Serial: 1_795_166_413,
      Created: 0,
      Updated: 1,
      Deleted: 0,
      Records: [{ Op: "Update", Before: movedA, After: a }],
    },
  },
  readDomainMetrics: {
    path: [3],
    answer: {
      Serial: 1_795_166_412,
      Queries: 1207,
      Answers: [
        { Code: "NOERROR", Count: 1180 },
        { Code: "NXDOMAIN", Count: 27 },
      ],
    },
  },
  readRecord: { path: [8], answer: a },
  deleteRecord: { path: [3, 14] },
  ...recordExamples,
};
