/**
 * Names of DNS: read from what people and programs write, kept in ASCII, shown in Unicode. Owners and targets keep their letter case,
 * and are compared without it. A byte that is no letter, digit, `-`, `_`, `/` or `*` is kept as `\\DDD` (RFC 1035 section 5.1), the dot inside a
 * label too: so every dot of a kept name parts two labels. Plain ASCII names, nearly all, are checked in one pass; IDNA (UTS 46, non-transitional) is loaded when the first other name comes. Every label is converted alone:
 * the Bidi rule looks at a whole name, and would refuse `_dmarc` in front of a Hebrew domain.
 */
import { createRequire } from "node:module";
import type { FieldCode } from "@brume/api/errors.ts";
import { quote } from "../../base/quote.ts";
import { readIPv4 } from "./address.ts";

/** A domain by both its names, without final dot: `name` for people (Unicode), `ascii` for the wire. */
export interface DomainName {
  readonly name: string;
  readonly ascii: string;
}

/** Why a text is refused: a half sentence to stand behind the name of its field. */
export interface NameError {
  readonly code: FieldCode | "name_outside_domain";
  readonly reason: string;
}

export const maxName = 253;
const maxLabel = 63;

export const refuseName = (code: NameError["code"], reason: string): NameError => ({ code, reason });

/** The name of a domain: 1 to 127 labels, a final dot is dropped. */
export function readDomainName(text: string): DomainName | NameError {
  const read = asciiName(dropDot(text));
  if (typeof read !== "string") return read;
  const ascii = read.toLowerCase();
  if (readIPv4(ascii) !== null) return refuseName("format_invalid", `must be a name, not the address ${quote(text)}`);
  return { name: unicodeName(ascii), ascii };
}

/**
 * The owner of a record relative to the domain, `@` for the top (docs/spec.md#record). A full name is known by its final dot,
 * or by ending like the domain; every other name is relative. `*` may be the whole first label if `wildcard` says so.
 */
export function readOwner(text: string, domain: string, wildcard: boolean): string | NameError {
  if (text === "" || text === "@") return "@";
  const outside = () =>
    refuseName("name_outside_domain", `must be ${quote(domain)} or a name inside it, not ${quote(text)}`);
  if (text === ".") return outside();
  const name = asciiName(dropDot(text), wildcard);
  if (typeof name !== "string") return name;
  const relative = relativeTo(name, domain);
  if (relative !== null) return relative;
  if (isAbsolute(text)) return outside();
  return wireLength(name) + 1 + wireLength(domain) > maxName ? tooLong(`${name}.${domain}`) : name;
}

/**
 * The target of a record as an absolute ASCII name without final dot; `.` alone stays, and is the caller's to allow.
 * `@` is the top of the domain, a single label is inside it, a name with a dot anywhere is absolute (docs/spec.md#record).
 */
export function readTarget(text: string, domain: string): string | NameError {
  if (text === "@") return domain;
  if (text === ".") return text;
  const name = asciiName(dropDot(text));
  if (typeof name !== "string") return name;
  if (readIPv4(name) !== null)
    return refuseName("format_invalid", `must be a host name, not the address ${quote(text)}`);
  if (name.includes(".") || isAbsolute(text)) return name;
  return wireLength(name) + 1 + wireLength(domain) > maxName ? tooLong(`${name}.${domain}`) : `${name}.${domain}`;
}

/** `www` for `www.example.com` in `example.com`, `@` for the domain itself, null for names outside. `domain` is in lower case. */
export function relativeTo(name: string, domain: string): string | null {
  const rest = name.length - domain.length - 1;
  if (rest < -1 || rest === 0 || (rest > 0 && name.charCodeAt(rest) !== 46)) return null;
  if (!name.endsWith(domain) && name.slice(rest + 1).toLowerCase() !== domain) return null;
  return rest < 0 ? "@" : name.slice(0, rest);
}

/** The absolute name of a relative owner, without final dot. */
export const absolute = (owner: string, domain: string): string => (owner === "@" ? domain : `${owner}.${domain}`);

/** An owner in its answer form: `@`, or absolute with final dot in Unicode. */
export const showOwner = (owner: string, domain: DomainName): string =>
  owner === "@" ? "@" : printName(`${unicodeName(owner)}.${domain.name}.`);

/** A target in its answer form: absolute with final dot in Unicode. */
export function showTarget(target: string, domain: DomainName): string {
  if (target === ".") return target;
  // A domain that the target spells with capital letters is shown so.
  const owner = target.endsWith(domain.ascii) ? relativeTo(target, domain.ascii) : null;
  if (owner === null) return printName(`${unicodeName(target)}.`);
  return printName(owner === "@" ? `${domain.name}.` : `${unicodeName(owner)}.${domain.name}.`);
}

/** A kept name as people write it: a dot or backslash inside a label is escaped by itself. Reads back as the same name. */
export const printName = (name: string): string =>
  name.includes("\\") ? name.replace(/\\(046|092)/g, (_, code) => (code === "046" ? "\\." : "\\\\")) : name;

/** Bytes of a kept name on the wire, without the first length and the final zero: what a text without escapes is long. */
export const wireLength = (name: string): number =>
  name.includes("\\") ? name.replace(/\\\d{3}/g, "?").length : name.length;

