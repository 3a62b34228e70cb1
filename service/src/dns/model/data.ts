/**
 * Converts record data of any type, field by field according to the spec of the type, between the stored text (`StoredRecord.value`), the
 * words of a zone file, the bytes of a DNS message, and the data of the name server driver.
 */
import type { RecordSpec } from "@brume/api/record/spec.ts";
import { type RecordType, recordSpecs, recordTypes } from "@brume/api/record/types.ts";
import type { RecordData } from "../../drivers/nameserver/interface.ts";
import { type KindDefinition, kinds } from "./kind.ts";
import { type NameError, refuseName } from "./name.ts";

/** The part of a record that determines its data. */
interface Data {
  readonly type: RecordType;
  readonly value: string;
}

/** Structure of the values of a type, computed once. */
interface Form {
  readonly kinds: readonly KindDefinition[];
  /** Number of parts of a value: the labels in front of the owner, if the type has them, and the fields. */
  readonly parts: number;
  /** Index of the first field: 1 if labels in front of the owner are the first part, else 0. */
  readonly first: number;
  /** Which fields are compared with letter case. */
  readonly keepsCase: "all" | "some" | "none";
}

function formOf({ data, labels }: RecordSpec): Form {
  const fieldKinds = data.map(({ kind }) => kinds[kind]);
  const first = labels === undefined ? 0 : 1;
  const sensitive = fieldKinds.filter(({ isCaseSensitive }) => isCaseSensitive).length;
  const keepsCase = sensitive === 0 ? "none" : sensitive === fieldKinds.length && first === 0 ? "all" : "some";
  return { kinds: fieldKinds, parts: first + fieldKinds.length, first, keepsCase };
}

const forms = Object.fromEntries(recordTypes.map((type) => [type, formOf(recordSpecs[type])])) as Record<
  RecordType,
  Form
>;

/** Returns the kinds of the fields of a type. */
export const kindsOf = (type: RecordType): readonly KindDefinition[] => forms[type].kinds;

/** Splits a value into its parts: `[preference, exchange]` of an MX, `[_service._proto, priority, weight, port, target]` of an SRV. */
export function partsOf({ type, value }: Data): string[] {
  const { parts } = forms[type];
  if (parts === 1) return [value];
  const words = value.split(" ");
  if (words.length > parts) words.push(words.splice(parts - 1).join(" "));
  return words;
}

/** Returns a valid placeholder value of the type. */
export function blankValue(type: RecordType): string {
  const blank = forms[type].kinds.map((kind) => kind.blank);
  const labels = recordSpecs[type].labels?.map(() => "_a").join(".");
  return (labels === undefined ? blank : [labels, ...blank]).join(" ");
}

/** Returns a key that is equal for equal values of a type. */
export function valueKey(type: RecordType, value: string): string {
  const { keepsCase, kinds: own, first } = forms[type];
  if (keepsCase === "none") return value.toLowerCase();
  if (keepsCase === "all") return value;
  return partsOf({ type, value })
    .map((part, i) => (own[i - first]?.isCaseSensitive ? part : part.toLowerCase()))
    .join(" ");
}

/** Converts the data of a record for the name server driver. */
export function recordData({ type, value }: Data): RecordData {
  const { kinds: own, parts, first } = forms[type];
  if (parts === 1) return [(own[0] as KindDefinition).toData(value)];
  const words = partsOf({ type, value });
  const data: RecordData[number][] = [];
  for (let i = 0; i < own.length; i++) data.push((own[i] as KindDefinition).toData(words[first + i] ?? ""));
  return data;
}

/** Returns the bytes of the record in an answer, with its owner compressed and all other names in full (RFC 1035 section 4.1). */
export function answerBytes({ type, value }: Data): number {
  const { kinds: own, parts, first } = forms[type];
  if (parts === 1) return 12 + (own[0] as KindDefinition).size(value);
  const words = partsOf({ type, value });
  let size = 12;
  for (let i = 0; i < own.length; i++) size += (own[i] as KindDefinition).size(words[first + i] ?? "");
  return size;
}

/** Prints the data for a zone file, without the labels in front of the owner. */
export function printData({ type, value }: Data): string {
  const { kinds: own, first } = forms[type];
  const words = partsOf({ type, value });
  return own.map((kind, i) => kind.print(words[first + i] ?? "")).join(" ");
}

/** Joins fields into a value without the labels in front of the owner. Rejects the root as target unless the spec allows it. */
function compose(type: RecordType, fields: readonly (string | NameError)[]): string | NameError {
  const { data } = recordSpecs[type];
  const values: string[] = [];
  for (const field of fields) {
    if (typeof field !== "string") return field;
    const spec = data[values.length];
    if (field === "." && spec?.kind === "name") {
      const isAllowed =
        spec.root !== undefined && (spec.root.with === undefined || values[0] === String(spec.root.with));
      if (!isAllowed) return refuseName("format_invalid", 'must have a host name as target, not "."');
    }
    values.push(field);
  }
  return values.join(" ");
}

/** Decodes the data of a message into a value without the labels in front of the owner, which are part of the record's name. */
export function decodeData(type: RecordType, bytes: Buffer, start: number, end: number): string | NameError {
  const fields: (string | NameError)[] = [];
  let at = start;
  for (const kind of forms[type].kinds) {
    const field = kind.decode(bytes, at, end);
    if (field === null) return broken(type, end - start);
    fields.push(field.value);
    at = field.end;
  }
  return at === end ? compose(type, fields) : broken(type, end - start);
}

const broken = (type: RecordType, length: number): NameError =>
  refuseName("format_invalid", `has ${length} bytes of data that are no ${type} data`);

/** Parses generic data (RFC 3597 section 5): the words after `\#` are a length in bytes and the bytes in hexadecimal. */
export function readGenericData(type: RecordType, words: readonly string[]): string | NameError {
  const [length = "", ...rest] = words;
  const hex = rest.join("");
  if (!/^\d{1,5}$/.test(length) || hex.length !== 2 * Number(length) || !/^[0-9a-f]*$/i.test(hex))
    return refuseName("format_invalid", "must have a length and as many bytes in hexadecimal behind \\#");
  const bytes = Buffer.from(hex, "hex");
  return decodeData(type, bytes, 0, bytes.length);
}

/** Parses words of a zone file into a value. `readName` makes a name absolute; the root is `""`. */
export function parseData(
  type: RecordType,
  words: readonly string[],
  readName: (word: string) => string | NameError,
): string | NameError {
  const { kinds: own } = forms[type];
  const last = own.at(-1) as KindDefinition;
  const count = own.length;
  if (last.takesRest ? words.length < count - 1 : words.length !== count)
    return refuseName(
      "format_invalid",
      `must have ${count} ${count === 1 ? "word" : "words"} of data, not ${words.length}`,
    );
  const fields: string[] = [];
  for (let i = 0; i < count; i++) {
    const kind = own[i] as KindDefinition;
    const field = kind.parse(i === 0 ? words : words.slice(i), readName);
    if (typeof field === "string") fields.push(field);
    else if (kind.max === undefined || kind === last) return field;
    else return refuseName("format_invalid", `${field.reason} before its ${last.noun}`);
  }
  return compose(type, fields);
}
