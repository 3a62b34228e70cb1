/** Records in requests and responses, and the operations on them, derived from the table of record types. */
import type { Static, TObject, TProperties, TString } from "typebox";
import {
  type Described,
  date,
  fields,
  id,
  integer,
  Labels,
  object,
  optional,
  optionalId,
  shownAs,
  text,
  word,
} from "../common.ts";
import type { ErrorCode } from "../errors.ts";
import { type Form, forms } from "../form.ts";
import type { Operation } from "../operation.ts";
import { limits, schemas } from "./spec.ts";
import { exactSpecs, type RecordTable, type RecordType, recordSpecs, recordTypes } from "./types.ts";

const common = {
  DomainId: optionalId({
    description: "Id of the domain. Required to create a record; in an update it must be its domain.",
  }),
  Name: schemas.name("Owner or target of the record, by its type: a name of the domain, or `@` for the domain itself."),
  HostName: schemas.name("Owner or target of the record, by its type, if no other field contains it."),
  TTL: optional(
    integer(0, limits.maxTtl, {
      description: "Time to live in caches, in seconds. Default 3600; in an update unchanged.",
    }),
  ),
  Labels: optional(Labels),
};

type Intersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;
type Flat<Properties> = { [Name in keyof Properties]: Properties[Name] };
type OwnFields = Flat<Intersection<RecordTable[RecordType]["fields"]>>;
type Bodies = {
  [T in RecordType]: typeof common & RecordTable[T]["fields"] extends infer F extends TProperties ? TObject<F> : never;
};

/** Request fields of all types, without the common ones. Fields with the same name have the same schema. */
const ownFields = Object.assign({}, ...recordTypes.map((type) => recordSpecs[type].fields)) as OwnFields;

/** Request fields of all record types. The operation of a type accepts only the fields of that type. */
export const RecordFields = fields({ ...common, ...ownFields });
/** TypeScript type of this schema. */
export type RecordFields = Static<typeof RecordFields>;

/** Returns the type with its article, by the sound of its first letter: `an MX`, `a TXT`. */
const withArticle = (type: string): string => `${/^[AEFHILMNORSX]/.test(type) ? "an" : "a"} ${type}`;

/** Returns all combinations of one item of each list. */
const combine = <T>(lists: readonly (readonly T[])[]): T[][] =>
  lists.reduce<T[][]>((all, list) => all.flatMap((start) => list.map((item) => [...start, item])), [[]]);

/**
 * Returns the forms of a request that creates a record: one for each field that can contain a required value. A form with the second
 * field of a value does not have the first one.
 */
function createForms(type: RecordType): { needs: string[]; without: string[] }[] {
  const { owner = [], ownerMeaning, labels = [], data } = recordSpecs[type];
  const values = [
    ...(ownerMeaning === undefined ? [] : [owner]),
    ...labels.map(({ field }) => [field]),
    ...data.flatMap(({ from, default: usual }) => (usual === undefined ? [from] : [])),
  ];
  const choices = values.map((from) => from.map((field, index) => ({ field, before: from.slice(0, index) })));
  return combine(choices).map((chosen) => {
    const needs = chosen.map(({ field }) => field);
    return { needs, without: chosen.flatMap(({ before }) => before) };
  });
}

const formTitle = (prefix: string, count: number, index: number, needs: readonly string[]): string =>
  count === 1 || index === 0 ? prefix : `${prefix}By${needs.at(-1)}`;

/** Forms of a change that creates a record, for each type. */
export const changeForms: readonly Form[] = recordTypes.flatMap((type) =>
  createForms(type).map(({ needs, without }, index, all) => ({
    title: formTitle(`CreateRecord${type}Change`, all.length, index, needs),
    description: `Creates ${withArticle(type)} record.`,
    where: { Op: ["Create"], TypeRecord: [type] },
    needs,
    without,
  })),
);

/** Request fields of a type. The cast is needed because the compiler cannot derive the type of this spread. */
const bodyFields = <T extends RecordType>(type: T) =>
  ({ ...common, ...exactSpecs[type].fields }) as unknown as Bodies[T]["properties"] & Record<string, never>;

/** Schema of the request that creates a record of a type. */
const createBody = <T extends RecordType>(type: T) => {
  const all = createForms(type);
  const rules = all.map(
    ({ needs, without }, index): Form => ({
      title:
        all.length === 1 ? `CreateRecord${type}Request` : formTitle(`CreateRecord${type}`, all.length, index, needs),
      description: recordSpecs[type].description,
      needs: ["DomainId", ...needs],
      without,
    }),
  );
  return object(
    `CreateRecord${type}Request`,
    `A new ${type} record.`,
    bodyFields(type),
    forms(rules),
  ) as unknown as Bodies[T];
};

