/**
 * Kinds of record data fields: parsers for requests, zone files and DNS messages, and printers for zone files and responses.
 * A value is stored as text without blanks, except that the last field of a record may contain blanks. The name server encodes messages.
 */
import { isUtf8 } from "node:buffer";
import type { FieldKind } from "@brume/api/record/spec.ts";
import { quote } from "../../base/quote.ts";
import type { FieldKind as EncodedKind, RecordData } from "../../drivers/nameserver/interface.ts";
import { readIPv4, readIPv6 } from "./address.ts";
import { type DomainName, type NameError, printName, readTarget, refuseName, showTarget, wireLength } from "./name.ts";
import {
  checkText,
  decodeString,
  printString,
  printText,
  readStrings,
  readText,
  showText,
  stringsOf,
  valueOf,
} from "./text.ts";
import { decodeName } from "./wire.ts";

/** A decoded value, or the reason why it cannot be stored, and the position after it. Null: the data contains no such field. */
type Decoded = { readonly value: string | NameError; readonly end: number } | null;

/** How the fields of one kind are checked, printed, parsed and decoded. */
export interface KindDefinition {
  /** The noun in errors of zone files: `target`. */
  readonly noun: string;
  /** The description in errors of missing and invalid fields: `a host name`. */
  readonly meaning: string;
  /** A valid placeholder value. */
  readonly blank: string;
  /** Whether values that differ only in letter case are different. */
  readonly isCaseSensitive: boolean;
  /** Whether its words may be quoted, so that a quoted blank is part of the value. */
  readonly isText: boolean;
  /** Whether it consumes all remaining words of a zone file line. Only the last field may. */
  readonly takesRest: boolean;
  /** Maximum of a number; undefined for other kinds. */
  readonly max?: number;
  /** Parses the text of a request field. */
  read(text: string, domain: string): string | NameError;
  /** Parses words of a zone file: the first, or all if `takesRest`. The reason of an error begins with `must have`. */
  parse(words: readonly string[], readName: (word: string) => string | NameError): string | NameError;
  /** Decodes bytes `at` to `end` of a DNS message. */
  decode(bytes: Buffer, at: number, end: number): Decoded;
  /** Converts a value for the name server driver. */
  toData(value: string): RecordData[number];
  /** Returns the bytes that the value takes in a message without compression. */
  size(value: string): number;
  /** Prints a value for a zone file, in ASCII. */
  print(value: string): string;
  /** Prints a value for a response, in Unicode. */
  show(value: string, domain: DomainName): string;
  /** Converts a result of `show` for `CanonicalDescription`. */
  describe(shown: string): string;
}

const identity = (value: string): string => value;
const plain = {
  isCaseSensitive: false,
  isText: false,
  takesRest: false,
  print: identity,
  show: identity,
  describe: identity,
};

function numberKind(width: 1 | 2 | 4): KindDefinition {
  const max = 2 ** (8 * width) - 1;
  const pattern = new RegExp(`^\\d{1,${String(max).length}}$`);
  const read = (text: string): string | null =>
    pattern.test(text) && Number(text) <= max ? String(Number(text)) : null;
  return {
    ...plain,
    noun: "number",
    meaning: `a number from 0 to ${max}`,
    blank: "0",
    max,
    read: (text) => read(text) ?? refuseName("format_invalid", `must be a number from 0 to ${max}, not ${quote(text)}`),
    parse: ([word = ""]) => read(word) ?? refuseName("format_invalid", `must have numbers from 0 to ${max}`),
    decode: (bytes, at, end) =>
      at + width > end ? null : { value: String(bytes.readUIntBE(at, width)), end: at + width },
    toData: Number,
    size: () => width,
  };
}

function addressKind(family: 4 | 6): KindDefinition {
  const read = family === 4 ? readIPv4 : readIPv6;
  const width = family === 4 ? 4 : 16;
  const meaning = family === 4 ? "an IPv4 address such as 192.0.2.1" : "an IPv6 address";
  const textOf = (data: Buffer): string =>
    family === 4 ? data.join(".") : (data.toString("hex").match(/.{4}/g)?.join(":") ?? "");
  return {
    ...plain,
    noun: "address",
    meaning,
    blank: family === 4 ? "0.0.0.0" : "::",
    read: (text) => read(text) ?? refuseName("format_invalid", `must be ${meaning}, not ${quote(text)}`),
    parse: ([word = ""]) => read(word) ?? refuseName("format_invalid", `must have ${meaning}, not ${quote(word)}`),
    decode(bytes, at, end) {
      const value = at + width > end ? null : read(textOf(bytes.subarray(at, at + width)));
      return value === null ? null : { value, end: at + width };
    },
    toData: identity,
    size: () => width,
  };
}

const name: KindDefinition = {
  ...plain,
  noun: "target",
  meaning: "a host name",
  blank: "a",
  read: readTarget,
  parse([word = ""], readName) {
    const target = readName(word);
    // By the format, an address is a valid relative name. In practice it is always a mistake.
    if (readIPv4(word) !== null || (typeof target === "string" && readIPv4(target) !== null))
      return refuseName("format_invalid", `must have a host name as target, not the address ${quote(word)}`);
    return target === "" ? "." : target;
  },
  decode(bytes, at) {
    const found = decodeName(bytes, at);
    if (found === null) return null;
    return { value: found.text === "" ? "." : readTarget(`${found.text}.`, ""), end: found.end };
  },
  toData: (value) => (value === "." ? "" : value),
  size: (value) => (value === "." ? 1 : wireLength(value) + 2),
  print: (value) => (value === "." ? value : `${printName(value)}.`),
  show: showTarget,
};

