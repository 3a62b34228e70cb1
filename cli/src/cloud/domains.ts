/** Differences of domains and their records. Records are compared as the service stores them: it normalises them in a dry run. */
import { ApiError } from "@brume/api/client.ts";
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { asciiName } from "../idna.ts";
import type { Path } from "../model/cloud/check.ts";
import type { Cloud, RecordEntry } from "../model/cloud/document.ts";
import { describeRecord, entryOf, identityOf, requestOf } from "../model/cloud/records.ts";
import {
  type Change,
  diffLabels,
  type FieldChange,
  isOwned,
  isSame,
  labelsOf,
  type Planning,
  requireOwner,
  stages,
} from "./change.ts";
import { deleteAndWait } from "./wait.ts";

/** Most changes of one request (docs/spec.md#changesets-zone-files-and-history). */
const mostChanges = 10_000;

type RecordChange = Record<string, unknown> & { readonly Op: "Create" | "Update" | "Delete" };
type DomainEntry = NonNullable<Cloud["Domains"]>[number];

/** A record of the file, and the record that exists for it. */
interface Pair {
  readonly entry: RecordEntry;
  readonly index: number;
  readonly record: DnsRecord | undefined;
}

/** Text of a record without the fields that may differ. */
const formOf = (entry: RecordEntry) => {
  const data = Object.entries(entry).filter(([name]) => name !== "TTL" && name !== "Labels");
  return JSON.stringify(data.toSorted(([a], [b]) => (a < b ? -1 : 1)));
};

/** Takes one record with the key. */
function take(all: Map<string, DnsRecord[]>, key: string): DnsRecord | undefined {
  return all.get(key)?.shift();
}

function groupBy(records: readonly DnsRecord[], key: (record: DnsRecord) => string): Map<string, DnsRecord[]> {
  const groups = new Map<string, DnsRecord[]>();
  for (const record of records) groups.set(key(record), [...(groups.get(key(record)) ?? []), record]);
  return groups;
}

/** Returns the records of the file as the service would store them, by a dry run in which all others are deleted. */
async function normalise(
  planning: Planning,
  domain: Domain,
  rest: readonly DnsRecord[],
  wanted: readonly Pair[],
  path: Path,
) {
  const { client, signal, problems } = planning;
  const stored: (DnsRecord | null)[] = [];
  const deletions = rest.map(({ ID }): RecordChange => ({ Op: "Delete", ID }));
  const size = mostChanges - deletions.length;
  if (size < 1) {
    problems.push({ path, message: `${domain.Name} has too many records for a cloud file. Use brume dns import.` });
    return null;
  }
  for (let start = 0; start < wanted.length; start += size) {
    const part = wanted.slice(start, start + size);
    const Changes = [...deletions, ...part.map(({ entry }): RecordChange => ({ Op: "Create", ...requestOf(entry) }))];
    try {
      const result = await client.changeRecords(
        { path: { id: domain.ID }, body: { Changes } },
        { dryRun: true, signal },
      );
      stored.push(...result.Records.filter(({ Op }) => Op === "Create").map(({ After }) => After));
    } catch (error) {
      if (!addProblems(planning, error, part, deletions.length, path)) throw error;
      return null;
    }
  }
  return stored;
}

/** Adds a problem for each record that the service rejects; returns false for other errors. */
function addProblems(
  { problems }: Planning,
  error: unknown,
  wanted: readonly Pair[],
  before: number,
  path: Path,
): boolean {
  if (!(error instanceof ApiError)) return false;
  const found = error.errors.flatMap(({ pointer, detail }) => {
    const place = Number(/^\/Changes\/(\d+)/.exec(pointer)?.[1] ?? Number.NaN) - before;
    const pair = wanted[place];
    return pair ? [{ path: [...path, "Records", pair.index], message: detail }] : [];
  });
  problems.push(...found);
  return found.length > 0;
}

/** Finds the existing record of each record of the file. Returns null if the service rejects some. */
async function pair(
  planning: Planning,
  domain: Domain,
  entries: readonly RecordEntry[],
  path: Path,
): Promise<Pair[] | null> {
  const byForm = groupBy(domain.LinkedRecords, (record) => formOf(entryOf(record, domain.Name)));
  const first = entries.map((entry, index): Pair => ({ entry, index, record: take(byForm, formOf(entry)) }));
  const open = first.filter(({ record }) => record === undefined);
  if (open.length === 0) return first;
  const rest = [...byForm.values()].flat();
  const stored = await normalise(planning, domain, rest, open, path);
  if (stored === null) return null;
  const byIdentity = groupBy(rest, identityOf);
  const later = new Map(open.map(({ index }, place) => [index, stored[place]]));
  return first.map((one) => {
    const after = later.get(one.index);
    return after ? { ...one, record: take(byIdentity, identityOf(after)) } : one;
  });
}

interface RecordPlan {
  readonly changes: readonly RecordChange[];
  readonly fields: readonly FieldChange[];
}

const fieldOf = ({ Name }: RecordEntry) => `record ${Name}`;

