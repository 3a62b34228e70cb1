/**
 * docs/spec.md#dry-run-changes-nothing, #put-what-get-shows-changes-nothing, #acknowledged-records-are-served,
 * #serials-grow-with-changes-only, #records-round-trip as loops: sending back an object as read changes nothing, a dry run returns the
 * response of the real call and changes no row, and the name server and the API agree after every change.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { contract, type OperationName, operationNames } from "@brume/api/contract.ts";
import type { ChangeInput, DnsRecord, Domain, RecordType } from "@brume/api/dns.ts";
import { isChange, type Operation } from "@brume/api/operation.ts";
import { sql } from "kysely";
import { decode, query } from "../support/dnsclient.ts";
import { openStream } from "../support/dnstools.ts";
import { type Harness, onEveryDatabase } from "../support/harness.ts";
import { runsOf, withSeed } from "../support/random.ts";
import { waitUntil } from "../support/waituntil.ts";
import { prepareRequests } from "./dryrun.ts";
import { openWalk } from "./walk.ts";

/** Fields of every type, with special cases. */
const odd: readonly ChangeInput[] = (
  [
    ["A", { IP: "192.0.2.1" }],
    ["A", { Name: "*.ж", IP: "192.0.2.1", TTL: 2_147_483_647, Labels: { a: "b", "c.d/e": "" } }],
    ["AAAA", { Name: "@", IP: "::ffff:192.0.2.1" }],
    ["AAAA", { Name: "ns.cut", IP: "2001:db8::1" }],
    ["CNAME", { MnemonicName: "*.alias", Name: "@" }],
    ["CNAME", { MnemonicName: "alias2", Name: "бюро.рф" }],
    ["MX", { HostName: ".", TTL: 1 }],
    ["MX", { Name: "sub", HostName: "mail", Priority: 65_535 }],
    ["MX", { Name: "sub", ExtHostName: "@" }],
    ["NS", { HostName: "cut", Name: "ns.cut.example." }],
    ["NS", { Name: "ns.example.net" }],
    ["SRV", { Service: "sip", Proto: "tls", Name: "ж.sub", Port: 65_535, Weight: 1, Priority: 2, Target: "single." }],
    ["SRV", { Service: "none", Proto: "tcp", Port: 0, Target: "." }],
    ["TXT", { Text: 'say "hi" \\ there' }],
    ["TXT", { Name: "long", Text: `${"ж".repeat(200)} \t${"x".repeat(300)}` }],
    ["TXT", { Name: "blank", Text: "  " }],
    ["TXT", { Name: "quotes", Text: '"' }],
    ["TXT", { Name: "escape", Text: "\\065 not A" }],
  ] as const
).map(([TypeRecord, fields]) => ({ Op: "Create", TypeRecord, ...fields }));

