/**
 * Parses zone files (RFC 1035 section 5, RFC 2308 section 4, BIND's $GENERATE, RFC 3597) into the records of a domain.
 * All or nothing: a file with invalid lines is rejected with a list of up to 100 of them.
 * Automatic records (SOA, NS at the top unless marked as own) are ignored; records of unsupported types are skipped and listed.
 */
import { limits, type RecordType, recordTypes } from "@brume/api/dns.ts";
import { ApiError, fieldError } from "../../../base/error.ts";
import { quote } from "../../../base/quote.ts";
import { runAtOnce } from "../../../base/turn.ts";
import { kindsOf, parseData, readGenericData } from "../data.ts";
import { asciiName, isAbsolute, maxName, type NameError, refuseName, relativeTo, wireLength } from "../name.ts";
import { recordKey, type StoredRecord } from "../record.ts";
import { fromServed } from "../served.ts";
import { typeOf } from "../wire.ts";
import { expand, readRange } from "./generate.ts";
import { readMark } from "./mark.ts";
import { createLexer, type Entry } from "./token.ts";

/** Why a line cannot be imported. The number begins at 1. */
export interface LineError {
  readonly line: number;
  /** Sentence without full stop. */
  readonly reason: string;
}

/** Content of a zone file, in the order of the file. */
export interface Zone {
  readonly records: StoredRecord[];
  /** The first line of each record, by the index of `records`. */
  readonly lines: number[];
  /** Labels as JSON, for the records that have labels in the file. */
  readonly labels: Map<StoredRecord, string>;
  /** Labels of the domain as JSON; null: the file has none. */
  domainLabels: string | null;
  /** Whether marks define the NS set at the top: own records, or the automatic set. */
  definesTop: boolean;
  /** Lines of unsupported types: `line 12: CAA`. After `maxSkipped` follows only the number of further ones. */
  readonly skipped: string[];
}

const maxErrors = 100;
/** Most texts of skipped records in the report of an import. */
export const maxSkipped = 1000;

/** Returns the API error for the invalid lines of a zone file, also for conflicting records. */
export function zoneFileError(errors: readonly LineError[]): ApiError {
  const count =
    errors.length === 1 ? "1 line" : `${errors.length >= maxErrors ? "At least " : ""}${errors.length} lines`;
  return new ApiError(
    "zone_file_invalid",
    `${count} of the zone file cannot be imported.`,
    errors.map(({ line, reason }) => fieldError("/ZoneFile", "zone_file_invalid", `line ${line}: ${reason}.`)),
  );
}

/** Entries between two yields. */
const entriesTogether = 100;

/** Parses a zone file at once, see `readZone`. */
export const parseZone = (text: string, domain: string, max?: number): Zone => runAtOnce(readZone(text, domain, max));

/**
 * Parses, with yields, the zone file of `domain` (ASCII). Duplicate records are stored once.
 * Stops after `max + 1` records, so that a short file with $GENERATE cannot exhaust memory. For the same reason all $GENERATE together may
 * have at most `max` results, also those that are skipped, ignored or duplicates. Throws `zone_file_invalid`.
 */
export function* readZone(text: string, domain: string, max = 1_000_000): Generator<void, Zone> {
  const zone: Zone = { records: [], lines: [], skipped: [], labels: new Map(), domainLabels: null, definesTop: false };
  const errors: LineError[] = [];
  const seen = new Set<string>();
  const entry: Entry = { line: 1, isContinued: false, tokens: [], isQuoted: [], comment: "", error: null };
  const next = createLexer(text, entry);
  const initial = {
    ttl: null,
    lastTtl: null,
    owner: null,
    isOwnerInvalid: false,
    labels: null,
    domainLabels: null,
    definesTop: false,
  };
  const state: State = { domain, origin: domain, ...initial };
  let left = 0;
  const add = (line: number, result: EntryResult): void => {
    if (typeof result === "string") {
      if (zone.skipped.length < maxSkipped) zone.skipped.push(`line ${line}: ${result}`);
      else left++;
    } else if (result !== null && "reason" in result) errors.push({ line, reason: result.reason });
    else if (result !== null) {
      if (seen.size === seen.add(recordKey(result)).size) return;
      zone.records.push(result);
      zone.lines.push(line);
      if (state.labels !== null) zone.labels.set(result, state.labels);
    }
  };
  let entries = 0;
  let generated = 0;
  while (errors.length < maxErrors && zone.records.length <= max && next()) {
    if (++entries % entriesTogether === 0) yield;
    const { line, tokens, isQuoted, error } = entry;
    if (error !== null) errors.push(error);
    else if (isQuoted[0] || tokens[0]?.charCodeAt(0) !== 36) add(line, readEntry(state, entry));
    else if (tokens[0].toUpperCase() !== "$GENERATE") add(line, readDirective(state, entry));
    else
      for (const result of generate(state, entry)) {
        add(line, result);
        if (zone.records.length > max || errors.length >= maxErrors) break;
        if (++generated > max) {
          add(line, invalidEntry(`the $GENERATE lines must create at most ${max} records together`));
          break;
        }
        if (++entries % entriesTogether === 0) yield;
      }
  }
  if (errors.length > 0) throw zoneFileError(errors);
  if (left > 0) zone.skipped.push(`and ${left} more`);
  zone.definesTop = state.definesTop;
  zone.domainLabels = state.domainLabels;
  return zone;
}