/** Returns the changeset. A deleted and a new record of one owner and type become one update, which keeps the id. */
function planRecords(planning: Planning, domain: Domain | null, pairs: readonly Pair[]): RecordPlan {
  const { label } = planning;
  const changes: RecordChange[] = [];
  const fields: FieldChange[] = [];
  const used = new Set(pairs.map(({ record }) => record?.ID));
  const old = (domain?.LinkedRecords ?? []).filter((record) => !used.has(record.ID) && isOwned(record, label));
  const ownerOf = (record: DnsRecord) =>
    JSON.stringify([record.TypeRecord, entryOf(record, domain?.Name ?? "").Name.toLowerCase()]);
  const replaceable = groupBy(old, ownerOf);
  for (const { entry, record } of pairs) {
    const known = record ?? take(replaceable, JSON.stringify([entry.Type, entry.Name.toLowerCase()]));
    const Labels = labelsOf(entry, known?.Labels ?? {}, label);
    if (known === undefined) {
      changes.push({ Op: "Create", ...requestOf({ ...entry, Labels }) });
      fields.push({ field: fieldOf(entry), before: null, after: describeRecord(entry) });
      continue;
    }
    const before = entryOf(known, domain?.Name ?? "");
    const isEqual = record !== undefined && (entry["TTL"] === undefined || entry["TTL"] === known.TTL);
    if (isEqual && isSame(Labels, known.Labels)) continue;
    const sent =
      record === undefined
        ? requestOf({ ...entry, Labels })
        : { TypeRecord: entry.Type, Labels, ...("TTL" in entry && { TTL: entry["TTL"] }) };
    changes.push({ Op: "Update", ID: known.ID, ...sent });
    const [was, will] = [describeRecord(before), describeRecord({ ...entry, TTL: entry["TTL"] ?? known.TTL })];
    fields.push(
      isEqual
        ? { field: `${fieldOf(entry)} ${entry.Type} Labels`, before: known.Labels, after: Labels }
        : { field: fieldOf(entry), before: was, after: will },
    );
  }
  for (const record of [...replaceable.values()].flat()) {
    changes.push({ Op: "Delete", ID: record.ID });
    const entry = entryOf(record, domain?.Name ?? "");
    fields.push({ field: fieldOf(entry), before: describeRecord(entry), after: null });
  }
  return { changes, fields };
}

const isNamed = ({ NamePunyCode }: Domain, name: string) => NamePunyCode === asciiName(name);

/** Sends the changes; more than one request can hold are sent in parts. `etag`: of the domain as it was compared. */
async function send(
  { client, signal }: Planning,
  id: number,
  changes: readonly RecordChange[],
  etag: string | null,
): Promise<void> {
  for (let start = 0; start < changes.length; start += mostChanges) {
    const input = { path: { id }, body: { Changes: changes.slice(start, start + mostChanges) } };
    await client.changeRecords(input, { signal, ...(start === 0 && etag !== null && { ifMatch: etag }) });
  }
}

function planNew(planning: Planning, entry: DomainEntry, path: Path): Change {
  const { client, signal, label } = planning;
  const pairs = (entry.Records ?? []).map((one, index) => ({ entry: one, index, record: undefined }));
  const { changes, fields } = planRecords(planning, null, pairs);
  const body = { Name: entry.Name, Labels: labelsOf(entry, {}, label) };
  return {
    op: "Create",
    kind: "Domains",
    name: entry.Name,
    id: null,
    fields,
    path,
    stage: stages.domains,
    check: () => client.createDomain({ body }, { dryRun: true, signal }),
    async run(work) {
      const { ID } = await client.createDomain({ body }, { signal });
      work.progress(`${changes.length} records`);
      await send(planning, ID, changes, null);
    },
  };
}

async function planDomain(planning: Planning, entry: DomainEntry, path: Path): Promise<Change[]> {
  const { client, signal, label, found } = planning;
  const known = found.domains.find((domain) => isNamed(domain, entry.Name));
  if (known === undefined) return [planNew(planning, entry, path)];
  requireOwner(planning, known, `The domain ${known.Name}`, path);
  const { answer, etag } = await client.raw.readDomain({ path: { id: known.ID } }, { signal });
  const pairs = entry.Records === undefined ? [] : await pair(planning, answer, entry.Records, path);
  if (pairs === null) return [];
  const { changes, fields } =
    entry.Records === undefined ? { changes: [], fields: [] } : planRecords(planning, answer, pairs);
  const labels = diffLabels(entry, answer.Labels, label);
  if (changes.length + labels.length === 0) return [];
  const input = { path: { id: known.ID }, body: { Labels: labelsOf(entry, answer.Labels, label) } };
  const few = changes.length > 0 && changes.length <= mostChanges;
  return [
    {
      op: "Update",
      kind: "Domains",
      name: known.Name,
      id: known.ID,
      fields: [...labels, ...fields],
      path,
      stage: stages.domains,
      ...(few && {
        check: () =>
          client.changeRecords({ path: { id: known.ID }, body: { Changes: [...changes] } }, { dryRun: true, signal }),
      }),
      async run() {
        await send(planning, known.ID, changes, etag);
        if (labels.length > 0) await client.updateDomain(input, { signal });
      },
    },
  ];
}

/** Returns the differences of all domains. */
export async function planDomains(planning: Planning, entries: readonly DomainEntry[]): Promise<Change[]> {
  const { client, signal, label, found } = planning;
  const changes: Change[] = [];
  for (const [index, entry] of entries.entries())
    changes.push(...(await planDomain(planning, entry, ["Domains", index])));
  for (const domain of found.domains) {
    if (!isOwned(domain, label) || entries.some(({ Name }) => isNamed(domain, Name))) continue;
    const input = { path: { id: domain.ID } };
    const { LinkedRecords } = await client.readDomain(input, { signal });
    changes.push({
      op: "Delete",
      kind: "Domains",
      name: domain.Name,
      id: domain.ID,
      fields: [{ field: "Records", before: LinkedRecords.length, after: null }],
      path: null,
      stage: stages.domains,
      run: (work) =>
        deleteAndWait(
          work,
          () => client.deleteDomain(input, { signal }),
          () => client.readDomain(input, { signal }),
          "deleteDomain",
        ),
    });
  }
  return changes;
}
