/** Records as rows of a table: owner, type, TTL, and the value as a zone file writes it. Pure. */
import type { AppliedChange, ChangeInput, DnsRecord, Domain, RecordType } from "@brume/api/dns.ts";

/** A row: what one can edit. */
export interface Row {
  /** Id of the record; negative: it does not exist yet. */
  readonly id: number;
  readonly owner: string;
  readonly type: RecordType;
  readonly ttl: number;
  readonly value: string;
}

/** Changes of the rows of a domain that are not applied yet. */
export interface Edits {
  /** By id of a row: what was changed in it. The rest stays as it is stored, also if another client changes it. */
  readonly changed: ReadonlyMap<number, Partial<Row>>;
  readonly added: readonly Row[];
  readonly removed: ReadonlySet<number>;
}

export const noEdits: Edits = { changed: new Map(), added: [], removed: new Set() };

const defaultTtl = 3600;

/** The domain of records. They contain its `Name`, which is in Unicode. */
type Zone = Pick<Domain, "Name">;

/** Returns the owner relative to the domain: `@`, `www`. */
function relativeOwner(owner: string, { Name }: Zone): string {
  const full = `${Name}.`;
  if (owner === full || owner === "@") return "@";
  return owner.endsWith(`.${full}`) ? owner.slice(0, -full.length - 1) : owner;
}

/** Returns the row of a record. */
export function rowOf(record: DnsRecord, zone: Zone): Row {
  const [, owner = "", value = ""] = /^(\S+) \d+ (?:IN )?[A-Z0-9]+ ([^]*)$/.exec(record.CanonicalDescription) ?? [];
  return { id: record.ID, owner: relativeOwner(owner, zone), type: record.TypeRecord, ttl: record.TTL, value };
}

/** Returns the rows by name, type and value, those of the domain itself first. The ids change when a version is restored. */
export function sortRows(rows: readonly Row[]): Row[] {
  const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  const nameOf = ({ owner }: Row): string => (owner === "@" ? "" : owner);
  return rows.toSorted(
    (a, b) => compare(nameOf(a), nameOf(b)) || compare(a.type, b.type) || compare(a.value, b.value) || a.id - b.id,
  );
}

/** Returns what changes add and remove as lines of a zone file: those of one name and type together, the removed ones first. */
export function linesOf(changes: readonly AppliedChange[], zone: Zone): { isAdded: boolean; text: string }[] {
  const lineOf = (record: DnsRecord, isAdded: boolean) => {
    const { owner, type, ttl, value } = rowOf(record, zone);
    return { key: `${owner} ${type} ${isAdded ? 1 : 0}`, isAdded, text: `${owner} ${ttl} IN ${type} ${value}` };
  };
  return changes
    .flatMap(({ Before, After }) => [
      ...(Before === null ? [] : [lineOf(Before, false)]),
      ...(After === null ? [] : [lineOf(After, true)]),
    ])
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ isAdded, text }) => ({ isAdded, text }));
}

const words = (value: string): string[] => value.trim().split(/\s+/);
/** Returns the number, or a text that is none, which the service rejects. */
const numberOf = (text = ""): number | string => (/^-?\d+$/.test(text) ? Number(text) : text);

/** Request fields of a type, from owner and value. */
const fieldsOf: Readonly<Record<string, (owner: string, value: string) => object>> = {
  A: (Name, value) => ({ Name, IP: value.trim() }),
  AAAA: (Name, value) => ({ Name, IP: value.trim() }),
  CNAME: (MnemonicName, value) => ({ MnemonicName, Name: value.trim() }),
  NS: (HostName, value) => ({ HostName, Name: value.trim() }),
  MX(Name, value) {
    const parts = words(value);
    // Without a priority it gets the usual one. A number alone is a priority whose host is not typed yet.
    const [priority, ...host] = parts.length === 1 && !/^\d+$/.test(value.trim()) ? ["10", ...parts] : parts;
    return { Name, HostName: host.join(" "), Priority: numberOf(priority) };
  },
  SRV(owner, value) {
    const [priority, weight, port, ...target] = words(value);
    const [service = "", proto = "", ...rest] = owner.split(".");
    const numbers = { Priority: numberOf(priority), Weight: numberOf(weight), Port: numberOf(port) };
    return {
      Name: rest.join(".") || "@",
      Service: service,
      Proto: proto.replace(/^_/, ""),
      ...numbers,
      Target: target.join(" "),
    };
  },
  TXT: (Name, value) => ({ Name, Text: value }),
};

/** Returns whether rows of this type can be edited here. */
export const isEditable = (type: string): boolean => type in fieldsOf;
/** Types that can be added here. */
export const editableTypes = Object.keys(fieldsOf) as RecordType[];