/** State of the parser between entries. */
interface State {
  readonly domain: string;
  /** Absolute without final dot, the root is `""`. */
  origin: string;
  /** Value of $TTL in s. */
  ttl: number | null;
  /** TTL of the last record that had one, else the minimum of the SOA; in s. */
  lastTtl: number | null;
  /** Owner of the previous entry; null: none, or invalid. */
  owner: string | null;
  /** The owner of the previous entry was invalid, which has been reported. */
  isOwnerInvalid: boolean;
  /** Labels of the current entry, JSON. */
  labels: string | null;
  domainLabels: string | null;
  definesTop: boolean;
}

/** A record; the name of a skipped type; an error; null: the entry has no result. */
type EntryResult = StoredRecord | string | NameError | null;

const invalidEntry = (reason: string): NameError => refuseName("format_invalid", reason);

function readDirective(state: State, { tokens }: Entry): NameError | null {
  const [word = "", value = ""] = tokens;
  const directive = word.toUpperCase();
  if (directive === "$INCLUDE") return invalidEntry("$INCLUDE is not supported, insert the lines of the file instead");
  if (directive !== "$ORIGIN" && directive !== "$TTL") return invalidEntry(`${quote(word)} is no directive`);
  if (tokens.length !== 2) return invalidEntry(`${directive} must have one value after it`);
  if (directive === "$ORIGIN") {
    const origin = readName(state, value, false);
    if (typeof origin !== "string") return invalidEntry(`the origin ${origin.reason}`);
    state.origin = origin;
    return null;
  }
  const ttl = readTtl(value);
  if (typeof ttl === "number") state.ttl = ttl;
  else return ttl ?? invalidEntry(`$TTL must have a time such as 3600 or 1h after it, not ${quote(value)}`);
  return null;
}

function readEntry(state: State, { isContinued, tokens, isQuoted, comment }: Entry): EntryResult {
  let at = 0;
  const mark = readMark(comment);
  state.labels = "reason" in mark ? null : mark.labels;
  if (!isContinued) {
    const owner = readName(state, tokens[at++] as string, true);
    state.isOwnerInvalid = typeof owner !== "string";
    state.owner = typeof owner === "string" ? owner : null;
    if (typeof owner !== "string") return invalidEntry(`the owner ${owner.reason}`);
  }
  let ttl: number | null = null;
  let hasClass = false;
  for (; at < tokens.length && !isQuoted[at]; at++) {
    const token = tokens[at] as string;
    const time: number | NameError | null = ttl === null ? readTtl(token) : null;
    if (typeof time === "number") ttl = time;
    else if (time !== null) return time;
    else if (!hasClass && isClass(token)) {
      if (token.toUpperCase() !== "IN") return invalidEntry(`class ${token.toUpperCase()} is not served here, only IN`);
      hasClass = true;
    } else break;
  }
  const word = tokens[at]?.toUpperCase();
  if (word === undefined || isQuoted[at]) return invalidEntry("the type of the record is missing");
  const type = readType(word);
  if (type === null) return invalidEntry(`${quote(tokens[at] as string)} is no type of record`);
  if (state.owner === null)
    return state.isOwnerInvalid ? null : invalidEntry("there is no previous owner to continue with");
  if (ttl !== null) state.lastTtl = ttl;
  const data = tokens.slice(at + 1);
  if (type === "SOA") {
    const minimum = state.lastTtl === null ? readTtl(data[6] ?? "") : null;
    if (typeof minimum === "number") state.lastTtl = minimum;
    if ("reason" in mark) return mark;
    state.domainLabels = mark.labels;
    return null;
  }
  if (!isSupported(type)) return type;
  if ("reason" in mark) return mark;
  if (type === "NS" && relativeTo(state.owner, state.domain) === "@") {
    if (mark.top !== null) state.definesTop = true;
    if (mark.top !== "own") return null;
  }
  const value =
    data[0] === "\\#" && !isQuoted[at + 1]
      ? readGenericData(type, data.slice(1))
      : parseData(type, data, (word) => readName(state, word, false));
  if (typeof value !== "string") return invalidEntry(`the ${type} record ${value.reason}`);
  const record = fromServed(type, state.owner, ttl ?? state.ttl ?? state.lastTtl ?? limits.ttl, value, state.domain);
  return "reason" in record ? invalidEntry(`the owner ${record.reason}`) : record;
}

