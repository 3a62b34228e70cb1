/**
 * Stored form of a record, its parser for request fields, and its API form (docs/spec.md#record). A record has only four plain values,
 * because a domain may have a million records. `value` is the data in canonical text, so two records are equal if type, owner and value are
 * equal (`recordKey`), and duplicates are found without parsing.
 *
 * | type        | value                                                                          |
 * |-------------|--------------------------------------------------------------------------------|
 * | A, AAAA     | the address: four decimals, or RFC 5952                                        |
 * | CNAME, NS   | the target: absolute, ASCII, original letter case, without final dot          |
 * | MX          | `10 mail.example.com`, or `0 .`                                                |
 * | SRV         | `_xmpp-client._tcp 20 0 5222 chat.example.com`; the target may be `.`         |
 * | TXT         | the joined text, or its strings if they are not split by the default (`text.ts`) |
 * | others      | the fields of the type's spec in the stored form of their kinds (`kind.ts`), separated by blanks |
 */
import { formatDate, type Labels } from "@brume/api/common.ts";
import type { FieldError } from "@brume/api/errors.ts";
import { type DnsRecord, laterFields, type RecordFields } from "@brume/api/record/record.ts";
import { type DataField, limits, type RecordSpec } from "@brume/api/record/spec.ts";
import { type RecordType, recordSpecs } from "@brume/api/record/types.ts";
import { ApiError, fieldError, invalidFields } from "../../base/error.ts";
import { quote } from "../../base/quote.ts";
import { blankValue, kindsOf, partsOf, valueKey } from "./data.ts";
import { kinds } from "./kind.ts";
import {
  absolute,
  type DomainName,
  maxName,
  type NameError,
  printName,
  readOwner,
  refuseName,
  showOwner,
  wireLength,
} from "./name.ts";

/** A record as the table stores it. */
export interface StoredRecord {
  readonly type: RecordType;
  /** ASCII, original letter case, relative to the domain; `@` for the top. For an SRV without `_service._proto`. */
  readonly owner: string;
  /** Seconds, 0 to 2147483647. */
  readonly ttl: number;
  /** See the table above. */
  readonly value: string;
}

/** Returns a key that is equal for equal records of a domain. Names are compared without letter case. */
export const recordKey = ({
  type,
  owner,
  value,
}: Pick<StoredRecord, "owner" | "value"> & { readonly type: string }): string =>
  `${type} ${owner.toLowerCase()} ${valueKey(type as RecordType, value)}`;

/** A stored record with the other columns of its row. */
export interface RecordRow extends StoredRecord {
  readonly id: number;
  readonly domainId: number;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** The name server serves it. */
  readonly active: boolean;
  readonly labels: Labels;
}

/** Returns a field of a request by its name. */
const given = (fields: RecordFields, name: string): string | number | undefined =>
  (fields as Readonly<Record<string, string | number | undefined>>)[name];

/** Returns the name of the request field that contains the owner, or that would contain it. */
export function ownerField(type: RecordType, fields: RecordFields): string {
  const names = ownerFields(recordSpecs[type], fields);
  return names.find((name) => given(fields, name)) ?? (names[0] as string);
}

const defaultOwner = ["Name", "HostName"] as const;

function ownerFields({ owner = defaultOwner, ownerBeside }: RecordSpec, fields: RecordFields): readonly string[] {
  return ownerBeside !== undefined && given(fields, ownerBeside.field) ? ownerBeside.owner : owner;
}

/**
 * Parses the fields of a create request, or with `previous` of an update, in which absent fields keep their values.
 * Throws `validation_failed` with all invalid fields, else `name_outside_domain`.
 * Pointers of errors begin with `at`: `/Changes/17` for an element of a changeset.
 */
