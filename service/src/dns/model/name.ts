/**
 * Parses and prints DNS names. Names are stored in ASCII and shown in Unicode. Owners and targets keep their letter case and are compared
 * without it. A byte other than a letter, digit, `-`, `_`, `/` or `*` is stored as `\\DDD` (RFC 1035 section 5.1), also a dot inside a
 * label, so that every dot of a stored name separates two labels. Plain ASCII names are checked in one pass; IDNA (UTS 46,
 * non-transitional) is loaded at the first other name. Each label is converted separately: the Bidi rule applies to complete names and
 * would reject `_dmarc` in front of a Hebrew domain.
 */
import { createRequire } from "node:module";
import type { FieldCode } from "@brume/api/errors.ts";
import { quote } from "../../base/quote.ts";
import { readIPv4 } from "./address.ts";

/** Both forms of the name of a domain, without final dot: `name` in Unicode for people, `ascii` for DNS. */
export interface DomainName {
  readonly name: string;
  readonly ascii: string;
}

/** An invalid name or value. `reason` completes a sentence that begins with the name of the field. */
export interface NameError {
  readonly code: FieldCode | "name_outside_domain";
  readonly reason: string;
}

/** Maximum length of a name without final dot, in bytes (RFC 1035 section 3.1). */
export const maxName = 253;
const maxLabel = 63;

/** Creates a `NameError`. */
export const refuseName = (code: NameError["code"], reason: string): NameError => ({ code, reason });

/** Parses the name of a domain: 1 to 127 labels; a final dot is removed. */
export function readDomainName(text: string): DomainName | NameError {
  const read = asciiName(dropDot(text));
  if (typeof read !== "string") return read;
  const ascii = read.toLowerCase();
  if (readIPv4(ascii) !== null) return refuseName("format_invalid", `must be a name, not the address ${quote(text)}`);
  return { name: unicodeName(ascii), ascii };
}

/**
 * Parses the owner of a record. Returns it relative to the domain, `@` for the top (docs/spec.md#record). A name is absolute if it has a
 * final dot or ends with the domain; all others are relative. With `wildcard`, `*` may be the complete first label.
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
  return wireLength(name) + 1 + wireLength(domain) > maxName ? tooLongWith(`${name}.${domain}`) : name;
}

/**
 * Parses the target of a record. Returns an absolute ASCII name without final dot, or `.` for the root, which the caller must check.
 * `@` is the top of the domain, a single label is relative to it, and a name with a dot is absolute (docs/spec.md#record).
 */
export function readTarget(text: string, domain: string): string | NameError {
  if (text === "@") return domain;
  if (text === ".") return text;
  const name = asciiName(dropDot(text));
  if (typeof name !== "string") return name;
  if (readIPv4(name) !== null)
    return refuseName("format_invalid", `must be a host name, not the address ${quote(text)}`);
  if (name.includes(".") || isAbsolute(text)) return name;
  return wireLength(name) + 1 + wireLength(domain) > maxName ? tooLongWith(`${name}.${domain}`) : `${name}.${domain}`;
}

/** Returns `www` for `www.example.com` in `example.com`, `@` for the domain itself, null for names outside. `domain` is in lower case. */
export function relativeTo(name: string, domain: string): string | null {
  const rest = name.length - domain.length - 1;
  if (rest < -1 || rest === 0 || (rest > 0 && name.charCodeAt(rest) !== 46)) return null;
  if (!name.endsWith(domain) && name.slice(rest + 1).toLowerCase() !== domain) return null;
  return rest < 0 ? "@" : name.slice(0, rest);
}

/** Returns the absolute name of a relative owner, without final dot. */
export const absolute = (owner: string, domain: string): string => (owner === "@" ? domain : `${owner}.${domain}`);

/** Returns the API form of an owner: `@`, or an absolute name with final dot in Unicode. */
export const showOwner = (owner: string, domain: DomainName): string =>
  owner === "@" ? "@" : printName(`${unicodeName(owner)}.${domain.name}.`);

