/**
 * Reads master files (RFC 1035 section 5, RFC 2308 section 4, BIND's $GENERATE, RFC 3597) into the records of a domain.
 * All or nothing: a file with a line that cannot be read gives no records but the list of all such lines, as far as 100.
 * What a domain has by itself (SOA, NS at the top unless marked as own) is left out, types that are not kept here are skipped and listed.
 */
import { limits, type RecordType, recordTypes } from "@brume/api/dns.ts";
import { ApiError, fieldError } from "../../../base/error.ts";
import { quote } from "../../../base/quote.ts";
import { kindsOf, parseData, readGenericData } from "../data.ts";
import { asciiName, isAbsolute, maxName, type NameError, refuseName, relativeTo, wireLength } from "../name.ts";
import { recordKey, type StoredRecord } from "../record.ts";
import { fromServed } from "../served.ts";
import { typeOf } from "../wire.ts";
import { expand, readRange } from "./generate.ts";
import { readMark } from "./mark.ts";
import { createLexer, type Entry } from "./token.ts";

export interface LineFault {
  readonly line: number;
  /** A sentence without full stop. */
  readonly reason: string;
}

export interface Zone {
  readonly records: StoredRecord[];
  /** Per record, the line it begins on. */
  readonly lines: number[];
  /** Labels as JSON, of records that have some in the file. */
  readonly labels: Map<StoredRecord, string>;
  /** The file says whether the NS set at the top is the domain's own: its own records, or none. */
  saysTop: boolean;
  /** Lines of other types: `line 12: CAA`. */
  readonly skipped: string[];
}

const maxFaults = 100;

/** The fault of a master file: for lines that cannot be read, and for records that cannot stand beside each other. */
export function zoneFileFault(faults: readonly LineFault[]): ApiError {
  const count =
    faults.length === 1 ? "1 line" : `${faults.length >= maxFaults ? "At least " : ""}${faults.length} lines`;
  return new ApiError(
    "zone_file_invalid",
    `${count} of the zone file cannot be taken.`,
    faults.map(({ line, reason }) => fieldError("/ZoneFile", "zone_file_invalid", `line ${line}: ${reason}.`)),
  );
}

/**
 * Reads the master file of `domain` (ASCII). Records that are said twice are kept once.
 * Stops behind `most` records, so that a short file with $GENERATE is no burden: then there is one more than that.
 * Throws `zone_file_invalid`.
 */
export function parseZone(text: string, domain: string, most = 1_000_000): Zone {
  const zone: Zone = { records: [], lines: [], skipped: [], labels: new Map(), saysTop: false };
  const faults: LineFault[] = [];
  const seen = new Set<string>();
  const entry: Entry = { line: 1, isContinued: false, tokens: [], isQuoted: [], comment: "", trouble: null };
  const next = createLexer(text, entry);
  const begin = { ttl: null, lastTtl: null, owner: null, isLost: false, labels: null, saysTop: false };
  const state: State = { domain, origin: domain, ...begin };
  const keep = (line: number, outcome: Outcome): void => {
    if (typeof outcome === "string") zone.skipped.push(`line ${line}: ${outcome}`);
    else if (outcome !== null && "reason" in outcome) faults.push({ line, reason: outcome.reason });
    else if (outcome !== null) {
      if (seen.size === seen.add(recordKey(outcome)).size) return;
      zone.records.push(outcome);
      zone.lines.push(line);
      if (state.labels !== null) zone.labels.set(outcome, state.labels);
    }
  };
  while (faults.length < maxFaults && zone.records.length <= most && next()) {
    const { line, tokens, isQuoted, trouble } = entry;
    if (trouble !== null) faults.push(trouble);
    else if (isQuoted[0] || tokens[0]?.charCodeAt(0) !== 36) keep(line, readEntry(state, entry));
    else if (tokens[0].toUpperCase() !== "$GENERATE") keep(line, readDirective(state, entry));
    else
      for (const outcome of generate(state, entry)) {
        keep(line, outcome);
        if (zone.records.length > most || faults.length >= maxFaults) break;
      }
  }
  if (faults.length > 0) throw zoneFileFault(faults);
  zone.saysTop = state.saysTop;
  return zone;
}

interface State {
  readonly domain: string;
  /** Absolute without final dot, the root is `""`. */
  origin: string;
  /** Of $TTL. */
  ttl: number | null;
  /** The last one said with a record, or the least TTL of the SOA. */
  lastTtl: number | null;
  /** Of the entry before; null: there was none that could be read. */
  owner: string | null;
  /** The owner of the entry before could not be read, which has been said. */
  isLost: boolean;
  /** Of the entry. */
  labels: string | null;
  saysTop: boolean;
}

/** A record; the name of a type that is skipped; what is wrong; null: nothing comes of it. */
type Outcome = StoredRecord | string | NameError | null;

const bad = (reason: string): NameError => refuseName("format_invalid", reason);

