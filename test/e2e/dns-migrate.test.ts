/**
 * Domains that move to Brume (docs/spec.md#domain): `Migrate` imports the records of the current name servers before the response and in
 * limited time, and `IsDelegate` is true if the public DNS delegates to Brume. A second Brume is the current name server.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { type Client, createClient } from "@brume/api/client.ts";
import type { DnsRecord, Domain } from "@brume/api/dns.ts";
import { scopes } from "@brume/api/operation.ts";
import { ensureFirst } from "../../service/src/account/first.ts";
import { systemClock } from "../../service/src/base/clock.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createSealer } from "../../service/src/base/secret.ts";
import { type Fetched, type FetchZone, fetchZone } from "../../service/src/dns/migrate.ts";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import type { Nameserver } from "../../service/src/drivers/nameserver/interface.ts";
import { createSim } from "../../service/src/drivers/router/sim/sim.ts";
import { createService } from "../../service/src/service.ts";
import { type Kind, sqliteFirst, startDatabase } from "../support/databases.ts";
import { target } from "../support/dnsclient.ts";
import { checkedFetch, refused } from "../support/harness.ts";
import { createTestService, simulatedHost, type TestService } from "../support/testservice.ts";

const openNameserver = (transferTo: readonly string[] = []): Promise<Nameserver> =>
  createBuiltin({
    host: "127.0.0.1",
    port: 0,
    rateLimit: 0,
    transfer: { addresses: transferTo, keys: [], notify: [] },
    log: silentLog,
  });

interface MigrationService {
  readonly client: Client;
  /** Returns a client with this token. */
  as(token: string): Client;
  readonly dns: string;
  close(): Promise<void>;
}

/** A Brume with resolvers: they find the current name servers and the public delegation. */
async function openService(kind: Kind, fetchFrom: FetchZone | null, asksItself = false): Promise<MigrationService> {
  const database = await startDatabase(kind);
  const token = randomBytes(32).toString("hex");
  await ensureFirst(database.store, systemClock, token);
  const nameserver = await openNameserver();
  const dns = (await nameserver.observe()).address;
  const service = createService({
    ...simulatedHost(createSim(Date.now)),
    store: database.store,
    nameserver,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    sealer: createSealer(randomBytes(32)),
    version: "0.0.0",
    dnsNames: ["ns1.brume.internal"],
    resolvers: asksItself ? [dns] : [],
    parentPort: Number(dns.split(":")[1]),
    ...(fetchFrom !== null && { fetchZone: fetchFrom }),
    lenientHttp: false,
    tls: null,
  });
  const url = `http://${await service.listen("127.0.0.1", 0)}`;
  const as = (one: string): Client => createClient({ url, token: one, retries: 0, fetch: checkedFetch });
  return {
    client: as(token),
    as,
    dns,
    async close() {
      await service.close(1000);
      await nameserver.close();
      await database.close();
    },
  };
}

const file = `$TTL 3600
@ MX 10 mail
@ TXT "v=spf1 -all"
www A 192.0.2.1
mail 60 A 192.0.2.2
_dmarc TXT "v=DMARC1"
ftp CNAME www
hidden A 192.0.2.3
_sip._tcp SRV 1 2 5060 sip.example.net.
`;

const lines = ({ LinkedRecords }: Domain) =>
  LinkedRecords.map((record: DnsRecord) => record.CanonicalDescription).sort();