/** Example of a value, as placeholder. */
export const examples: Readonly<Record<string, string>> = {
  A: "192.0.2.10",
  AAAA: "2001:db8::10",
  CNAME: "www.example.com.",
  NS: "ns1.example.net.",
  MX: "10 mail.example.com.",
  SRV: "10 5 5060 sip.example.com.",
  TXT: '"v=spf1 -all"',
};

/** Returns whether a row has all that it needs. An empty name is that of the domain itself, but no service has it. */
export const isComplete = ({ type, owner, value }: Row): boolean => value !== "" && (owner !== "" || type !== "SRV");

/** Request fields of a row. */
const requestOf = ({ type, ttl: TTL, owner, value }: Row): Readonly<Record<string, unknown>> => ({
  TTL,
  ...fieldsOf[type]?.(owner === "" && type !== "SRV" ? "@" : owner, value),
});

const ownerFields: Readonly<Record<string, readonly string[]>> = {
  CNAME: ["MnemonicName"],
  NS: ["HostName"],
  SRV: ["Name", "Service", "Proto"],
};

export type Part = "owner" | "type" | "ttl" | "value";

const parts: Readonly<Record<string, Part>> = { TTL: "ttl", TypeRecord: "type" };

/** Returns the part of a row that contains a request field; undefined: the error concerns the row as a whole. */
export function partOf(type: string, field: string): Part | undefined {
  if (field === "" || field === "ID") return undefined;
  return parts[field] ?? ((ownerFields[type] ?? ["Name"]).includes(field) ? "owner" : "value");
}

/** Returns the request fields that differ. */
function differenceOf(before: Row, after: Row): object {
  const stored = requestOf(before);
  return Object.fromEntries(Object.entries(requestOf(after)).filter(([name, value]) => value !== stored[name]));
}

/** Returns the changeset of the edits, and for each change the id of its row. `stored`: the rows as they are now. */
export function changesetOf(
  edits: Edits,
  stored: ReadonlyMap<number, Row>,
): { readonly changes: ChangeInput[]; readonly rows: number[] } {
  const changes: ChangeInput[] = [];
  const rows: number[] = [];
  const add = (change: ChangeInput, row: number): void => {
    changes.push(change);
    rows.push(row);
  };
  for (const ID of edits.removed) add({ Op: "Delete", ID }, ID);
  for (const [ID, part] of edits.changed) {
    if (edits.removed.has(ID)) continue;
    const row = stored.get(ID);
    // The service reports a record that another client has deleted.
    add({ Op: "Update", ID, ...(row && differenceOf(row, { ...row, ...part })) }, ID);
  }
  for (const row of edits.added) add({ Op: "Create", TypeRecord: row.type, ...requestOf(row) }, row.id);
  return { changes, rows };
}

export const countEdits = ({ changed, added, removed }: Edits): number =>
  removed.size + added.length + [...changed.keys()].filter((id) => !removed.has(id)).length;

const without = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> =>
  new Map([...map].filter(([one]) => one !== key));

/** Returns the edits after a part of a row was changed. `stored`: the row as it is now. A row that is as stored counts no more. */
export function editRow(edits: Edits, stored: Row, part: Partial<Row>): Edits {
  const { id } = stored;
  if (id < 0) return { ...edits, added: edits.added.map((row) => (row.id === id ? { ...row, ...part } : row)) };
  const all = Object.entries({ ...edits.changed.get(id), ...part });
  const rest = all.filter(([name, value]) => value !== stored[name as keyof Row]);
  const changed =
    rest.length === 0 ? without(edits.changed, id) : new Map(edits.changed).set(id, Object.fromEntries(rest));
  return { ...edits, changed };
}

/** Returns a stored row as it is shown. */
export function withEdits(row: Row, { changed }: Edits): Row {
  const part = changed.get(row.id);
  return part === undefined ? row : { ...row, ...part };
}

/** Returns the edits after a row was removed, or the removal was undone. */
export function toggleRow(edits: Edits, id: number): Edits {
  if (id < 0) return { ...edits, added: edits.added.filter((row) => row.id !== id) };
  const removed = new Set(edits.removed);
  if (!removed.delete(id)) removed.add(id);
  return { ...edits, removed };
}

/** Returns the edits with a new row. */
export function addRow(edits: Edits, part: Partial<Row> = {}): Edits {
  const id = Math.min(0, ...edits.added.map((row) => row.id)) - 1;
  return { ...edits, added: [{ owner: "", type: "A", ttl: defaultTtl, value: "", ...part, id }, ...edits.added] };
}