function readDirective(state: State, { tokens }: Entry): NameError | null {
  const [word = "", value = ""] = tokens;
  const directive = word.toUpperCase();
  if (directive === "$INCLUDE") return bad("$INCLUDE is not possible here, put the lines themselves in its place");
  if (directive !== "$ORIGIN" && directive !== "$TTL") return bad(`${quote(word)} is no directive`);
  if (tokens.length !== 2) return bad(`${directive} must have one value behind it`);
  if (directive === "$ORIGIN") {
    const origin = readName(state, value, false);
    if (typeof origin !== "string") return bad(`the origin ${origin.reason}`);
    state.origin = origin;
    return null;
  }
  const ttl = readTtl(value);
  if (typeof ttl === "number") state.ttl = ttl;
  else return ttl ?? bad(`$TTL must have a time such as 3600 or 1h behind it, not ${quote(value)}`);
  return null;
}

function readEntry(state: State, { isContinued, tokens, isQuoted, comment }: Entry): Outcome {
  let at = 0;
  const mark = readMark(comment);
  state.labels = "reason" in mark ? null : mark.labels;
  if (!isContinued) {
    const owner = readName(state, tokens[at++] as string, true);
    state.isLost = typeof owner !== "string";
    state.owner = typeof owner === "string" ? owner : null;
    if (typeof owner !== "string") return bad(`the owner ${owner.reason}`);
  }
  let ttl: number | null = null;
  let hasClass = false;
  for (; at < tokens.length && !isQuoted[at]; at++) {
    const token = tokens[at] as string;
    const time: number | NameError | null = ttl === null ? readTtl(token) : null;
    if (typeof time === "number") ttl = time;
    else if (time !== null) return time;
    else if (!hasClass && isClass(token)) {
      if (token.toUpperCase() !== "IN") return bad(`class ${token.toUpperCase()} is not served here, only IN`);
      hasClass = true;
    } else break;
  }
  const word = tokens[at]?.toUpperCase();
  if (word === undefined || isQuoted[at]) return bad("the type of the record is missing");
  const type = readType(word);
  if (type === null) return bad(`${quote(tokens[at] as string)} is no type of record`);
  if (state.owner === null) return state.isLost ? null : bad("there is no owner before it to go on with");
  if (ttl !== null) state.lastTtl = ttl;
  const data = tokens.slice(at + 1);
  if (type === "SOA") {
    const minimum = state.lastTtl === null ? readTtl(data[6] ?? "") : null;
    if (typeof minimum === "number") state.lastTtl = minimum;
    return null;
  }
  if (!isKept(type)) return type;
  if ("reason" in mark) return mark;
  if (type === "NS" && relativeTo(state.owner, state.domain) === "@") {
    if (mark.top !== null) state.saysTop = true;
    if (mark.top !== "own") return null;
  }
  const value =
    data[0] === "\\#" && !isQuoted[at + 1]
      ? readGenericData(type, data.slice(1))
      : parseData(type, data, (word) => readName(state, word, false));
  if (typeof value !== "string") return bad(`the ${type} record ${value.reason}`);
  const record = fromServed(type, state.owner, ttl ?? state.ttl ?? state.lastTtl ?? limits.ttl, value, state.domain);
  return "reason" in record ? bad(`the owner ${record.reason}`) : record;
}

/** The records of a $GENERATE, one after the other, until one is wrong. */
function* generate(state: State, { tokens, isQuoted }: Entry): Generator<Outcome, void> {
  const range = readRange(tokens[1] ?? "");
  if ("reason" in range) yield range;
  else if (tokens.length < 5) yield bad("$GENERATE must have a range, an owner, a type and data behind it");
  else {
    // Data of several words may stand in quotes; only types with text keep them.
    const isText = tokens.slice(3, 6).some((token) => hasText(token.toUpperCase()));
    const words = tokens
      .flatMap((token, i) => (i > 3 && isQuoted[i] && !isText ? token.split(/\s+/) : [token]))
      .slice(2);
    const quoted = words.map((_, i) => isText && isQuoted[i + 2] === true);
    for (let value = range.start; value <= range.stop; value += range.step) {
      const expanded = words.map((word) => expand(word, value));
      const wrong = expanded.find((word) => typeof word !== "string");
      const outcome = wrong ?? readEntry(state, { ...plain, tokens: expanded as string[], isQuoted: quoted });
      yield outcome;
      if (outcome !== null && typeof outcome === "object" && "reason" in outcome) break;
    }
  }
}

const hasText = (type: string): boolean => isKept(type) && kindsOf(type).some((kind) => kind.isText);

const plain = { line: 0, isContinued: false, comment: "", trouble: null };

/** An absolute name without final dot from one relative to the origin; the root is `""`. */
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

/** `3600`, `1h30m`, `2W`; null if it is no time at all, a refusal if it is too long. */
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

const isKept = (type: string): type is RecordType => (recordTypes as readonly string[]).includes(type);

/** The types of the IANA registry: all others are slips of the pen. */
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

/** The type's name; `TYPE1` is A (RFC 3597 section 5). */
function readType(word: string): string | null {
  if (knownTypes.has(word)) return word;
  const number = /^TYPE(\d{1,5})$/.exec(word)?.[1];
  if (number === undefined || Number(number) > 65_535) return null;
  return Number(number) === 6 ? "SOA" : (typeOf(Number(number)) ?? word);
}