/** Yields the results of a $GENERATE until the first error. */
function* generate(state: State, { tokens, isQuoted }: Entry): Generator<EntryResult, void> {
  const range = readRange(tokens[1] ?? "");
  if ("reason" in range) yield range;
  else if (tokens.length < 5) yield invalidEntry("$GENERATE must have a range, an owner, a type and data after it");
  else {
    // Data of several words may be quoted; only types with text keep the quotes.
    const isText = tokens.slice(3, 6).some((token) => hasText(token.toUpperCase()));
    const words = tokens
      .flatMap((token, i) => (i > 3 && isQuoted[i] && !isText ? token.split(/\s+/) : [token]))
      .slice(2);
    const quoted = words.map((_, i) => isText && isQuoted[i + 2] === true);
    for (let value = range.start; value <= range.stop; value += range.step) {
      const expanded = words.map((word) => expand(word, value));
      const wrongWord = expanded.find((word) => typeof word !== "string");
      const result = wrongWord ?? readEntry(state, { ...plain, tokens: expanded as string[], isQuoted: quoted });
      yield result;
      if (result !== null && typeof result === "object" && "reason" in result) break;
    }
  }
}

const hasText = (type: string): boolean => isSupported(type) && kindsOf(type).some((kind) => kind.isText);

const plain = { line: 0, isContinued: false, comment: "", error: null };

/** Returns the absolute name, without final dot, of a name relative to the origin; the root is `""`. */
function readName(state: State, token: string, wildcard: boolean): string | NameError {
  if (token === "@") return state.origin;
  if (token === ".") return "";
  if (isAbsolute(token)) return asciiName(token.slice(0, -1), wildcard);
  const name = asciiName(token, wildcard);
  if (typeof name !== "string" || state.origin === "") return name;
  return wireLength(name) + 1 + wireLength(state.origin) > maxName
    ? refuseName("too_long", `must be at most ${maxName} characters long with its origin, not ${quote(token)}`)
    : `${name}.${state.origin}`;
}

const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** Parses `3600`, `1h30m`, `2W` into s. Returns null if it is no time, an error if it is too long. */
function readTtl(token: string): number | NameError | null {
  const c = token.charCodeAt(0);
  if (!(c >= 48 && c <= 57)) return null;
  let sum = 0;
  let number = -1;
  for (let i = 0; i < token.length; i++) {
    const digit = token.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) number = Math.min(Math.max(number, 0) * 10 + digit, 1e10);
    else {
      const unit = seconds[token.charAt(i).toLowerCase()];
      if (unit === undefined || number < 0) return null;
      sum += number * unit;
      number = -1;
    }
  }
  if (number >= 0 && sum > 0) return null;
  const ttl = sum + Math.max(number, 0);
  return ttl > limits.maxTtl
    ? refuseName("out_of_range", `the TTL must be at most ${limits.maxTtl}, not ${quote(token)}`)
    : ttl;
}

const isClass = (token: string): boolean => token.length < 5 && /^(?:IN|CH|HS|CS|ANY|NONE)$/i.test(token);

const isSupported = (type: string): type is RecordType => (recordTypes as readonly string[]).includes(type);

/** The types of the IANA registry. All others are reported as errors. */
const knownTypes = new Set([
  ...recordTypes,
  ..."SOA MD MF MB MG MR NULL WKS PTR HINFO MINFO RP AFSDB X25 ISDN RT NSAP NSAP-PTR SIG KEY PX GPOS LOC NXT EID NIMLOC".split(
    " ",
  ),
  ..."ATMA NAPTR KX CERT A6 DNAME SINK APL DS SSHFP IPSECKEY RRSIG NSEC DNSKEY DHCID NSEC3 NSEC3PARAM TLSA SMIMEA HIP".split(
    " ",
  ),
  ..."NINFO RKEY TALINK CDS CDNSKEY OPENPGPKEY CSYNC ZONEMD SVCB HTTPS DSYNC HHIT BRID SPF UINFO UID GID UNSPEC NID".split(
    " ",
  ),
  ..."L32 L64 LP EUI48 EUI64 NXNAME URI CAA AVC DOA AMTRELAY RESINFO WALLET CLA IPN TA DLV ALIAS ANAME".split(" "),
]);

/** Returns the name of a type, or null if it is unknown; `TYPE1` is A (RFC 3597 section 5). */
function readType(word: string): string | null {
  if (knownTypes.has(word)) return word;
  const number = /^TYPE(\d{1,5})$/.exec(word)?.[1];
  if (number === undefined || Number(number) > 65_535) return null;
  return Number(number) === 6 ? "SOA" : (typeOf(Number(number)) ?? word);
}