onEveryDatabase("consistency", (harness) => {
  describe("an object that is sent back as read", () => {
    let domain: Domain;
    const state = async () => [
      await harness.client.readDomain({ path: { id: domain.ID } }),
      (await harness.request(`GET /dns/${domain.ID}`)).headers.get("etag"),
      (await harness.client.raw.listEvents({ query: { limit: 1 } })).headers.get("x-total-count"),
    ];
    before(async () => {
      const { ID } = await harness.domain();
      await harness.client.changeRecords({ path: { id: ID }, body: { Changes: [...odd] } });
      domain = await harness.client.readDomain({ path: { id: ID } });
    });

    for (const [index, { TypeRecord, Op: _, ...fields }] of odd.entries())
      test(`changes nothing: ${TypeRecord} ${JSON.stringify(fields).slice(0, 60)}`, async () => {
        const was = await state();
        const record = domain.LinkedRecords[index] as DnsRecord;
        const type = record.TypeRecord.toLowerCase() as Lowercase<RecordType>;
        const response = await harness.request(`PUT /dns/record${type}/${record.ID}`, record);
        assert.deepEqual(response.json, record);
        const { Labels, ...flat } = record;
        const form = new URLSearchParams(
          Object.entries(flat).map(([name, value]): [string, string] => [name, String(value)]),
        );
        for (const [key, value] of Object.entries(Labels)) form.set(`Labels[${key}]`, value);
        assert.deepEqual((await harness.request(`PUT /dns/record${type}/${record.ID}`, String(form))).json, record);
        assert.deepEqual(await state(), was);
      });

    test("changes nothing: a whole domain, by its records and by its labels", async () => {
      const was = await state();
      const Changes = domain.LinkedRecords.map((record) => ({ Op: "Update", ...record }));
      const response = await harness.request(`POST /dns/${domain.ID}/changeset`, { Changes });
      assert.deepEqual(response.json, { Serial: domain.Serial, Created: 0, Updated: 0, Deleted: 0, Records: [] });
      await harness.request(`PUT /dns/${domain.ID}`, domain);
      assert.deepEqual(await state(), was);
    });

    test("changes nothing: a project", async () => {
      const was = await harness.request("GET /project/1");
      const response = await harness.request("PUT /project/1", was.json as object);
      assert.deepEqual([response.text, response.headers.get("etag")], [was.text, was.headers.get("etag")]);
    });

    test("changes nothing: a zone file, which creates an equal domain elsewhere", async () => {
      const was = await state();
      const path = { id: domain.ID };
      const ZoneFile = await harness.client.text("readDomain", { path });
      for (const Mode of ["Merge", "Replace"] as const) {
        const { Serial, Records } = await harness.client.importZone({ path, body: { ZoneFile, Mode } });
        assert.deepEqual([Serial, Records], [domain.Serial, []]);
      }
      assert.deepEqual(await state(), was);
      const descriptions = ({ LinkedRecords }: Domain) => LinkedRecords.map((one) => one.CanonicalDescription).sort();
      await harness.client.deleteDomain({ path });
      const again = await harness.client.createDomain({ body: { Name: domain.Name, ZoneFile } });
      assert.deepEqual(descriptions(again), descriptions(domain));
      assert.ok(again.Serial > domain.Serial);
    });
  });

  describe("a dry run", () => {
    let ids: {
      domain: number;
      doomed: number;
      records: Record<RecordType, number>;
      project: number;
      token: number;
      spare: number;
    };
    let ofMachines: Awaited<ReturnType<typeof prepareRequests>>;
    const bodies: Record<RecordType, object> = {
      A: { IP: "192.0.2.1" },
      AAAA: { IP: "2001:db8::1" },
      CNAME: { MnemonicName: "alias", Name: "a.b" },
      MX: { HostName: "mail" },
      NS: { HostName: "cut", Name: "a.b" },
      SRV: { Service: "sip", Proto: "tcp", Port: 1, Target: "a.b" },
      TXT: { Text: "a" },
    };
    before(async () => {
      const domain = await harness.domain();
      const types = Object.keys(bodies) as RecordType[];
      const Changes: ChangeInput[] = types.map((TypeRecord) => ({ Op: "Create", TypeRecord, ...bodies[TypeRecord] }));
      const { Records } = await harness.client.changeRecords({ path: { id: domain.ID }, body: { Changes } });
      const records = Object.fromEntries(Records.map(({ After }) => [After?.TypeRecord, After?.ID])) as Record<
        RecordType,
        number
      >;
      const spare = await harness.client.createRecordA({
        body: { DomainId: domain.ID, Name: "spare", IP: "192.0.2.1" },
      });
      const project = await harness.client.createProject({ body: { Name: "dry" } });
      const token = await harness.client.createToken({ body: { Name: "dry", Scopes: ["dns:read"] } });
      ids = {
        domain: domain.ID,
        doomed: (await harness.domain()).ID,
        records,
        project: project.ID,
        token: token.ID,
        spare: spare.ID,
      };
      ofMachines = await prepareRequests(harness);
      await settle(harness);
    });

    const requestOf = (
      name: OperationName,
    ): readonly [target: string, body?: object, headers?: Readonly<Record<string, string>>] => {
      const record = /^(create|update)Record(.+)$/.exec(name) as [string, string, RecordType] | null;
      if (record?.[1] === "create") {
        const more =
          record[2] === "CNAME"
            ? { MnemonicName: "new" }
            : record[2] === "NS"
              ? { HostName: "new2" }
              : { Name: "new3" };
        return [`/dns/record${record[2].toLowerCase()}`, { DomainId: ids.domain, ...bodies[record[2]], ...more }];
      }
      if (record) return [`/dns/record${record[2].toLowerCase()}/${ids.records[record[2]]}`, { TTL: 77 }];
      switch (name) {
        case "createDomain":
          return ["/dns", { Name: "dry.example", Ip: "192.0.2.1", ZoneFile: "www A 192.0.2.1\n" }];
        case "updateDomain":
          return [`/dns/${ids.domain}`, { Labels: { dry: "run" } }];
        case "deleteDomain":
          return [`/dns/${ids.doomed}`];
        case "changeRecords":
          return [
            `/dns/${ids.domain}/changeset`,
            {
              Changes: [
                { Op: "Create", TypeRecord: "A", Name: "set", IP: "192.0.2.1" },
                { Op: "Update", ID: ids.records.A, TTL: 5 },
              ],
            },
          ];
        case "importZone":
          return [`/dns/${ids.domain}/zonefile`, { ZoneFile: "file A 192.0.2.1\n", Mode: "Merge" }];
        case "restoreVersion":
          return [`/dns/${ids.domain}/restore`, { Serial: restoreTo }];
        case "deleteRecord":
          return [`/dns/${ids.domain}/${ids.spare}`];
        case "createProject":
          return ["/project", { Name: "dry too" }];
        case "updateProject":
          return [`/project/${ids.project}`, { Quotas: { CPU: 1 } }];
        case "deleteProject":
          return [`/project/${ids.project}`];
        case "createToken":
          return ["/token", { Name: "dry too", Scopes: ["dns:read"] }];
        case "deleteToken":
          return [`/token/${ids.token}`];
        default:
          return ofMachines[name] ?? assert.fail(`there is no request for ${name}`);
      }
    };
    let restoreTo = 0;

    for (const name of operationNames.filter((each) => isChange(contract[each] as Operation)))
      test(`of ${name} changes no row, and returns the real response`, async () => {
        const [oldest] = (await harness.client.listVersions({ path: { id: ids.domain } })).slice(-3);
        restoreTo = oldest?.Serial ?? 0;
        const [target, body, headers] = requestOf(name);
        const { method } = contract[name] as Operation;
        const rows = await dump(harness);
        const zones = (await harness.brume.nameserver.observe()).zones.map(({ zone, serial }) => `${zone} ${serial}`);
        const dry = await harness.request(`${method} ${target}?dryRun=true`, body, headers);
        assert.equal(dry.status, 200, dry.text);
        assert.deepEqual(await dump(harness), rows);
        assert.deepEqual(
          (await harness.brume.nameserver.observe()).zones.map(({ zone, serial }) => `${zone} ${serial}`),
          zones,
        );
        // By itself it might wait, and answer what came of it.
        const soon = ofMachines[name] === undefined ? {} : { Prefer: "wait=0" };
        const real = await harness.request(`${method} ${target}`, body, { ...soon, ...headers });
        assert.equal(real.status, 200, real.text);
        assertSameShape(dry.json, real.json, name);
        await settle(harness);
        assert.notDeepEqual(await dump(harness), rows, "the real call changes rows");
      });
  });

  test("random changes: API, serial and name server (UDP and TCP) agree after each", () =>
    withSeed(async (random) => {
      const domain = await harness.domain();
      const steps = runsOf(1000);
      const walk = await openWalk(harness.client, harness.brume.dns, domain, random);
      const taken = new Map<string, number>();
      try {
        // Every kind of change is accepted at least once.
        for (let i = 0; i < steps || taken.size < 6; i++) {
          const step = await walk.step();
          if (step.taken) taken.set(step.kind, (taken.get(step.kind) ?? 0) + 1);
          if (i % 100 === 99) await walk.checkAll();
        }
        await walk.checkAll();
      } finally {
        walk.close();
      }
    }));

  test("no reader sees an incomplete change", async () => {
    const domain = await harness.domain();
    const address = (i: number, generation: number) => `10.${generation}.0.${i + 1}`;
    const made = await harness.client.changeRecords({
      path: { id: domain.ID },
      body: {
        Changes: Array.from({ length: 20 }, (_, i) => ({
          Op: "Create",
          TypeRecord: "A",
          Name: "set",
          IP: address(i, 0),
        })),
      },
    });
    const ids = made.Records.map(({ After }) => After?.ID ?? 0);
    const streams = await Promise.all(Array.from({ length: 3 }, () => openStream(harness.brume.dns)));
    let isOver = false;
    let last = 0;
    const seen = new Set<number>();
    const watchers = streams.map(async (stream) => {
      let newest = 0;
      while (!isOver) {
        stream.write(query(`set.${domain.Name}`, 1));
        const { answers } = decode((await stream.next()) as Buffer);
        const generations = new Set(answers.map(({ data }) => Number(String(data).split(".")[1])));
        assert.deepEqual([answers.length, generations.size], [20, 1]);
        const [generation = 0] = generations;
        assert.ok(generation >= newest, "what was served does not come back");
        newest = generation;
        seen.add(generation);
      }
    });
    await waitUntil(
      "an event",
      () => seen.size,
      (size) => size > 0,
    );
    for (let generation = 1; generation <= 25; generation++) {
      const Changes = ids.map((ID, i) => ({ Op: "Update" as const, ID, IP: address(i, generation) }));
      await harness.client.changeRecords({ path: { id: domain.ID }, body: { Changes } });
      last = generation;
    }
    await Promise.race([
      Promise.all(watchers),
      waitUntil(
        `event ${last}`,
        () => seen,
        () => seen.has(last),
      ),
    ]);
    isOver = true;
    await Promise.all(watchers);
    for (const stream of streams) stream.socket.destroy();
    assert.ok(seen.size > 1);
  });
});

