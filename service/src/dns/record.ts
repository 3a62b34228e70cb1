/**
 * A record as the table keeps it, read from the fields of a request and shown in an answer (docs/spec.md#record). It is four plain
 * values, because a domain may have a million: what it says (`value`) is its data in canonical text, so that two records say
 * the same when type, owner and value are equal (`recordKey`), and a lookup for duplicates needs no parsing.
 *
 * | type        | value                                                                          |
 * |-------------|--------------------------------------------------------------------------------|
 * | A, AAAA     | the address: four decimals, or RFC 5952                                        |
 * | CNAME, NS   | the target: absolute, ASCII, as it is spelled, without final dot               |
 * | MX          | `10 mail.example.com`, or `0 .`                                                |
 * | SRV         | `_xmpp-client._tcp 20 0 5222 chat.example.com`; the last may be `.`            |
 * | TXT         | the joined text, or its strings where they are not cut as usual (`text.ts`)    |
 */
import type { Labels } from "@brume/api/common.ts";
import { formatDate } from "@brume/api/common.ts";
import { type DnsRecord, limits, type RecordFields, type RecordType } from "@brume/api/dns.ts";
import type { FieldFault } from "@brume/api/errors.ts";
import { Fault, fieldFault, invalidFields } from "../base/fault.ts";
import { readIPv4, readIPv6 } from "./address.ts";
import {
  absolute,
  type DomainName,
  maxName,
  printName,
  quote,
  type Refusal,
  readOwner,
  readTarget,
  refuse,
  showOwner,
  showTarget,
  wireLength,
} from "./name.ts";
import { readText, showText } from "./text.ts";

export interface StoredRecord {
  readonly type: RecordType;
  /** ASCII, as it is spelled, relative to the domain; `@` for the top. Of an SRV the name below which the service stands. */
  readonly owner: string;
  /** Seconds, 0 to 2147483647. */
  readonly ttl: number;
  readonly value: string;
}

/** Two records of a domain are the same when this is: names are compared without regard to letter case. */
export const recordKey = ({
  type,
  owner,
  value,
}: Pick<StoredRecord, "owner" | "value"> & { readonly type: string }): string =>
  `${type} ${owner.toLowerCase()} ${type === "TXT" ? value : value.toLowerCase()}`;

/** A record with what the table knows beside it. */
export interface RecordRow extends StoredRecord {
  readonly id: number;
  readonly domainId: number;
  /** Milliseconds since 1970. */
  readonly created: number;
  /** The name server serves it. */
  readonly active: boolean;
  readonly labels: Labels;
}

type Field = "Name" | "HostName" | "MnemonicName" | "ExtHostName" | "IP" | "Text" | "Service" | "Proto" | "Target";

/** Types in which `*` may be the first label of the owner. */
export const takesWildcard = (type: RecordType): boolean => type !== "NS" && type !== "SRV";

/** The field in which the owner of a record stands, or would stand. */
export function ownerField(type: RecordType, fields: RecordFields): Field {
  const names = ownerFields(type, fields);
  return names.find((name) => fields[name]) ?? (names[0] as Field);
}

function ownerFields(type: RecordType, fields: RecordFields): readonly Field[] {
  if (type === "CNAME") return ["MnemonicName"];
  if (type === "NS") return ["HostName"];
  if (type !== "MX") return ["Name", "HostName"];
  return fields.ExtHostName ? ["HostName", "Name"] : ["Name"];
}

/**
 * Reads the fields of a create, or with `previous` of an edit, in which absent fields keep their value.
 * Throws `validation_failed` with every field that is not valid, else `name_outside_domain`.
 * Pointers begin with `at`: `/Changes/17` for an element of a changeset.
 */
export function readRecord(
  type: RecordType,
  fields: RecordFields,
  domain: Pick<DomainName, "ascii">,
  previous?: StoredRecord,
  at = "",
): StoredRecord {
  const faults: FieldFault[] = [];
  const reading: Reading = {
    fields,
    domain: domain.ascii,
    old: previous && partsOf(previous),
    refuse(field, { code, reason }) {
      faults.push(fieldFault(`${at}/${field}`, code, `${field} ${reason}.`));
    },
  };
  const owner = readOwnerOf(type, reading, previous);
  const value = readers[type](reading);
  if (type === "CNAME" && value.toLowerCase() === absolute(owner, domain.ascii).toLowerCase()) {
    const field = (["Name", "HostName", "MnemonicName"] as const).find((name) => fields[name]) ?? "Name";
    reading.refuse(field, refuse("format_invalid", `must not make an alias of itself, as ${quote(value)} is`));
  }
  if (type === "SRV") holdServedName(reading, owner, value);
  if (faults.length > 0) throw blame(faults);
  const read = { type, owner, ttl: fields.TTL ?? previous?.ttl ?? limits.ttl, value };
  // Clients write names in any letter case: an edit that says the same keeps the spelling.
  return previous !== undefined && recordKey(previous) === recordKey(read) ? { ...previous, ttl: read.ttl } : read;
}