/** Returns the API form of a target: an absolute name with final dot in Unicode. */
export function showTarget(target: string, domain: DomainName): string {
  if (target === ".") return target;
  // If the target spells the domain with capital letters, they are kept.
  const owner = target.endsWith(domain.ascii) ? relativeTo(target, domain.ascii) : null;
  if (owner === null) return printName(`${unicodeName(target)}.`);
  return printName(owner === "@" ? `${domain.name}.` : `${unicodeName(owner)}.${domain.name}.`);
}

/** Prints a stored name with `\\.` and `\\\\` for a dot or backslash inside a label. The result parses as the same name. */
export const printName = (name: string): string =>
  name.includes("\\") ? name.replace(/\\(046|092)/g, (_, code) => (code === "046" ? "\\." : "\\\\")) : name;

/** Returns the bytes of a stored name in a message, without the first length and the final zero byte. */
export const wireLength = (name: string): number =>
  name.includes("\\") ? name.replace(/\\\d{3}/g, "?").length : name.length;

/** Resolves the escapes that are not needed, and writes the others as `\\DDD`. */
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
 * Returns a name (without final dot) in ASCII, or an error. Labels have 1 to 63 letters, digits, `-`, `_`, `/` (RFC 2317) and escapes,
 * without a hyphen at the ends; a name has at most 253 bytes. With `wildcard`, `*` may be the complete first label.
 */
export function asciiName(text: string, wildcard = false): string | NameError {
  const plain = readEscapes(text);
  if (typeof plain !== "string") return plain;
  const name = needsIdna(plain.toLowerCase()) ? convertName(plain) : plain;
  return typeof name === "string" ? (checkName(name, text, wildcard) ?? name) : name;
}

/** Returns the Unicode form of a result of `asciiName`; wildcards and `@` are not changed. */
export function unicodeName(name: string): string {
  if (!name.includes("xn--")) return name;
  return name.split(".").map(unicodeLabel).join(".");
}

/** Returns whether the text ends with a dot that is not escaped. */
export const isAbsolute = (text: string): boolean => text.endsWith(".") && /(?:^|[^\\])(?:\\\\)*\.$/.test(text);

const dropDot = (text: string): string => (isAbsolute(text) ? text.slice(0, -1) : text);

const tooLong = (name: string): NameError =>
  refuseName("too_long", `must be at most ${maxName} characters long, and ${quote(name)} has ${wireLength(name)}`);

const tooLongWith = (name: string): NameError =>
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
        return refuseName(
          "format_invalid",
          `must not have a hyphen at the start or end of a label, as ${quote(text)} has`,
        );
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
/** Returns the IDNA module; Node loads it at the first call and caches it. */
const idna = (): Idna => load("tr46") as Idna;

function convertName(text: string): string | NameError {
  // A longer text cannot be a valid name: do not load the tables for it.
  if (text.length > 4 * maxName) return tooLong(text);
  const labels: string[] = [];
  // The full stops of UTS 46 section 2.3.
  for (const label of text.replace(/[\u3002\uff0e\uff61]/g, ".").split(".")) {
    const isPlain = !needsIdna(label.toLowerCase());
    const ascii = isPlain ? label : toAscii(label);
    // The Unicode form must parse as the same name: unstable mappings are rejected.
    if (
      ascii === null ||
      (!isPlain && ascii.startsWith("xn--") && idna().toASCII(unicodeLabel(ascii), rules) !== ascii)
    )
      return refuseName("format_invalid", `must have labels that IDNA knows, and ${quote(label)} is none`);
    labels.push(ascii);
  }
  return labels.join(".");
}

/** Returns an IDNA label in ASCII, or null if it is invalid or contains a slash or backslash, also after mapping. */
function toAscii(label: string): string | null {
  const ascii = idna().toASCII(label, rules);
  return ascii === null || /[\\/]/.test(label + ascii) ? null : ascii;
}

const unicodeLabel = (label: string): string =>
  label.startsWith("xn--") ? idna().toUnicode(label, rules).domain : label;