/** Waits until no background work writes. Periodic runs of reconcilers may continue. */
async function settle({ brume }: Harness): Promise<void> {
  const readWork = async (): Promise<object[]> => {
    const tasks = await brume.store.read
      .selectFrom("task")
      .select(["name", "state", "wake", "served", "lease"])
      .execute();
    const waiting = await brume.store.read
      .selectFrom("webhook_delivery")
      .select("id")
      .where("due", "is not", null)
      .execute();
    const running = tasks.filter((task) => (task.state === "Keeping" ? !isServed(task) : task.state === "InProgress"));
    return [...running, ...waiting];
  };
  await waitUntil("the end of the work", readWork, ({ length }) => length === 0, 20);
}

/** The worker of webhooks runs as long as a webhook exists, and serves requests when it ends. */
const isServed = ({
  name,
  wake,
  served,
  lease,
}: {
  name: string;
  wake: number;
  served: number;
  lease: string | null;
}) => name === "webhook.deliver" || (lease === null && wake === served);

/** Removes what changes without a request: the last use of a token, the next run of a reconciler, metrics. */
function timeless(table: string, row: object): object | null {
  if (table === "token") return { ...row, last_used: null };
  if (table !== "task" || (row as { state: string }).state !== "Keeping") return row;
  const { name, subject_id, wake } = row as Record<string, unknown>;
  return { name, subject_id, wake: Number(wake) };
}

