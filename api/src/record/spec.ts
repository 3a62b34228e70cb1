/**
 * The description of a record type: plain data from which operations, schemas, zone file, wire form, name server and documentation are
 * derived. A new type is a file with one `RecordSpec` and a line in `types.ts`. Only a new kind of field needs code.
 */
import type { TProperties } from "typebox";
import { integer, optional, text } from "../common.ts";

/** Defaults and limits (docs/spec.md#defaults-and-limits). */
export const limits = {
  ttl: 3600,
  maxTtl: 2_147_483_647,
  textBytes: 4096,
  /** Bytes of all records of one type at one name. With 1,535 bytes for the rest they fit into one message (RFC 1035 section 4.2.2). */
  setBytes: 64_000,
  changes: 10_000,
  importSeconds: 5,
} as const;

/**
 * How a field of record data is written in a message, in a zone file and in the database:
 *
 * | kind            | wire form                                      | presentation form                            |
 * |-----------------|------------------------------------------------|----------------------------------------------|
 * | u8, u16, u32    | an unsigned number                             | decimal                                      |
 * | ipv4, ipv6      | 4 or 16 bytes                                  | an address                                   |
 * | name            | a domain name, never compressed by the service | a host name                                  |
 * | string          | one string of at most 255 bytes                | a quoted string                              |
 * | strings         | strings up to the end                          | quoted strings                               |
 * | text            | bytes up to the end                            | a quoted string                              |
 * | hex, base64     | bytes up to the end                            | hexadecimal or base64, in one word or several |
 *
 * `strings`, `text`, `hex` and `base64` can only be the last field.
 */
export type FieldKind =
  | "u8"
  | "u16"
  | "u32"
  | "ipv4"
  | "ipv6"
  | "name"
  | "string"
  | "strings"
  | "text"
  | "hex"
  | "base64";

const number =
  (maximum: number) =>
  <const D extends string>(description: D) =>
    optional(integer(0, maximum, { "x-either": true, description }));
const shortText =
  (maxLength: number) =>
  <const D extends string>(description: D) =>
    optional(text({ maxLength, description }));

/** Schemas of request fields, by kind of value. Each takes the description of the field. */
export const schemas = {
  u8: number(255),
  u16: number(65_535),
  u32: number(4_294_967_295),
  address: shortText(64),
  /** A label without dots. */
  label: shortText(64),
  name: shortText(1024),
  text: <const D extends string>(description: D) => optional(text({ "x-verbatim": true, description })),
  /** Hexadecimal or base64, with blanks between. */
  bytes: shortText(4 * limits.textBytes),
} as const;

/** Request fields of every type that can contain the owner. */
export type OwnerField = "Name" | "HostName";

/** A field of the record data. Fields are listed in the order of the wire form. */
export interface DataField<Field extends string = string> {
  readonly kind: FieldKind;
  /** Name of the field in the RFC. */
  readonly name: string;
  /** Request fields that can contain the value; the first that is not empty is used. */
  readonly from: readonly [Field, ...Field[]];
  /** Request field of the error if the value is missing; absent: the first of `from`. */
  readonly errorField?: Field;
  /** The value in errors, such as `the target`. Absent: a phrase for the kind. */
  readonly meaning?: string;
  /** Default of an optional number. */
  readonly default?: number;
  /** For a name: the root (`.`) is allowed and has this meaning; with `with`, only if the first field has this number. */
  readonly root?: { readonly meaning: string; readonly with?: number };
  /** Response field with the value. */
  readonly shown: Field;
  /** For a name: the response shows the domain itself as `@`. */
  readonly showsTop?: boolean;
}

/** A label in front of the owner from a request field, such as `_sip` and `_tcp` of an SRV. */
export interface LabelField<Field extends string = string> {
  readonly field: Field;
  /** Example in the error if it is missing: `such as tcp`. */
  readonly meaning: string;
  /** Returns the label in the form of responses. */
  readonly show: (label: string) => string;
}

/** Request of an example, and the non-empty fields of its response. */
interface RecordExample {
  readonly request: Readonly<Record<string, string | number>>;
  readonly response: Readonly<Record<string, string | number>>;
}

/** Description of a record type. */
export interface RecordSpec<
  Type extends string = string,
  Fields extends TProperties = TProperties,
  Field extends string = string,
> {
  readonly name: Type;
  /** Number of the type (IANA, Resource Record (RR) TYPEs). */
  readonly code: number;
  /** Sentences for the documentation: which request fields contain owner and value. */
  readonly description: string;
  /** Request fields besides those of all types. */
  readonly fields: Fields;
  /** Request fields that can contain the owner; the first that is not empty is used. Errors name the first. Absent: `Name`, `HostName`. */
  readonly owner?: readonly (OwnerField | Field)[];
  /** Other owner fields, for requests in which this field has a value. */
  readonly ownerBeside?: {
    readonly field: Field;
    readonly owner: readonly OwnerField[];
  };
  /** The owner in errors, if it is required. Absent: without an owner the record is at the top of the domain. */
  readonly ownerMeaning?: string;
  /** Response field with the owner. Absent: `HostName`. */
  readonly ownerShown?: Field;
  /** `*` may be the first label of the owner. */
  readonly wildcard: boolean;
  /** The owner is an alias of the target (CNAME): no other records at the owner, and it is not its own target. */
  readonly alias?: boolean;
  /** Where it is allowed in a delegated part of the domain (docs/spec.md#record). Absent: nowhere. */
  readonly delegated?: "at the cut" | "at and below the cut";
  readonly labels?: readonly LabelField<Field>[];
  readonly data: readonly DataField<OwnerField | Field>[];
  /** `CanonicalDescription` has no class, as existing clients expect. */
  readonly omitsClass?: boolean;
  /** Creation and update of record `id` of the domain `example.com`. */
  readonly examples: { readonly id: number; readonly create: RecordExample; readonly update: RecordExample };
}

/** Returns a record spec with its exact type. */
export const recordSpec = <const Type extends string, const Fields extends TProperties>(
  spec: RecordSpec<Type, Fields, NoInfer<Extract<keyof Fields, string>>>,
): RecordSpec<Type, Fields> => spec;

/** The sentence of the default owner, for descriptions. */
export const usualOwner = "The owner is `Name`, else `HostName`, else the domain itself (`@`).";
