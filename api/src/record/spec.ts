/**
 * What a record type is: plain data, from which the operations, the schemas, the zone file, the wire form, the name server and the
 * documentation derive. A new type is a file with one value of this shape and a line in `types.ts`; only a new kind of field needs code.
 */
import type { TProperties } from "typebox";
import { integer, optional, text } from "../common.ts";

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

/** Schemas of request fields, for fields of these kinds. */
export const schemas = {
  u8: optional(integer(0, 255, { "x-either": true })),
  u16: optional(integer(0, 65_535, { "x-either": true })),
  u32: optional(integer(0, 4_294_967_295, { "x-either": true })),
  address: optional(text({ maxLength: 64 })),
  /** A label without dots. */
  label: optional(text({ maxLength: 64 })),
  name: optional(text({ maxLength: 1024 })),
  text: optional(text({ "x-verbatim": true })),
  /** Hexadecimal and base64, blanks between. */
  bytes: optional(text({ maxLength: 4 * limits.textBytes })),
} as const;

/** Where a request may name the owner, in every type. */
export type OwnerField = "Name" | "HostName";

/** A field of the record data, in the order of the wire form. */
export interface DataField<Field extends string = string> {
  readonly kind: FieldKind;
  /** What the RFC calls it. */
  readonly name: string;
  /** Request fields that give it; the first that is not empty is taken. */
  readonly from: readonly [Field, ...Field[]];
  /** The request field to name when none is given; absent: the first of `from`. */
  readonly blamed?: Field;
  /** What is missing when none is given: `the target`. Absent: what the kind is. */
  readonly meaning?: string;
  /** Of a number that may be left out. */
  readonly default?: number;
  /** Of a name: the root is allowed; where `with` is given, only beside this number in the first field. */
  readonly root?: { readonly meaning: string; readonly with?: number };
  /** The field of a response that shows it. */
  readonly shown: Field;
  /** Of a name: the domain itself is shown as `@`. */
  readonly showsTop?: boolean;
}

/** A label in front of the owner that a request field gives, as `_sip` and `_tcp` of an SRV. */
export interface LabelField<Field extends string = string> {
  readonly field: Field;
  /** What is missing when it is not given: `such as tcp`. */
  readonly meaning: string;
  /** The label as a response shows it. */
  readonly show: (label: string) => string;
}

/** A request of an example, and the fields of its response that are not empty. */
interface RecordExample {
  readonly request: Readonly<Record<string, string | number>>;
  readonly response: Readonly<Record<string, string | number>>;
}

export interface RecordSpec<
  Type extends string = string,
  Fields extends TProperties = TProperties,
  Field extends string = string,
> {
  readonly name: Type;
  /** Number of the type (IANA, Resource Record (RR) TYPEs). */
  readonly code: number;
  /** For the documentation: where owner and value are looked for. */
  readonly description: string;
  /** Request fields beside those that all types have. */
  readonly fields: Fields;
  /** Request fields that give the owner: the first that is not empty, else the first is named in errors. Absent: `Name`, `HostName`. */
  readonly owner?: readonly (OwnerField | Field)[];
  /** Other owner fields, for requests in which this field has a value. */
  readonly ownerBeside?: {
    readonly field: Field;
    readonly owner: readonly OwnerField[];
  };
  /** What is missing when no owner is given. Absent: the owner is the top then. */
  readonly ownerMeaning?: string;
  /** The response field that shows the owner. Absent: `HostName`. */
  readonly ownerShown?: Field;
  /** `*` may be the first label of the owner. */
  readonly wildcard: boolean;
  /** It makes its owner another name of its target: it is alone there, and not an alias of itself. */
  readonly alias?: boolean;
  /** Where it may stand in a delegated part of the domain (docs/spec.md#record): nowhere if absent. */
  readonly delegated?: "at the cut" | "at and below the cut";
  readonly labels?: readonly LabelField<Field>[];
  readonly data: readonly DataField<OwnerField | Field>[];
  /** `CanonicalDescription` has no class, as existing clients expect. */
  readonly omitsClass?: boolean;
  /** A create and an update of record `id` of the domain `example.com`. */
  readonly examples: { readonly id: number; readonly create: RecordExample; readonly update: RecordExample };
}

/** Gives a record type its exact type. */
export const recordSpec = <const Type extends string, const Fields extends TProperties>(
  spec: RecordSpec<Type, Fields, NoInfer<Extract<keyof Fields, string>>>,
): RecordSpec<Type, Fields> => spec;

/** How descriptions say where the owner is looked for; the first that is not empty is taken. */
export const usualOwner = "Owner: `Name`, `HostName`, else the top.";
