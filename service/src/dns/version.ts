/** History of a domain: a version per serial contains its changes. It is shown in the API, and read backwards to restore a state. */
import { formatDate } from "@brume/api/common.ts";
import type { DnsRecord, Version } from "@brume/api/dns.ts";
import { deflateInTurns, inflateText } from "../base/deflate.ts";
import { turn } from "../base/turn.ts";
import { countFitting } from "../http/list.ts";
import { type Reader, rest, runResting, type Tx } from "../store/db.ts";
import * as versions from "./changetable.ts";
import { showRow } from "./model/show.ts";
import type * as table from "./table.ts";

/** One record before and after a change; null: it did not exist. */
export interface VersionChange {
  readonly op: "Create" | "Update" | "Delete";
  readonly before: table.RecordRow | null;
  readonly after: table.RecordRow | null;
}

/** The columns of a record that a version stores. */
export type PastRecord = Pick<table.RecordRow, "id" | "type" | "owner" | "ttl" | "value" | "created" | "labels">;

interface PastChange {
  readonly op: VersionChange["op"];
  readonly before: PastRecord | null;
  readonly after: PastRecord | null;
}

const pastOf = (row: table.RecordRow | null): PastRecord | null => {
  if (row === null) return null;
  const { id, type, owner, ttl, value, created, labels } = row;
  return { id, type, owner, ttl, value, created, labels };
};

/** Who made a version, and when (ms since 1970). */
interface VersionAuthor {
  readonly token: number;
  readonly request: string;
  readonly now: number;
}

/** Stores the version of the present serial in the transaction of its changes. */
export function appendVersion(
  tx: Tx,
  domain: Pick<table.DomainRow, "id" | "serial">,
  changes: readonly VersionChange[],
  by: VersionAuthor,
): void {
  putText(tx, domain, `[${printPast(changes)}]`, by);
}

/** Changes whose text is created together. */
const printedTogether = 200;

/** Does the same for many changes, in slices. A long text is compressed: it repeats itself, and shrinks to a tenth. */
export async function appendLongVersion(
  tx: Tx,
  domain: Pick<table.DomainRow, "id" | "serial">,
  changes: readonly VersionChange[],
  by: VersionAuthor,
): Promise<void> {
  const texts: string[] = [];
  for (let from = 0; from < changes.length; from += printedTogether) {
    if (from > 0) await rest(tx);
    texts.push(printPast(changes.slice(from, from + printedTogether)));
  }
  const isLong = texts.reduce((sum, { length }) => sum + length, 0) > mostPlain;
  const parts = texts.map((text, index) => (index === 0 ? `[${text}` : `,${text}`));
  const text = isLong ? await runResting(tx, deflateInTurns([...parts, "]"])) : `[${texts.join()}]`;
  putText(tx, domain, text, by);
}

/** Characters from which on the changes of a version are compressed. */
const mostPlain = 65_536;

/** Returns the changes of a row. */
const readChanges = (text: string): PastChange[] =>
  JSON.parse(text.startsWith("[") ? text : inflateText(text)) as PastChange[];

/** Returns the changes as JSON, without the brackets of the list. */
const printPast = (changes: readonly VersionChange[]): string =>
  changes.map(({ op, before, after }) => JSON.stringify({ op, before: pastOf(before), after: pastOf(after) })).join();

function putText(tx: Tx, domain: Pick<table.DomainRow, "id" | "serial">, changes: string, by: VersionAuthor): void {
  versions.putVersion(tx, {
    domain_id: domain.id,
    serial: domain.serial,
    date: by.now,
    token_id: by.token,
    request_id: by.request,
    changes,
  });
}

/** A stored version. */
export interface PastVersion extends Omit<versions.VersionRow, "changes"> {
  readonly changes: readonly PastChange[];
}

/** Limits per query in bytes and rows, since a version may have any size, and ten times as much when it is not compressed. */
const pieceBytes = 100_000;
const pieceRows = 100;

/** Which versions are read, and how. */
export interface VersionQuery {
  /** Only versions below this serial. */
  readonly top?: number | undefined;
  /** Hidden changes, and versions without visible changes, are left out. */
  readonly canSee?: ((record: PastRecord) => boolean) | undefined;
  /** Called after each version: lets the event loop serve others. Default: in slices. A transaction rests instead. */
  readonly pause?: () => Promise<void>;
}

/** The pause of reads outside of transactions. */
async function pauseInTurns(): Promise<void> {
  if (turn.isOver()) await turn.next();
}

/** Yields versions, the newest first. */
export async function* readVersions(
  db: Reader,
  domain: number,
  { top = Number.MAX_SAFE_INTEGER, canSee, pause = pauseInTurns }: VersionQuery = {},
): AsyncGenerator<PastVersion, void> {
  for (let before = top; ; ) {
    const sizes = await versions.listVersionSizes.all(db, { domain, before, limit: pieceRows });
    if (sizes.length === 0) return;
    const limit = countFitting(sizes, pieceBytes, ({ size }) => size);
    for (const row of await versions.listVersions.all(db, { domain, before, limit })) {
      before = row.serial;
      const all = readChanges(row.changes);
      const changes = canSee ? all.filter((change) => isVisible(change, canSee)) : all;
      if (changes.length > 0 || canSee === undefined) yield { ...row, changes };
      await pause();
    }
  }
}

const isVisible = ({ before, after }: PastChange, canSee: (record: PastRecord) => boolean): boolean =>
  (before === null || canSee(before)) && (after === null || canSee(after));

/** Returns, with yields, the version that responses contain. */
export function* showVersion(row: PastVersion, domain: table.DomainRow): Generator<void, Version> {
  const show = (record: PastRecord | null): DnsRecord | null =>
    record === null ? null : showRow({ ...record, domain_id: domain.id, serial: 0 }, domain, domain.serial);
  const shown: Version["Changes"][number][] = [];
  for (const { op, before, after } of row.changes) {
    shown.push({ Op: op, Before: show(before), After: show(after) });
    yield;
  }
  return {
    Serial: row.serial,
    Date: formatDate(row.date),
    TokenID: row.token_id,
    RequestID: row.request_id,
    Changes: shown,
  };
}

/**
 * Returns the state at `serial` of the records that were changed after it, by id; null: the record did not exist. Returns undefined if there
 * is no version with that serial.
 */
export async function stateAt(
  tx: Tx,
  domain: number,
  serial: number,
): Promise<Map<number, PastRecord | null> | undefined> {
  const state = new Map<number, PastRecord | null>();
  for await (const version of readVersions(tx, domain, { pause: () => rest(tx) })) {
    if (version.serial === serial) return state;
    if (version.serial < serial) return undefined;
    for (const { before, after } of [...version.changes].reverse()) {
      const id = before?.id ?? after?.id;
      if (id !== undefined) state.set(id, before);
    }
  }
  return undefined;
}
