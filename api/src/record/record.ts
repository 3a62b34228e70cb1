/** Records in requests and responses, and the operations on them, derived from the table of record types. */
import { type Static, type TObject, type TProperties, type TString, Type } from "typebox";
import { date, id, integer, Labels, optional, optionalId, text, word } from "../common.ts";
import type { ErrorCode } from "../errors.ts";
import type { Operation } from "../operation.ts";
import { limits, schemas } from "./spec.ts";
import { exactSpecs, type RecordTable, type RecordType, recordSpecs, recordTypes } from "./types.ts";

const common = {
  DomainId: optionalId({ description: "Id of the domain. Required to create a record." }),
  Name: schemas.name,
  HostName: schemas.name,
  TTL: optional(integer(0, limits.maxTtl, { description: "Seconds. Default 3600." })),
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
export const RecordFields = Type.Object({ ...common, ...ownFields });
/** Every field of any type, as read; a type's own operation reads only its own. */
export type RecordFields = Static<typeof RecordFields>;

/** Schema of the body of a type. The cast is needed because the compiler cannot derive the type of this spread. */
const recordBody = <T extends RecordType>(type: T) =>
  Type.Object({ ...common, ...exactSpecs[type].fields }) as unknown as Bodies[T];

/** States of domains and records: `New` is stored, `Active` is also served. */
export const domainStates = ["New", "Active"] as const;

const firstFields = {
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
  PunyName: text({ description: "Owner in ASCII: `@`, or an absolute name with a final dot." }),
  DomainID: id(),
};

/** Response fields of types that were added later. They follow the first ones, because clients rely on the order. */
export const laterFields = Object.fromEntries(
  Object.keys(ownFields)
    .filter((name) => !(name in firstFields))
    .map((name) => [name, text()]),
) as { [Name in Exclude<keyof OwnFields, keyof typeof firstFields>]: TString };

/** A record in a response: all fields of all types; fields of other types are empty. */
export const DnsRecord = Type.Object({ ...firstFields, ...laterFields, Labels }, { title: "Record" });
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

/** Returns the type with its article, by the sound of its first letter: `an MX`, `a TXT`. */
const withArticle = (type: string): string => `${/^[AEFHILMNORSX]/.test(type) ? "an" : "a"} ${type}`;

type PathOf<T extends RecordType> = `/dns/record${Lowercase<T>}`;
const pathOf = <T extends RecordType>(type: T) => `/dns/record${type.toLowerCase()}` as PathOf<T>;

const createRecord = <T extends RecordType>(type: T) =>
  ({
    method: "POST",
    path: pathOf(type),
    access: "dns:write",
    summary: `Create ${withArticle(type)} record`,
    description: `${recordSpecs[type].description} The name server serves the record before the API responds.`,
    body: recordBody(type),
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
    body: recordBody(type),
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