/** Schema of the request that updates a record of a type. */
const updateBody = <T extends RecordType>(type: T) =>
  object(
    `UpdateRecord${type}Request`,
    "What changes. Absent fields stay unchanged.",
    bodyFields(type),
    shownAs(DnsRecord),
  ) as unknown as Bodies[T];

/** States of domains and records: `New` is stored, `Active` is also served. */
export const domainStates = ["New", "Active"] as const;

const firstFields = {
  ID: id({ description: "Id of the record." }),
  TypeRecord: word(recordTypes, { description: "Type of the record." }),
  IP: text({ description: "A and AAAA: the address. Otherwise empty." }),
  HostName: text({ description: "Owner of the record: `@`, or an absolute name. CNAME: the target." }),
  Priority: text({ description: "MX and SRV: preference or priority, as text. Otherwise empty." }),
  Text: text({ description: "TXT: each string in quotes, followed by a blank. Otherwise empty." }),
  MnemonicName: text({ description: "CNAME: the owner. Otherwise empty." }),
  ExtHostName: text({ description: "MX: mail server. NS: name server. Otherwise empty." }),
  State: word(domainStates, { description: "`New`: stored. `Active`: served by the name server." }),
  DateCreate: date({ description: "When the record was created." }),
  Service: text({ description: "SRV: service, such as `_sip.`. Otherwise empty." }),
  Proto: text({ description: "SRV: protocol, such as `tcp`. Otherwise empty." }),
  Weight: text({ description: "SRV: weight, as text. Otherwise empty." }),
  TTL: integer(0, limits.maxTtl, { description: "Time to live in caches, in seconds." }),
  Port: text({ description: "SRV: port, as text. Otherwise empty." }),
  Target: text({ description: "SRV: host of the service. Otherwise empty." }),
  CanonicalDescription: text({ description: "One zone file line." }),
  PunyName: text({ description: "Owner in ASCII: `@`, or an absolute name with a final dot." }),
  DomainID: id({ description: "Id of the domain." }),
};

/** Response fields of types that were added later. They follow the first ones, because clients rely on the order. */
export const laterFields = Object.fromEntries(
  Object.entries(ownFields as Readonly<Record<string, Described>>)
    .filter(([name]) => !(name in firstFields))
    .map(([name, { description }]) => [name, text({ description })]),
) as { [Name in Exclude<keyof OwnFields, keyof typeof firstFields>]: TString & Described };

/** A record in a response: all fields of all types; fields of other types are empty. */
export const DnsRecord = object("Record", "A record of any type. Fields of other types are empty.", {
  ...firstFields,
  ...laterFields,
  Labels,
});
/** TypeScript type of this schema. */
export type DnsRecord = Static<typeof DnsRecord>;

/** Errors of the rules for records of a domain. */
export const recordRuleErrors = [
  "name_outside_domain",
  "token_restricted",
  "quota_exceeded",
  "cname_at_apex",
  "cname_conflict",
  "delegation_conflict",
  "record_exists",
] as const satisfies readonly ErrorCode[];

/** Path parameter of a record. */
export const recordParam = { id: "record_not_found" } as const;

type PathOf<T extends RecordType> = `/dns/record${Lowercase<T>}`;
const pathOf = <T extends RecordType>(type: T) => `/dns/record${type.toLowerCase()}` as PathOf<T>;

const createRecord = <T extends RecordType>(type: T) =>
  ({
    method: "POST",
    path: pathOf(type),
    access: "dns:write",
    summary: `Create ${withArticle(type)} record`,
    description: `${recordSpecs[type].description} The name server serves the record before the API responds.`,
    body: createBody(type),
    answer: DnsRecord,
    etag: true,
    resultOperation: "readRecord",
    wait: 2,
    errors: recordRuleErrors,
  }) as const satisfies Operation;

const updateRecord = <T extends RecordType>(type: T) =>
  ({
    method: "PUT",
    path: `${pathOf(type)}/{id}` as const,
    access: "dns:write",
    summary: `Update ${withArticle(type)} record`,
    description: "Absent fields stay unchanged, including the owner. An update without a change keeps the serial.",
    params: recordParam,
    body: updateBody(type),
    answer: DnsRecord,
    etag: true,
    resultOperation: "readRecord",
    wait: 2,
    repeatable: true,
    errors: ["record_type_mismatch", "record_in_other_domain", ...recordRuleErrors],
  }) as const satisfies Operation;

type RecordOperations = {
  readonly [T in RecordType as `createRecord${T}`]: ReturnType<typeof createRecord<T>>;
} & {
  readonly [T in RecordType as `updateRecord${T}`]: ReturnType<typeof updateRecord<T>>;
};

/** The operations `createRecordA`, `updateRecordA` and so on, for every type. */
export const recordOperations = Object.fromEntries(
  recordTypes.flatMap((type) => [
    [`createRecord${type}`, createRecord(type)],
    [`updateRecord${type}`, updateRecord(type)],
  ]),
) as Flat<RecordOperations>;
