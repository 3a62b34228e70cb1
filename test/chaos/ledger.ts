/**
 * Compares a restarted service with the ledger of its clients (docs/spec.md#acknowledged-changes-survive, #idempotency-keys-survive,
 * #serials-grow-with-changes-only): every confirmed change exists exactly once, every other one completely or not at all, and API, events,
 * audit, history, idempotency keys and name server agree.
 */
import assert from "node:assert/strict";
import { openDnsClient } from "../support/dnsclient.ts";
import { dial } from "../support/httpsocket.ts";
import type { Process } from "../support/process.ts";
import type { Random } from "../support/random.ts";
import { asRequest, type Change, type Load, lookUp, lookUpSerial, type Thing, type Writer } from "./load.ts";

/** Last ids that earlier checks have covered. */
export interface LedgerResult {
  event: number;
  audit: number;
}

type There = ReadonlyMap<string, Thing>;

const writerOf = (name: string): number => Number(/\bw(\d+)\./.exec(name)?.[1] ?? -1);

/** Everything that the API shows, by name, and the serials of the zones with their ids. */
async function readWorld(process: Process) {
  const present = new Map<string, Thing>();
  const zones = new Map<string, { id: number; serial: number }>();
  const put = (name: string, thing: Thing): void => {
    assert.ok(!present.has(name), `${name} is there twice`);
    present.set(name, thing);
  };
  for (const domain of await process.client.listDomains()) {
    assert.equal(domain.State, "Active", `${domain.Name} after a start`);
    put(`zone ${domain.Name}`, { value: "zone", id: domain.ID });
    zones.set(domain.Name, { id: domain.ID, serial: domain.Serial });
    for (const record of domain.LinkedRecords) {
      assert.equal(record.State, "Active");
      const owner = record.HostName === "@" ? domain.Name : record.HostName.slice(0, -1);
      put(`A ${owner}`, { value: record.IP, id: record.ID });
    }
  }
  return { there: present, zones };
}