/** Undoes the escapes that are not needed and writes the others as `\\DDD`. */
function readEscapes(text: string): string | NameError {
  if (!text.includes("\\")) return text;
  let isBroken = false;
  const name = text.replace(/\\(\d{3}|[^]?)/g, (_, code: string) => {
    const byte = code.length === 3 ? Number(code) : /^[!-/:-~ ]$/.test(code) ? code.charCodeAt(0) : 256;
    if (byte > 255) isBroken = true;
    const character = String.fromCharCode(byte);
    return /^[A-Za-z0-9_/*-]$/.test(character) ? character : `\\${String(byte).padStart(3, "0")}`;
  });
  return isBroken
    ? refuseName("format_invalid", `must have escapes such as \\. or \\032, unlike ${quote(text)}`)
    : name;
}

/**
 * A name without final dot in ASCII: labels of 1 to 63 letters, digits, `-`, `_`, `/` (RFC 2317) and escapes, no hyphen at the ends, 253
 * in all. `*` may be the whole first label if `wildcard` says so.
 */
export function asciiName(text: string, wildcard = false): string | NameError {
  const plain = readEscapes(text);
  if (typeof plain !== "string") return plain;
  const name = needsIdna(plain.toLowerCase()) ? convertName(plain) : plain;
  return typeof name === "string" ? (checkName(name, text, wildcard) ?? name) : name;
}

/** The Unicode form of a name that `asciiName` made; wildcards and `@` stay as they are. */
export function unicodeName(name: string): string {
  if (!name.includes("xn--")) return name;
  return name.split(".").map(unicodeLabel).join(".");
}

/** Ends in a dot that is not escaped. */
export const isAbsolute = (text: string): boolean => text.endsWith(".") && /(?:^|[^\\])(?:\\\\)*\.$/.test(text);

const dropDot = (text: string): string => (isAbsolute(text) ? text.slice(0, -1) : text);

const tooLong = (name: string): NameError =>
  refuseName(
    "too_long",
    `must be at most ${maxName} characters long with the domain, and ${quote(name)} has ${wireLength(name)}`,
  );

function checkName(name: string, text: string, wildcard: boolean): NameError | null {
  if (wireLength(name) > maxName) return tooLong(name);
  let start = 0;
  let escapes = 0;
  for (let i = 0; i <= name.length; i++) {
    const c = i === name.length ? 46 : name.charCodeAt(i);
    if (c === 46) {
      if (i === start) return refuseName("format_invalid", `must not have an empty label, as ${quote(text)} has`);
      const size = i - start - 3 * escapes;
      if (size > maxLabel)
        return refuseName(
          "too_long",
          `must have labels of at most ${maxLabel} characters, and ${quote(text)} has one of ${size}`,
        );
      if (name.charCodeAt(start) === 45 || name.charCodeAt(i - 1) === 45)
        return refuseName("format_invalid", `must not have a hyphen at the end of a label, as ${quote(text)} has`);
      start = i + 1;
      escapes = 0;
    } else if (c === 92) {
      escapes++;
      i += 3;
    } else if (!((c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 45 && c <= 57 && c !== 46) || c === 95)) {
      const isStar = c === 42 && i === 0 && (name.length === 1 || name.charCodeAt(1) === 46);
      if (isStar && wildcard) continue;
      return refuseName(
        "format_invalid",
        c === 42 && wildcard
          ? `may have * only as its whole first label, unlike ${quote(text)}`
          : `must be a name of letters, digits, - and _, not ${quote(text)}`,
      );
    }
  }
  return null;
}

function needsIdna(lower: string): boolean {
  for (let i = 0; i < lower.length; i++) if (lower.charCodeAt(i) > 127) return true;
  return lower.startsWith("xn--") || lower.includes(".xn--");
}

interface Idna {
  toASCII(label: string, options: object): string | null;
  toUnicode(label: string, options: object): { domain: string; error: boolean };
}

const rules = { checkBidi: true, checkHyphens: true, checkJoiners: true };
const load = createRequire(import.meta.url);
/** Loaded at the first call, and kept by Node. */
const idna = (): Idna => load("tr46") as Idna;

function convertName(text: string): string | NameError {
  // Four bytes of UTF-8 a character and more: no such text is a name, and none is worth the tables.
  if (text.length > 4 * maxName) return tooLong(text);
  const labels: string[] = [];
  // The full stops of UTS 46 section 2.3.
  for (const label of text.replace(/[\u3002\uff0e\uff61]/g, ".").split(".")) {
    const isPlain = !needsIdna(label.toLowerCase());
    const ascii = isPlain ? label : toAscii(label);
    // What is shown must read back as the same name: mappings that do not come to rest are refused.
    if (
      ascii === null ||
      (!isPlain && ascii.startsWith("xn--") && idna().toASCII(unicodeLabel(ascii), rules) !== ascii)
    )
      return refuseName("format_invalid", `must have labels that IDNA knows, and ${quote(label)} is none`);
    labels.push(ascii);
  }
  return labels.join(".");
}

/** A label of IDNA in ASCII, null for what is none. What only its mapping makes a slash or an escape is none. */
function toAscii(label: string): string | null {
  const ascii = idna().toASCII(label, rules);
  return ascii === null || /[\\/]/.test(label + ascii) ? null : ascii;
}

const unicodeLabel = (label: string): string =>
  label.startsWith("xn--") ? idna().toUnicode(label, rules).domain : label;
