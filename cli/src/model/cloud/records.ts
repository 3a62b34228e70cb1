/** Records between a cloud file and the API: the request of a record, and the entry of an existing one. */
import type { DnsRecord } from "@brume/api/dns.ts";
import type { RecordEntry } from "./document.ts";
import { recordForms } from "./shape.ts";

/** Returns the fields of a change for a record of a file. */
export function requestOf({ Type, TTL, Labels, ...data }: RecordEntry): Record<string, unknown> {
  const form = recordForms[Type];
  const fields = Object.entries(data).map(([name, value]) => [form?.fields[name]?.request ?? name, value] as const);
  return {
    TypeRecord: Type,
    ...Object.fromEntries(fields),
    ...(TTL !== undefined && { TTL }),
    ...(Labels !== undefined && { Labels }),
  };
}

/** Returns a name relative to the domain, if the service reads the short form as the same name. */
function relative(name: string, domain: string): string {
  const end = `.${domain}.`;
  if (!name.toLowerCase().endsWith(end.toLowerCase())) return name;
  const short = name.slice(0, -end.length);
  const isSafe = short !== "" && short !== "@" && !`.${short}`.toLowerCase().endsWith(`.${domain}`.toLowerCase());
  return isSafe && !short.endsWith("\\") ? short : name;
}

/** Returns a text without quotes if it is one string that is read the same way without them. */
function unquote(text: string): string {
  const trimmed = text.trimEnd();
  const inner = trimmed.slice(1, -1);
  const isPlain = /^"[^"\\]*"$/.test(trimmed) && inner !== "" && new TextEncoder().encode(inner).length <= 255;
  return isPlain ? inner : trimmed;
}

/** Returns an existing record as an entry of a file for the domain, without labels. */
export function entryOf(record: DnsRecord, domain: string): RecordEntry {
  const form = recordForms[record.TypeRecord];
  if (form === undefined) throw new TypeError(`unknown record type ${record.TypeRecord}`);
  const fields = Object.entries(form.fields).map(([name, { shown }]) => {
    const value = String((record as unknown as Record<string, unknown>)[shown]);
    if (name === "Name") return [name, relative(value, domain)] as const;
    if (form.numbers.includes(name)) return [name, Number(value)] as const;
    if (form.labels.includes(name)) return [name, value.replace(/^_/, "").replace(/\.$/, "")] as const;
    return [name, shown === "Text" ? unquote(value) : value] as const;
  });
  const data = Object.fromEntries<string | number>(fields);
  return { Type: record.TypeRecord, Name: "", ...data, TTL: record.TTL };
}

const notData = new Set(["ID", "State", "DateCreate", "TTL", "CanonicalDescription", "DomainID", "Labels", "Text"]);

/** Returns a key that is equal for records which the service regards as duplicates. */
export function identityOf(record: DnsRecord): string {
  const data = Object.entries(record).filter(([name]) => !notData.has(name));
  return JSON.stringify([
    record.Text,
    ...data.map(([, value]) => (typeof value === "string" ? value.toLowerCase() : value)),
  ]);
}

/** Returns a record as one line for people: `www A 192.0.2.1`, and its TTL if it has one. */
export function describeRecord({ Type, TTL, ...data }: RecordEntry): string {
  const form = recordForms[Type];
  const values = Object.keys(form?.fields ?? {}).flatMap((name) =>
    name in data && name !== "Name" ? [String(data[name])] : [],
  );
  return `${Type} ${values.join(" ")}${TTL === undefined ? "" : ` (TTL ${TTL})`}`;
}
