/**
 * Checks the stored data, independent of the API: the database is intact, rows are consistent, record sets are valid DNS
 * (docs/spec.md#stored-records-are-valid-dns), and the name server serves exactly these zones (docs/spec.md#host-equals-database), by
 * zone transfer.
 */
import assert from "node:assert/strict";
import { sql } from "kysely";
import { fullZone } from "../../service/src/dns/apply.ts";
import { absolute } from "../../service/src/dns/model/name.ts";
import { checkZone } from "../../service/src/dns/model/rules.ts";
import { servedOwner, sortKey } from "../../service/src/dns/model/served.ts";
import { storedOf } from "../../service/src/dns/model/show.ts";
import { type DomainRow, listRecords, type RecordRow } from "../../service/src/dns/table.ts";
import type { RecordData } from "../../service/src/drivers/nameserver/interface.ts";
import type { Reader } from "../../service/src/store/db.ts";
import { type Decoded, decode, query } from "../support/dnsclient.ts";
import { openStream } from "../support/dnstools.ts";
import type { Process } from "../support/process.ts";

const nameServers = ["ns1.brume.internal"];

/** A running service, or the data of an ended one: then `pid` is 0. */
type Subject = Pick<Process, "kind" | "dns" | "pid" | "snapshot">;

/** Throws on any error. If the service runs, also compares the name server with the database. */
export async function checkStored(process: Subject): Promise<void> {
  const { read, close } = await process.snapshot();
  try {
    if (process.kind === "sqlite") {
      const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(read);
      assert.deepEqual(rows, [{ integrity_check: "ok" }]);
      assert.deepEqual((await sql`pragma foreign_key_check`.execute(read)).rows, []);
    }
    const domains = await read.selectFrom("domain").selectAll().orderBy("id").execute();
    for (const domain of domains) {
      const records = await listRecords(read, domain.id);
      checkRows(domain, records);
      await checkVersions(read, domain);
      if (process.pid !== 0) await checkServed(process, domain, records);
    }
    const orphans = await read
      .selectFrom("record")
      .select("id")
      .where("domain_id", "not in", (sub) => sub.selectFrom("domain").select("id"))
      .execute();
    assert.deepEqual(orphans, []);
  } finally {
    await close();
  }
}

/** Names keep their letter case, and can have escapes: see `asciiName`. */
const validName = /^(?=.{1,253}$)(\*\.)?(([a-z0-9_/-]|\\\d{3}){1,63}\.)*([a-z0-9_/-]|\\\d{3}){1,63}$/i;

function checkRows(domain: DomainRow, rows: readonly RecordRow[]): void {
  const records = rows.map(storedOf);
  assert.deepEqual(checkZone(records), [], `the records of ${domain.ascii} are invalid DNS`);
  assert.equal(domain.record_count, rows.length, `the count of ${domain.ascii}`);
  assert.equal(domain.subtree, sortKey(domain.ascii));
  for (const row of rows) {
    const record = storedOf(row);
    const name = absolute(servedOwner(record), domain.ascii);
    assert.match(name, validName, `the name of record ${row.id}`);
    assert.equal(row.node, sortKey(servedOwner(record)));
    assert.ok(row.serial <= domain.serial, `record ${row.id} is newer than its domain`);
    assert.ok(row.ttl >= 0 && row.ttl <= 2 ** 31 - 1);
    assert.equal(typeof JSON.parse(row.labels), "object");
  }
}

async function checkVersions(read: Reader, domain: DomainRow): Promise<void> {
  const newest = await read
    .selectFrom("domain_version")
    .select("serial")
    .where("domain_id", "=", domain.id)
    .orderBy("serial", "desc")
    .limit(1)
    .executeTakeFirst();
  assert.equal(newest?.serial, domain.serial, `the newest version of ${domain.ascii}`);
}

/** Formats a record so that stored and served records can be compared. */
const line = (owner: string, ttl: number, type: string, data: string): string =>
  `${owner.toLowerCase() || "."} ${ttl} ${type} ${data}`;

function printData(type: string, data: RecordData): string {
  if (type === "TXT") return JSON.stringify(data[0]);
  return type === "AAAA" ? normal(String(data[0])) : data.map((value) => (value === "" ? "." : value)).join(" ");
}

type ExchangeData = { preference: number; exchange: string } & {
  priority: number;
  weight: number;
  port: number;
  target: string;
};

function printServed({ type, data }: Decoded): string {
  if (typeof data === "string") return type === "AAAA" ? normal(data) : data || ".";
  if (Array.isArray(data)) return JSON.stringify(data.map(String));
  const { exchange, preference, priority, weight, port, target } = data as ExchangeData;
  return type === "MX" ? `${preference} ${exchange || "."}` : `${priority} ${weight} ${port} ${target || "."}`;
}

/** Formats an IPv6 address as URLs do: RFC 5952, except addresses with an IPv4 part. */
const normal = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

async function checkServed(process: Subject, domain: DomainRow, rows: readonly RecordRow[]): Promise<void> {
  const { sets, serial } = fullZone(domain, rows, nameServers);
  const expected = sets.flatMap(({ owner, type, ttl, data }) =>
    data.map((one) => line(owner, ttl, type.name, printData(type.name, one))),
  );
  const stream = await openStream(process.dns);
  stream.write(query(domain.ascii, 252, { edns: 0 }));
  const served: Decoded[] = [];
  const isWhole = (): boolean => served.length > 1 && served.at(-1)?.type === "SOA";
  for (let message = await stream.next(); message !== null; message = await stream.next()) {
    served.push(...decode(message).answers);
    if (isWhole()) break;
  }
  stream.socket.destroy();
  const [soa] = served;
  assert.ok(soa !== undefined && isWhole(), `no transfer of ${domain.ascii}`);
  assert.equal((soa.data as { serial: number }).serial, serial, `the served serial of ${domain.ascii}`);
  const shown = served.slice(1, -1).map((record) => line(record.name, record.ttl, record.type, printServed(record)));
  assert.deepEqual(shown.sort(), expected.sort(), `${domain.ascii} as it is served, and as it is stored`);
}