const valuesOf = (things: Iterable<readonly [string, Thing]>): Map<string, string> =>
  new Map([...things].map(([name, { value }]) => [name, value] as const).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Decides whether the one unconfirmed change happened, and stores the found objects with their ids in the writer. */
function decideUnconfirmed(writer: Writer, doubtful: Change | undefined, found: There): void {
  for (const [name, { id }] of writer.things) {
    const id2 = found.get(name)?.id;
    if (!doubtful?.effect.has(name)) assert.equal(id2, id, `the id of ${name}`);
  }
  const before = valuesOf(writer.things);
  const after = new Map(before);
  for (const [name, value] of doubtful?.effect ?? [])
    if (value === null) after.delete(name);
    else after.set(name, value);
  const now = valuesOf(found);
  const isApplied =
    doubtful !== undefined && [...doubtful.effect].every(([name, value]) => (now.get(name) ?? null) === value);
  const expected = isApplied ? valuesOf([...after].map(([name, value]) => [name, { value, id: 0 }] as const)) : before;
  assert.deepEqual(
    now,
    expected,
    `writer ${writer.number}, in doubt: ${doubtful?.method} ${doubtful?.path} ${doubtful?.body}`,
  );
  writer.things.clear();
  for (const [name, thing] of found) writer.things.set(name, thing);
  if (isApplied) doubtful.outcome = "acknowledged";
}

/** Rows by the request that made them. */
function group<T extends { readonly RequestID: string | null }>(rows: readonly T[]): Map<string | null, T[]> {
  return Map.groupBy(rows, ({ RequestID }) => RequestID);
}

async function readNew<T extends { readonly ID: number }>(pages: AsyncIterable<T[]>, last: number): Promise<T[]> {
  const rows: T[] = [];
  for await (const page of pages) {
    rows.push(...page.filter(({ ID }) => ID > last));
    if ((page.at(-1)?.ID ?? 0) <= last) break;
  }
  return rows;
}

/** Compares the number of rows of every request with the expected number. */
function compare(
  what: string,
  told: Map<string | null, readonly unknown[]>,
  expected: ReadonlyMap<string, number>,
): void {
  const counts = new Map([...told].map(([id, rows]) => [String(id), rows.length]));
  for (const [id, count] of expected) assert.equal(counts.get(id) ?? 0, count, `${what} of ${id}`);
  for (const [id, count] of counts) assert.ok(expected.has(id), `${count} ${what} of ${id}, which no client requested`);
}

/** Changes of the existing zones since their creation, as far as the ledger contains them. */
function historyOf(zone: string, applied: readonly Change[]): Change[] {
  const zoneChanges = applied.filter((change) => change.zone === zone);
  const made = zoneChanges.findLastIndex((change) => change.method === "POST" && change.path === "/dns");
  return made < 0 ? zoneChanges : zoneChanges.slice(made);
}

async function checkHistory(process: Process, zone: string, id: number, serial: number, applied: readonly Change[]) {
  const versions = await process.client.listVersions({ path: { id }, query: { limit: 1000 } });
  assert.equal(versions[0]?.Serial, serial, `the newest version of ${zone} is its serial`);
  for (let i = 1; i < versions.length; i++)
    assert.ok((versions[i]?.Serial ?? 0) < (versions[i - 1]?.Serial ?? 0), `serials of ${zone} in order`);
  const versionGroups = group(versions);
  for (const change of historyOf(zone, applied)) {
    const [version, ...more] = versionGroups.get(change.id) ?? [];
    assert.ok(version !== undefined && more.length === 0, `one version of ${zone} for ${change.id}`);
    const records = [...change.effect.keys()].filter((name) => name.startsWith("A ")).length;
    assert.equal(version.Changes.length, records, `changes in the version of ${change.id}`);
  }
}

async function checkNames(process: Process, load: Load, there: There, zones: ReadonlyMap<string, { serial: number }>) {
  const touched = load.changes.flatMap((change) => [...change.effect.keys()]);
  const names = [...new Set([...there.keys(), ...touched])].filter((name) => name.startsWith("A "));
  const dnsClient = await openDnsClient(process.dns);
  try {
    for (let from = 0; from < names.length; from += 100)
      await Promise.all(
        names.slice(from, from + 100).map(async (name) => {
          const value = there.get(name)?.value;
          const found = await lookUp(dnsClient, name.slice(2));
          assert.deepEqual(found, value === undefined ? [] : [value], `${name} after the start`);
        }),
      );
    for (const [zone, { serial }] of zones) {
      assert.equal(await lookUpSerial(dnsClient, zone), serial, `the served serial of ${zone}`);
      const seen = load.serials.get(zone) ?? 0;
      assert.ok(serial >= seen, `the serial of ${zone} went back to ${serial} from ${seen}`);
      load.serials.set(zone, serial);
    }
  } finally {
    dnsClient.close();
  }
}

/** Repeats each request with its key: a stored change returns its response, another one is done now. */
async function repeat(process: Process, load: Load, changes: readonly Change[]): Promise<Change[]> {
  const line = await dial(process.port);
  const late: Change[] = [];
  try {
    for (const change of changes) {
      const again = `${change.id}-again`;
      line.send(asRequest(change, process, again));
      const response = await line.receive();
      assert.equal(response.status, 200, `${change.id} again: ${response.body}`);
      const isReplayed = response.headers.get("idempotency-replayed") === "true";
      assert.equal(isReplayed, change.outcome === "acknowledged", `is ${change.id} known by its key?`);
      if (change.response !== null && isReplayed) {
        assert.equal(response.body, change.response.body, `the body of ${change.id}`);
        for (const name of ["etag", "content-type"])
          assert.equal(response.headers.get(name), change.response.headers.get(name));
      }
      if (isReplayed) continue;
      const done = { ...change, id: again };
      load.accept(done, response);
      late.push(done);
    }
  } finally {
    line.close();
  }
  return late;
}

/** Throws on any difference, and starts a new ledger. Resolves to the numbers of confirmed and of unconfirmed changes. */
export async function checkLedger(process: Process, load: Load, closed: LedgerResult, random: Random) {
  const [error] = load.errors;
  if (error !== undefined) throw error;
  const acknowledged = load.changes.filter(({ outcome }) => outcome === "acknowledged");
  const unknown = load.changes.filter(({ outcome }) => outcome === "unknown");

  const { there, zones } = await readWorld(process);
  const shares = Map.groupBy(there, ([name]) => writerOf(name));
  for (const writer of load.writers) {
    const unconfirmed = unknown.filter((change) => change.writer === writer);
    assert.ok(unconfirmed.length <= 1);
    decideUnconfirmed(writer, unconfirmed[0], new Map(shares.get(writer.number)));
  }

  const applied = load.changes.filter(({ outcome }) => outcome === "acknowledged");
  const isApplied = (change: Change): boolean => change.outcome === "acknowledged";
  const events = await readNew(
    process.client.pages("listEvents", { query: { after: closed.event, limit: 1000 } }),
    closed.event,
  );
  const eventGroups = group(events);
  compare(
    "events",
    eventGroups,
    new Map(load.changes.map((change) => [change.id, isApplied(change) ? change.events : 0])),
  );
  const audit = await readNew(process.client.pages("listAudit", { query: { limit: 1000 } }), closed.audit);
  // A repeated request is audited a moment later, without a change in the same transaction: a kill may lose that row.
  const names = new Set(load.changes.map(({ id }) => id));
  const done = audit.filter(
    ({ Status, RequestID }) => Status === 200 && (names.has(RequestID) || !RequestID.endsWith("-again")),
  );
  compare("audit rows", group(done), new Map(load.changes.map((change) => [change.id, isApplied(change) ? 1 : 0])));
  for (const [zone, { id, serial }] of zones) await checkHistory(process, zone, id, serial, applied);
  await checkNames(process, load, there, zones);

  closed.event = events.at(-1)?.ID ?? closed.event;
  const some = applied.filter(
    ({ response }) => response !== null && random.chance(Math.ceil(4000 / (applied.length + 1))),
  );
  const late = await repeat(process, load, [...some, ...unknown]);
  // Later audit rows are those of the repeats; the next ledger begins after the newest one.
  closed.audit = audit[0]?.ID ?? closed.audit;
  load.changes.length = 0;
  load.changes.push(...late);
  return {
    acknowledged: acknowledged.length,
    doubtful: unknown.length,
    happened: applied.length - acknowledged.length,
    events,
  };
}