/** Values that say nothing: an edit starts from them when nobody has looked yet what it really starts from. */
const blank: Record<RecordType, string> = {
  A: "0.0.0.0",
  AAAA: "::",
  CNAME: "a",
  MX: "0 a",
  NS: "a",
  SRV: "_a._a 0 0 0 a",
  TXT: "a",
};

/** A domain that no name can be in: `~` is in none. */
const nowhere = { ascii: "~" };

/**
 * The faults of fields that can be told without knowing the domain, or what an edit changes. What is read only decides which
 * fields there are; `at` as in `readRecord`.
 */
export function checkFields(type: RecordType, fields: RecordFields, isEdit: boolean, at = ""): readonly FieldFault[] {
  try {
    readRecord(type, fields, nowhere, isEdit ? { type, owner: "@", ttl: 1, value: blank[type] } : undefined, at);
    return [];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return error.errors.filter(({ code }) => code !== "name_outside_domain");
  }
}

/** A name outside stands alone, and only where every field can be read. */
function blame(faults: readonly FieldFault[]): Fault {
  const fields = faults.filter(({ code }) => code !== "name_outside_domain");
  return fields.length > 0 ? invalidFields(fields) : new Fault("name_outside_domain", faults[0]?.detail ?? "", faults);
}

interface Reading {
  readonly fields: RecordFields;
  readonly domain: string;
  /** Parts of the value that an edit starts from. */
  readonly old: readonly string[] | undefined;
  refuse(field: Field | "Priority", refusal: Refusal): void;
}

/** What stands for a value that was refused: nothing is made of it. */
const nothing = "";

function readOwnerOf(type: RecordType, reading: Reading, previous: StoredRecord | undefined): string {
  const field = ownerField(type, reading.fields);
  const text = reading.fields[field];
  if (!text) {
    if (previous) return previous.owner;
    if (type === "CNAME") reading.refuse(field, refuse("field_required", "is required: the alias"));
    return "@";
  }
  const owner = readOwner(text, reading.domain, takesWildcard(type));
  if (typeof owner === "string") return owner;
  reading.refuse(field, owner);
  return nothing;
}

/** The first field that is not empty, read; else what an edit starts from; else it is missing in `blamed`. */
function readField(
  reading: Reading,
  fields: readonly [Field, ...Field[]],
  old: number,
  blamed: Field,
  what: string,
  read: (text: string) => string | Refusal,
): string {
  const field = fields.find((name) => reading.fields[name]);
  const text = field && reading.fields[field];
  if (text === undefined) {
    if (reading.old === undefined) reading.refuse(blamed, refuse("field_required", `is required: ${what}`));
    return reading.old?.[old] ?? nothing;
  }
  const value = read(text);
  if (typeof value === "string") return value;
  reading.refuse(field as Field, value);
  return nothing;
}

const readAddressOf = (reading: Reading, what: string, read: (text: string) => string | null): string =>
  readField(
    reading,
    ["IP"],
    0,
    "IP",
    what,
    (text) => read(text) ?? refuse("format_invalid", `must be ${what}, not ${quote(text)}`),
  );

function readHost(
  reading: Reading,
  fields: readonly [Field, ...Field[]],
  old: number,
  blamed: Field,
  what: string,
  allowsRoot = false,
): string {
  return readField(reading, fields, old, blamed, what, (text) => {
    const target = readTarget(text, reading.domain);
    return target === "." && !allowsRoot ? refuse("format_invalid", `must be a host name, not ${quote(text)}`) : target;
  });
}

/** `_` and a label, from a word with or without `_` before and a dot behind it. */
function readServiceWord(text: string): string | Refusal {
  const word = text.toLowerCase().replace(/^_/, "").replace(/\.$/, "");
  if (/^(?!-)[a-z0-9_-]{1,62}(?<!-)$/.test(word)) return `_${word}`;
  return refuse(
    "format_invalid",
    `must be one label of letters, digits, - and _ such as ${quote("sip")}, not ${quote(text)}`,
  );
}

const number = (given: number | undefined, old: string | undefined): string => String(given ?? old ?? 0);