/** Returns every row of every table. */
async function dump({ kind, brume }: Harness): Promise<Record<string, unknown[]>> {
  const list =
    kind === "sqlite"
      ? sql<{ name: string }>`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`
      : sql<{ name: string }>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`;
  // The service itself writes these periodically.
  const periodic = ["sample", "prune_time"];
  const names = (await list.execute(brume.store.read)).rows.map(({ name }) => name);
  const tables = names.filter((name) => !periodic.includes(name));
  assert.ok(tables.length >= 10, "all tables are read");
  const rows: Record<string, unknown[]> = {};
  for (const name of tables) {
    const found = await sql<object>`SELECT * FROM ${sql.table(name)}`.execute(brume.store.read);
    rows[name] = found.rows.flatMap((row) => JSON.stringify(timeless(name, row)) ?? []).sort();
  }
  return rows;
}

const dates = /^\d{4}-\d\d-\d\dT/;

const withoutNumber = (text: unknown): string => String(text).replace(/brume-\d+/g, "brume");

/** docs/spec.md#dry-run-changes-nothing: the two responses are equal except for new ids, secrets and times. */
function assertSameShape(dry: unknown, real: unknown, at: string): void {
  if (dry === 0 && /ID$/i.test(at)) return assert.ok(Number(real) > 0, at);
  if (dry === "" && /\.(Token|Secret)$/.test(at)) return assert.match(String(real), /^[0-9a-f]{64}$/);
  if (dry === "" && at.endsWith(".AdminPassword")) return assert.match(String(real), /^[A-Za-z0-9]{16}$/);
  if (dry === "" && at.endsWith(".RecordText")) return assert.match(String(real), /^brume-claim=[0-9a-f]{32}$/);
  if (dry === "" && at.endsWith(".Url")) return assert.match(String(real), /^ws:/);
  // These come of an id.
  if (at.endsWith(".MAC")) return assert.match(String(real), /^02:/);
  if (at.endsWith(".PeerConfig")) return assert.equal(withoutNumber(real), withoutNumber(dry));
  if (at === "issueTunnelPeer.Config")
    return assert.equal(String(real).replace(/^(PrivateKey = )[\w+/]{43}=$/m, "$1<private key>"), dry);
  if (at === "issueTunnelPeer.Qr") return assert.match(String(real), /^<svg/);
  if (typeof dry === "string" && dates.test(dry)) return assert.match(String(real), dates);
  if (at.endsWith(".Serial")) return assert.ok(Number(real) >= Number(dry) && Number(real) - Number(dry) < 60, at);
  if (typeof dry !== "object" || dry === null) return assert.equal(real, dry, at);
  const [wanted, came] = [Object.entries(dry), real as Record<string, unknown>];
  assert.deepEqual(
    Object.keys(came),
    wanted.map(([key]) => key),
    at,
  );
  for (const [key, value] of wanted) assertSameShape(value, came[key], `${at}.${key}`);
}