const stringBytes = 255;
const tooLong = (bytes: number): NameError =>
  refuseName("too_long", `must be at most ${stringBytes} bytes long, and has ${bytes}`);

/** One string. Stored in quotes with blanks escaped, so that it is one word. */
const string: KindDefinition = {
  ...plain,
  noun: "string",
  meaning: "the text",
  blank: '""',
  isCaseSensitive: true,
  isText: true,
  read(text) {
    const checked = checkText(text);
    if (typeof checked !== "string") return checked;
    const bytes = Buffer.byteLength(checked);
    return bytes > stringBytes ? tooLong(bytes) : packString(checked);
  },
  parse([word = ""]) {
    const text = checkText(decodeString(word));
    if (typeof text !== "string") return text;
    const bytes = Buffer.byteLength(text);
    return bytes > stringBytes ? tooLong(bytes) : packString(text);
  },
  decode(bytes, at, end) {
    const stop = at + 1 + (at < end ? (bytes[at] as number) : end);
    if (stop > end) return null;
    const text = checkText(utf8(bytes.subarray(at + 1, stop)));
    return { value: typeof text === "string" ? packString(text) : text, end: stop };
  },
  toData: unpackString,
  size: (value) => 1 + Buffer.byteLength(unpackString(value)),
  show: unpackString,
  describe: quoteString,
};

const strings: KindDefinition = {
  ...plain,
  noun: "text",
  meaning: "the text",
  blank: "a",
  isCaseSensitive: true,
  isText: true,
  takesRest: true,
  read: readText,
  parse: (words) => (words.length === 0 ? refuseName("format_invalid", "must have a text") : readStrings(words, true)),
  decode(bytes, start, end) {
    const found: Buffer[] = [];
    for (let at = start; at < end; ) {
      const stop = at + 1 + (bytes[at] as number);
      if (stop > end) return null;
      found.push(bytes.subarray(at + 1, stop));
      at = stop;
    }
    if (found.length === 0) return null;
    const joined = checkText(utf8(Buffer.concat(found)));
    return { value: typeof joined === "string" ? valueOf(found.map(utf8), joined) : joined, end };
  },
  toData: stringsOf,
  size: (value) => stringsOf(value).reduce((sum, text) => sum + 1 + Buffer.byteLength(text), 0),
  print: printText,
  show: showText,
  // Existing clients expect a blank after each string in the field, but none at the end of the description.
  describe: (shown) => shown.slice(0, -1),
};

const text: KindDefinition = {
  ...plain,
  noun: "value",
  meaning: "the value",
  blank: "a",
  isCaseSensitive: true,
  isText: true,
  read: checkText,
  parse: ([word = ""]) => checkText(decodeString(word)),
  decode: (bytes, at, end) => ({ value: checkText(utf8(bytes.subarray(at, end))), end }),
  toData: identity,
  size: (value) => Buffer.byteLength(value),
  print: printString,
  describe: quoteString,
};

function bytesKind(encoding: "hex" | "base64"): KindDefinition {
  const name = encoding === "hex" ? "hexadecimal" : "base64";
  const read = (given: string): string | null => {
    const bytes = Buffer.from(given, encoding);
    const value = bytes.toString(encoding);
    return value !== "" && value === (encoding === "hex" ? given.toLowerCase() : given) ? value : null;
  };
  return {
    ...plain,
    noun: "data",
    meaning: `bytes in ${name}`,
    blank: encoding === "hex" ? "00" : "AA==",
    isCaseSensitive: encoding === "base64",
    takesRest: true,
    read: (given) =>
      read(given.replaceAll(" ", "")) ?? refuseName("format_invalid", `must be bytes in ${name}, not ${quote(given)}`),
    parse: (words) =>
      read(words.join("")) ?? refuseName("format_invalid", `must have bytes in ${name}, not ${quote(words.join(" "))}`),
    decode: (bytes, at, end) => (at < end ? { value: bytes.toString(encoding, at, end), end } : null),
    toData: identity,
    size: (value) => Buffer.byteLength(value, encoding),
  };
}

/** All kinds, by the name that the record specs use. The name server encodes exactly these. */
export const kinds: Readonly<Record<FieldKind, KindDefinition>> = {
  u8: numberKind(1),
  u16: numberKind(2),
  u32: numberKind(4),
  ipv4: addressKind(4),
  ipv6: addressKind(6),
  name,
  string,
  strings,
  text,
  hex: bytesKind("hex"),
  base64: bytesKind("base64"),
} satisfies Record<EncodedKind, KindDefinition>;

/** Returns the text, or null if the bytes are not UTF-8. */
const utf8 = (bytes: Buffer): string | null => (isUtf8(bytes) ? bytes.toString() : null);

/** Returns a string as one word: quoted, in ASCII, a blank as `\032`. */
function packString(value: string): string {
  return printString(value).replaceAll(" ", "\\032");
}

function unpackString(packed: string): string {
  return decodeString(packed.slice(1, -1)) ?? "";
}

function quoteString(shown: string): string {
  return `"${shown.replace(/["\\]/g, "\\$&")}"`;
}