const readers: Record<RecordType, (reading: Reading) => string> = {
  A: (r) => readAddressOf(r, "an IPv4 address, four decimal numbers", readIPv4),
  AAAA: (r) => readAddressOf(r, "an IPv6 address", readIPv6),
  CNAME: (r) => readHost(r, ["Name", "HostName"], 0, "Name", "the target"),
  NS: (r) => readHost(r, ["Name", "ExtHostName"], 0, "Name", "the name server"),
  MX(r) {
    const host = readHost(r, ["ExtHostName", "HostName"], 1, "HostName", "the mail host", true);
    const priority = number(r.fields.Priority, r.old?.[0]);
    if (host === "." && priority !== "0") {
      const field = r.fields.ExtHostName ? "ExtHostName" : r.fields.HostName ? "HostName" : "Priority";
      r.refuse(
        field,
        refuse("format_invalid", `must not pair "." (no mail) with a Priority of ${priority}: it goes with 0`),
      );
    }
    return `${priority} ${host}`;
  },
  SRV(r) {
    const [oldService, oldProto] = r.old?.[0]?.split(".") ?? [];
    const word = (field: "Service" | "Proto", old: string | undefined, what: string) =>
      readField({ ...r, old: old === undefined ? undefined : [old] }, [field], 0, field, what, readServiceWord);
    const service = word("Service", oldService, "such as xmpp-client");
    const proto = word("Proto", oldProto, "such as tcp");
    if (r.fields.Port === undefined && r.old === undefined)
      r.refuse("Port" as Field, refuse("field_required", "is required: the port of the service"));
    const [priority, weight, port] = [r.fields.Priority, r.fields.Weight, r.fields.Port].map((given, i) =>
      number(given, r.old?.[i + 1]),
    );
    const target = readHost(r, ["Target"], 4, "Target", "the host of the service", true);
    return `${service}.${proto} ${priority} ${weight} ${port} ${target}`;
  },
  TXT: (r) => readField(r, ["Text"], 0, "Text", "the text", readText),
};

function holdServedName(reading: Reading, owner: string, value: string): void {
  const length = value.indexOf(" ") + 1 + wireLength(absolute(owner, reading.domain));
  if (length > maxName)
    reading.refuse(
      "Service",
      refuse("too_long", `must leave the served name at most ${maxName} characters, and it has ${length}`),
    );
}

/** The parts of a value: of an MX `[priority, host]`, of an SRV `[_service._proto, priority, weight, port, target]`, else the whole. */
export function partsOf({ type, value }: Pick<StoredRecord, "type" | "value">): string[] {
  return type === "MX" || type === "SRV" ? value.split(" ") : [value];
}

/** The answer form: all keys in the order of the contract, unused texts empty. */
export function showRecord(row: RecordRow, domain: DomainName): DnsRecord {
  const { type, owner, ttl, value } = row;
  const shownOwner = showOwner(owner, domain);
  let description = `${shownOwner} ${ttl} IN ${type} `;
  let [ip, host, priority, text, alias, extHost] = ["", shownOwner, "", "", "", ""];
  let [service, proto, weight, port, target] = ["", "", "", "", ""];
  switch (type) {
    case "A":
    case "AAAA":
      ip = value;
      description += value;
      break;
    case "CNAME":
      alias = shownOwner;
      host = value === domain.ascii ? "@" : showTarget(value, domain);
      description += host;
      break;
    case "NS":
      extHost = showTarget(value, domain);
      description += extHost;
      break;
    case "MX": {
      const blank = value.indexOf(" ");
      priority = value.slice(0, blank);
      extHost = showTarget(value.slice(blank + 1), domain);
      description = `${shownOwner} ${ttl} MX ${priority} ${extHost}`;
      break;
    }
    case "SRV": {
      const parts = value.split(" ") as [string, string, string, string, string];
      const dot = parts[0].indexOf(".");
      [, priority, weight, port] = parts;
      service = `${parts[0].slice(0, dot)}.`;
      proto = parts[0].slice(dot + 2);
      target = showTarget(parts[4], domain);
      const name = owner === "@" ? printName(`${domain.name}.`) : shownOwner;
      description = `${parts[0]}.${name} ${ttl} IN SRV ${priority} ${weight} ${port} ${target}`;
      break;
    }
    case "TXT":
      text = showText(value);
      description += text.slice(0, -1);
  }
  return {
    ID: row.id,
    TypeRecord: type,
    IP: ip,
    HostName: host,
    Priority: priority,
    Text: text,
    MnemonicName: alias,
    ExtHostName: extHost,
    State: row.active ? "Active" : "New",
    DateCreate: formatDate(row.created),
    Service: service,
    Proto: proto,
    Weight: weight,
    TTL: ttl,
    Port: port,
    Target: target,
    CanonicalDescription: description,
    PunyName: owner === "@" ? "@" : printName(`${owner}.${domain.ascii}.`),
    DomainID: row.domainId,
    Labels: row.labels,
  };
}