export function readRecord(
  type: RecordType,
  fields: RecordFields,
  domain: Pick<DomainName, "ascii">,
  previous?: StoredRecord,
  at = "",
): StoredRecord {
  const spec = recordSpecs[type];
  const errors: FieldError[] = [];
  const reading: Reading = {
    fields,
    domain: domain.ascii,
    old: previous && partsOf(previous),
    refuse(field, { code, reason }) {
      errors.push(fieldError(`${at}/${field}`, code, `${field} ${reason}.`));
    },
  };
  const owner = readOwnerOf(type, reading, previous);
  const labels = readLabels(spec, reading);
  const value = [...labels, ...readData(spec, reading, labels.length)].join(" ");
  if (spec.alias && value.toLowerCase() === absolute(owner, domain.ascii).toLowerCase()) {
    const names = spec.data.flatMap(({ from }) => from);
    const field = [...names, ...ownerFields(spec, fields)].find((name) => given(fields, name)) ?? names[0] ?? "";
    reading.refuse(field, refuseName("format_invalid", `must not make an alias of itself, as ${quote(value)} is`));
  }
  if (labels[0] !== undefined) checkServedName(spec, reading, owner, labels[0]);
  if (errors.length > 0) throw invalidRecord(errors);
  const read = { type, owner, ttl: fields.TTL ?? previous?.ttl ?? limits.ttl, value };
  // Clients write names in any letter case: an update with equal names keeps the stored spelling.
  return previous !== undefined && recordKey(previous) === recordKey(read) ? { ...previous, ttl: read.ttl } : read;
}

/** A placeholder domain that contains no name. */
const noDomain = { ascii: "~" };

/**
 * Returns the errors of the fields that can be found without the domain and without the record that an update changes.
 * `at` as in `readRecord`.
 */
export function checkFields(type: RecordType, fields: RecordFields, isEdit: boolean, at = ""): readonly FieldError[] {
  try {
    const previous = isEdit ? { type, owner: "@", ttl: 1, value: blankValue(type) } : undefined;
    readRecord(type, fields, noDomain, previous, at);
    return [];
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.errors.filter(({ code }) => code !== "name_outside_domain");
  }
}

/** Returns the error of these fields. `name_outside_domain` is reported only if all fields are valid. */
function invalidRecord(errors: readonly FieldError[]): ApiError {
  const fields = errors.filter(({ code }) => code !== "name_outside_domain");
  return fields.length > 0
    ? invalidFields(fields)
    : new ApiError("name_outside_domain", errors[0]?.detail ?? "", errors);
}

/** Input and errors of one `readRecord`. */
interface Reading {
  readonly fields: RecordFields;
  readonly domain: string;
  /** Parts of the value that an update changes. */
  readonly old: readonly string[] | undefined;
  /** Adds an error of the field. */
  refuse(field: string, refusal: NameError): void;
}

/** Placeholder for an invalid value. It is never used, since the errors are thrown. */
const invalid = "";

function readOwnerOf(type: RecordType, reading: Reading, previous: StoredRecord | undefined): string {
  const { ownerMeaning, wildcard } = recordSpecs[type];
  const field = ownerField(type, reading.fields);
  const text = given(reading.fields, field);
  if (!text) {
    if (previous) return previous.owner;
    if (ownerMeaning !== undefined) reading.refuse(field, required(ownerMeaning));
    return "@";
  }
  const owner = readOwner(String(text), reading.domain, wildcard);
  if (typeof owner === "string") return owner;
  reading.refuse(field, owner);
  return invalid;
}

const required = (meaning: string): NameError => refuseName("field_required", `is required: ${meaning}`);

/** Returns the labels in front of the owner (`_sip._tcp`) as one part, for types that have them; else no part. */
function readLabels({ labels }: RecordSpec, reading: Reading): string[] {
  if (labels === undefined) return [];
  const old = reading.old?.[0]?.split(".");
  const read = labels.map(({ field, meaning }, i) => {
    const text = given(reading.fields, field);
    if (!text && old?.[i] !== undefined) return old[i];
    const label = text ? readServiceWord(String(text)) : required(meaning);
    if (typeof label === "string") return label;
    reading.refuse(field, label);
    return invalid;
  });
  return [read.join(".")];
}

/** Returns `_label` for a label with or without the leading `_` and a final dot. */
function readServiceWord(text: string): string | NameError {
  const word = text.toLowerCase().replace(/^_/, "").replace(/\.$/, "");
  if (/^(?!-)[a-z0-9_-]{1,62}(?<!-)$/.test(word)) return `_${word}`;
  return refuseName(
    "format_invalid",
    `must be one label of letters, digits, - and _ such as ${quote("sip")}, not ${quote(text)}`,
  );
}