describe("a domain that moves here", () => {
  let open: TestService;
  let closed: TestService;
  before(async () => {
    open = await createTestService("sqlite", { nameserver: await openNameserver(["127.0.0.1"]) });
    closed = await createTestService("sqlite");
    for (const brume of [open, closed])
      for (const Name of ["moving.example", "bücher.example"])
        await brume.client.createDomain({ body: { Name, ZoneFile: file } });
  });
  after(async () => {
    await open.close();
    await closed.close();
  });

  const from =
    (brume: () => TestService): FetchZone =>
    (domain) => {
      const { host, port } = target(brume().dns);
      return fetchZone(domain, { deadlineMs: 5000, servers: [{ name: "ns.old", address: host, port: Number(port) }] });
    };

  for (const kind of sqliteFirst) {
    test(`is imported completely if zone transfer is allowed, on ${kind}`, async () => {
      const service = await openService(
        kind,
        from(() => open),
      );
      try {
        const old = await open.client.listDomains({ query: { name: "moving.example" } });
        const domain = await service.client.createDomain({ body: { Name: "moving.example", Migrate: true } });
        assert.deepEqual(lines(domain), lines(old[0] as Domain));
        assert.deepEqual(domain.Import, {
          State: "Completed",
          Records: 8,
          Skipped: [],
          Detail: `The zone was transferred from ns.old (127.0.0.1).`,
        });
        const read = await service.client.readDomain({ path: { id: domain.ID } });
        assert.deepEqual(read, domain);
        assert.ok(domain.LinkedRecords.every(({ State }) => State === "Active"));
        const [version] = await service.client.listVersions({ path: { id: domain.ID } });
        assert.equal(version?.Changes.length, 8);
        const other = await service.client.createDomain({ body: { Name: "BÜCHER.example", Migrate: true } });
        assert.equal(other.LinkedRecords.length, 8);
      } finally {
        await service.close();
      }
    });

    test(`is imported by queries if zone transfer is refused, on ${kind}`, async () => {
      const service = await openService(
        kind,
        from(() => closed),
      );
      try {
        const input = { DomainName: "moving.example", Migrate: "True", Ip: "192.0.2.9" } as never;
        const domain = await service.client.createDomain({ body: input });
        assert.deepEqual(lines(domain), [
          "@ 3600 IN A 192.0.2.9",
          '@ 3600 IN TXT "v=spf1 -all"',
          "@ 3600 MX 10 mail.moving.example.",
          '_dmarc.moving.example. 3600 IN TXT "v=DMARC1"',
          "ftp.moving.example. 3600 IN CNAME www.moving.example.",
          "mail.moving.example. 60 IN A 192.0.2.2",
          "www.moving.example. 3600 IN A 192.0.2.1",
        ]);
        assert.deepEqual([domain.Import?.State, domain.Import?.Records], ["Completed", 6]);
        assert.match(domain.Import?.Detail ?? "", /^No name server allowed a zone transfer/);
      } finally {
        await service.close();
      }
    });

    test(`is created empty if nothing can be imported, on ${kind}`, async () => {
      const service = await openService(kind, null);
      try {
        const domain = await service.client.createDomain({
          body: { Name: "moving.example", Migrate: true, Ip: "192.0.2.9" },
        });
        assert.deepEqual(lines(domain), ["@ 3600 IN A 192.0.2.9"]);
        assert.deepEqual(domain.Import, {
          State: "Failed",
          Records: 0,
          Skipped: [],
          Detail: "No name servers were found for moving.example.",
        });
        const plain = await service.client.createDomain({ body: { Name: "plain.example", Migrate: false } });
        assert.equal(plain.Import, null);
      } finally {
        await service.close();
      }
    });
  }

  test("lists the records that conflict or exceed the quota", async () => {
    const records = Array.from({ length: 8 }, (_, index) => ({
      type: "A" as const,
      owner: `h${index}`,
      ttl: 60,
      value: "192.0.2.1",
    }));
    const fetched: Fetched = { state: "Completed", records, skipped: ["left.example. CAA"], left: 0, detail: "Done." };
    const alias = { type: "CNAME" as const, owner: "@", ttl: 60, value: "www.example.net" };
    const results: Record<string, Fetched> = {
      "quota.example": fetched,
      "conflict.example": { ...fetched, records: [alias, ...records.slice(0, 2)] },
      "long.example": { ...fetched, skipped: Array.from({ length: 999 }, () => "left.example. CAA"), left: 7 },
    };
    const service = await openService("sqlite", async (domain) => results[domain] ?? fetched);
    try {
      const { ID } = await service.client.createProject({ body: { Name: "few", Quotas: { RecordsPerDomain: 5 } } });
      const { Token } = await service.client.createToken({ body: { Name: "few", Scopes: [...scopes], ProjectID: ID } });
      const create = async (Name: string, more = {}) =>
        (await service.as(Token).createDomain({ body: { Name, Migrate: true, ...more } })).Import;
      assert.deepEqual(await create("quota.example"), {
        State: "Completed",
        Records: 5,
        Skipped: ["left.example. CAA", ...[5, 6, 7].map((index) => `h${index}.quota.example. A: quota_exceeded`)],
        Detail: "Done. 3 records exceed the quota RecordsPerDomain.",
      });
      assert.deepEqual(await create("conflict.example", { Ip: "192.0.2.9" }), {
        State: "Completed",
        Records: 2,
        Skipped: ["left.example. CAA", "conflict.example. CNAME: cname_at_apex"],
        Detail: "Done.",
      });
      const { Skipped = [] } = (await create("long.example")) ?? {};
      assert.deepEqual(
        [Skipped.length, ...Skipped.slice(999)],
        [1001, "h5.long.example. A: quota_exceeded", "and 9 more"],
      );
    } finally {
      await service.close();
    }
  });

  test("is not imported without permission, and a dry run only reads it", async () => {
    let fetched = 0;
    const service = await openService("sqlite", async (domain) => {
      fetched += 1;
      return from(() => open)(domain);
    });
    try {
      const body = { Name: "moving.example", Migrate: true };
      const preview = await service.client.createDomain({ body }, { dryRun: true });
      assert.deepEqual([preview.ID, preview.LinkedRecords.length, preview.LinkedRecords[0]?.ID, fetched], [0, 8, 0, 1]);
      assert.deepEqual(await service.client.listDomains(), []);
      const file = service.client.createDomain({ body: { ...body, ZoneFile: "a A 192.0.2.1" } });
      await refused(file, "validation_failed", { "/Migrate": "fields_conflict" });
      await refused(service.client.createDomain({ body: { ...body, Name: "a b" } }), "validation_failed");
      assert.equal(fetched, 1);
    } finally {
      await service.close();
    }
  });
});

