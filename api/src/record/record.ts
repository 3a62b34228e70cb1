/** Records in requests and responses, and the operations on them, derived from the table of record types. */
import { type Static, type TObject, type TProperties, type TString, Type } from "typebox";
import { date, id, integer, Labels, optional, optionalId, text, word } from "../common.ts";
import type { ErrorCode } from "../errors.ts";
import type { Operation } from "../operation.ts";
import { limits, schemas } from "./spec.ts";
import { exactSpecs, type RecordTable, type RecordType, recordSpecs, recordTypes } from "./types.ts";

const common = {
  DomainId: optionalId({ description: "The domain; required to make a record." }),
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

/** Fields of all types beside the common ones; those of one name are alike. */
const ownFields = Object.assign({}, ...recordTypes.map((type) => recordSpecs[type].fields)) as OwnFields;

export const RecordFields = Type.Object({ ...common, ...ownFields });
/** Every field of any type, as read; a type's own operation reads only its own. */
export type RecordFields = Static<typeof RecordFields>;

/** The compiler sees no single type in a spread of one of many, so it is told. */
const recordBody = <T extends RecordType>(type: T) =>
  Type.Object({ ...common, ...exactSpecs[type].fields }) as unknown as Bodies[T];

/** Of domains and their records: stored, and served. */
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
  PunyName: text({ description: "Owner in ASCII: `@`, or absolute with dot." }),
  DomainID: id(),
};

/** Fields of types that were added later: they stand behind the first ones, because clients rely on the order. */
export const laterFields = Object.fromEntries(
  Object.keys(ownFields)
    .filter((name) => !(name in firstFields))
    .map((name) => [name, text()]),
) as { [Name in Exclude<keyof OwnFields, keyof typeof firstFields>]: TString };

export const DnsRecord = Type.Object({ ...firstFields, ...laterFields, Labels }, { title: "Record" });
export type DnsRecord = Static<typeof DnsRecord>;

export const ruleFaults = [
  "name_outside_domain",
  "token_restricted",
  "quota_exceeded",
  "cname_at_apex",
  "cname_conflict",
  "delegation_conflict",
  "record_exists",
] as const satisfies readonly ErrorCode[];

export const recordParam = { id: "record_not_found" } as const;

/** By the sound of the first letter, as types are spelled out: `an MX`, `a TXT`. */
const withArticle = (type: string): string => `${/^[AEFHILMNORSX]/.test(type) ? "an" : "a"} ${type}`;

type PathOf<T extends RecordType> = `/dns/record${Lowercase<T>}`;
const pathOf = <T extends RecordType>(type: T) => `/dns/record${type.toLowerCase()}` as PathOf<T>;

const createRecord = <T extends RecordType>(type: T) =>
  ({
    method: "POST",
    path: pathOf(type),
    access: "dns:write",
    summary: `Create ${withArticle(type)} record`,
    description: `${recordSpecs[type].description} Served by the name server when the answer leaves.`,
    body: recordBody(type),
    answer: DnsRecord,
    etag: true,
    resultOperation: "readRecord",
    wait: 2,
    errors: ruleFaults,
  }) as const satisfies Operation;

const updateRecord = <T extends RecordType>(type: T) =>
  ({
    method: "PUT",
    path: `${pathOf(type)}/{id}` as const,
    access: "dns:write",
    summary: `Update ${withArticle(type)} record`,
    description: "Absent fields, the owner included, stay. An edit that changes nothing leaves the serial alone.",
    params: recordParam,
    body: recordBody(type),
    answer: DnsRecord,
    etag: true,
    resultOperation: "readRecord",
    wait: 2,
    repeatable: true,
    errors: ["record_type_mismatch", "record_in_other_domain", ...ruleFaults],
  }) as const satisfies Operation;

type RecordOperations = {
  readonly [T in RecordType as `createRecord${T}`]: ReturnType<typeof createRecord<T>>;
} & {
  readonly [T in RecordType as `updateRecord${T}`]: ReturnType<typeof updateRecord<T>>;
};

/** `createRecordA`, `updateRecordA` and so on, for every type. */
export const recordOperations = Object.fromEntries(
  recordTypes.flatMap((type) => [
    [`createRecord${type}`, createRecord(type)],
    [`updateRecord${type}`, updateRecord(type)],
  ]),
) as Flat<RecordOperations>;