/** Returns the fields of the data. In `reading.old` they begin at index `first`. */
function readData({ data }: RecordSpec, reading: Reading, first: number): string[] {
  const values = data.map((field, i) => readField(field, reading, reading.old?.[first + i]));
  for (const [i, { root, from }] of data.entries()) {
    if (root?.with === undefined || values[i] !== "." || values[0] === String(root.with)) continue;
    const [other] = (data[0] as DataField).from;
    reading.refuse(
      from.find((name) => given(reading.fields, name)) ?? other,
      refuseName(
        "format_invalid",
        `must not pair "." (${root.meaning}) with a ${other} of ${values[0]}: it requires ${root.with}`,
      ),
    );
  }
  return values;
}

/** Returns the value of the first field that is not empty, else the old value, else the default. */
function readField(spec: DataField, reading: Reading, old: string | undefined): string {
  const kind = kinds[spec.kind];
  const isNumber = kind.max !== undefined;
  const field = spec.from.find((name) =>
    isNumber ? given(reading.fields, name) !== undefined : given(reading.fields, name),
  );
  if (field === undefined) {
    if (old !== undefined) return old;
    if (spec.default !== undefined) return String(spec.default);
    reading.refuse(spec.errorField ?? spec.from[0], required(spec.meaning ?? kind.meaning));
    return invalid;
  }
  const text = String(given(reading.fields, field));
  const value = kind.read(text, reading.domain);
  if (typeof value !== "string") reading.refuse(field, value);
  else if (spec.kind === "name" && value === "." && spec.root === undefined)
    reading.refuse(field, refuseName("format_invalid", `must be a host name, not ${quote(text)}`));
  else return value;
  return invalid;
}

function checkServedName({ labels }: RecordSpec, reading: Reading, owner: string, served: string): void {
  const length = served.length + 1 + wireLength(absolute(owner, reading.domain));
  if (length > maxName)
    reading.refuse(
      labels?.[0]?.field ?? "",
      refuseName("too_long", `must leave the served name at most ${maxName} characters, and it has ${length}`),
    );
}

const laterNames = Object.keys(laterFields);

/** Returns the API form: all keys in the order of the contract, unused texts empty. */
export function showRecord(row: RecordRow, domain: DomainName): DnsRecord {
  const { type, owner, ttl } = row;
  const spec = recordSpecs[type];
  const fieldKinds = kindsOf(type);
  const parts = partsOf(row);
  const shownOwner = showOwner(owner, domain);
  const shown: Record<string, unknown> = {
    ID: row.id,
    TypeRecord: type,
    IP: "",
    HostName: shownOwner,
    Priority: "",
    Text: "",
    MnemonicName: "",
    ExtHostName: "",
    State: row.active ? "Active" : "New",
    DateCreate: formatDate(row.created),
    Service: "",
    Proto: "",
    Weight: "",
    TTL: ttl,
    Port: "",
    Target: "",
    CanonicalDescription: "",
    PunyName: owner === "@" ? "@" : printName(`${owner}.${domain.ascii}.`),
    DomainID: row.domainId,
  };
  for (let i = 0; i < laterNames.length; i++) shown[laterNames[i] as string] = "";
  shown["Labels"] = row.labels;
  if (spec.ownerShown !== undefined) shown[spec.ownerShown] = shownOwner;
  let description = shownOwner;
  let first = 0;
  if (spec.labels !== undefined) {
    const served = parts[first++] ?? "";
    const labels = served.split(".");
    for (let i = 0; i < spec.labels.length; i++) {
      const label = spec.labels[i] as NonNullable<RecordSpec["labels"]>[number];
      shown[label.field] = label.show(labels[i] ?? "");
    }
    description = `${served}.${owner === "@" ? printName(`${domain.name}.`) : shownOwner}`;
  }
  description += ` ${ttl} ${spec.omitsClass ? "" : "IN "}${type}`;
  for (let i = 0; i < spec.data.length; i++) {
    const field = spec.data[i] as DataField;
    const kind = fieldKinds[i] as (typeof fieldKinds)[number];
    const value = parts[first + i] ?? "";
    const text = field.showsTop && value === domain.ascii ? "@" : kind.show(value, domain);
    shown[field.shown] = text;
    description += ` ${kind.describe(text)}`;
  }
  shown["CanonicalDescription"] = description;
  return shown as DnsRecord;
}