for (const kind of sqliteFirst)
  test(`a domain becomes delegated when the parent names our servers, with an event, on ${kind}`, async () => {
    const service = await openService(kind, null, true);
    try {
      // The parent is another domain, and the resolver knows only its name server.
      await service.client.createDomain({ body: { Name: "brume.internal", ZoneFile: "ns1 A 127.0.0.1\n" } });
      await service.client.createDomain({ body: { Name: "parent.example" } });
      const { ID, Delegation } = await service.client.createDomain({ body: { Name: "public.parent.example" } });
      assert.equal(Delegation, "Unknown");
      const path = { id: ID };
      const before = await service.client.raw.readDomain({ path });
      const isKnown = (domain: { Delegation: string }) => domain.Delegation === "Delegated";
      await service.client.waitFor("readDomain", { path }, { until: isKnown, timeout: 120_000 });
      const found = await service.client.raw.readDomain({ path });
      assert.equal(found.answer.IsDelegate, true);
      assert.equal(found.etag, before.etag, "nothing a client can set has changed");
      assert.equal(found.answer.Serial, before.answer.Serial);
      const events = await service.client.listEvents({ query: { type: "domain.changed" } });
      const domainEvents = events.filter((event) => event.ResourceID === ID);
      assert.deepEqual(
        domainEvents.map((event) => (event.Data as { Delegation: string }).Delegation),
        ["Delegated"],
      );
    } finally {
      await service.close();
    }
  });
