/**
 * Zones that the name server has saved: the next start serves them without reading their records, if they are those of the database. Each
 * test changes records without a new serial, so that the response shows whether they were read.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureFirst } from "../../service/src/account/first.ts";
import { silentLog } from "../../service/src/base/log.ts";
import { createZonePublisher, type ZonePublisherOptions } from "../../service/src/dns/publisher.ts";
import { createBuiltin } from "../../service/src/drivers/nameserver/builtin/builtin.ts";
import { append } from "../../service/src/engine/event.ts";
import type { Store } from "../../service/src/store/db.ts";
import { decode, openDnsClient, query } from "../support/dnsclient.ts";
import { invariant } from "../support/enginefixture.ts";

const now = Date.UTC(2026, 10, 20);
const clock = { now: () => now };
const never = { all: 3_600_000, changed: 3_600_000, retry: 3_600_000 };
const A = 1;

/** Commits of the service, reduced to what the zones depend on. */
function createWriter(store: Store) {
  const append1 =
    (id: number, type: string, date = now) =>
    (tx: Parameters<typeof append>[0]) =>
      append(tx, [{ type, date, project: 1, resource: "domain", id, data: null }]);
  return {
    create: (ascii: string, serial: number, address: string): Promise<number> =>
      store.write(async (tx) => {
        const subtree = `${ascii.split(".").reverse().join(".")}.`;
        const names = { name: ascii, ascii, subtree, project_id: 1, labels: "{}", version: 1, created: 0 };
        const { id } = await tx
          .insertInto("domain")
          .values({ ...names, serial, record_count: 1, is_delegate: 0 })
          .returning("id")
          .executeTakeFirstOrThrow();
        const content = { type: "A", owner: "www", node: "www.", ttl: 300, value: address, serial };
        await tx
          .insertInto("record")
          .values({ ...content, domain_id: id, created: 0, labels: "{}", version: 1 })
          .execute();
        await append1(id, "domain.created")(tx);
        return id;
      }),
    /** Replaces all addresses. No version of a domain shows it. */
    replace: (address: string): Promise<void> =>
      store.write(async (tx) => void (await tx.updateTable("record").set({ value: address }).execute())),
    raise: (id: number, serial: number, date?: number): Promise<void> =>
      store.write(async (tx) => {
        await tx.updateTable("domain").set({ serial }).where("id", "=", id).execute();
        await append1(id, "domain.changed", date)(tx);
      }),
    forgetEvents: (): Promise<void> => store.write(async (tx) => void (await tx.deleteFrom("event").execute())),
    remove: (id: number): Promise<void> =>
      store.write(async (tx) => {
        await tx.deleteFrom("domain").where("id", "=", id).execute();
        await append1(id, "domain.deleted")(tx);
      }),
  };
}

/** Runs a name server with its zones from the start until `act` ends. `act` gets a function that looks up the address of a name. */
async function run(
  store: Store,
  file: string,
  act: (lookUp: (name: string) => Promise<string>) => Promise<void> = async () => {},
  more: Partial<ZonePublisherOptions> = {},
): Promise<void> {
  const transfer = { addresses: [], keys: [], notify: [] };
  const nameserver = await createBuiltin({ host: "127.0.0.1", port: 0, rateLimit: 0, file, transfer, log: silentLog });
  const nameServers = ["ns1.brume.internal"];
  const zones = createZonePublisher({
    store,
    nameserver,
    nameServers,
    log: silentLog,
    version: 1,
    periods: never,
    ...more,
  });
  const dnsClient = await openDnsClient((await nameserver.observe()).address);
  try {
    await zones.adopted;
    await zones.loaded;
    await act(async (name) => {
      const bytes = await dnsClient.exchange(query(name, A));
      const { rcode, answers } = decode(bytes ?? Buffer.alloc(12));
      return answers.length === 0 ? rcode : String(answers[0]?.data);
    });
    await zones.save();
  } finally {
    zones.close();
    dnsClient.close();
    await nameserver.close();
  }
}

/** Registers a test with an empty folder for the file. */
const savedInvariant = (name: string, check: (store: Store, file: string) => Promise<void>): void =>
  invariant(name, async (store) => {
    const folder = mkdtempSync(join(tmpdir(), "brume-saved-"));
    try {
      await ensureFirst(store, clock, "0".repeat(64));
      await check(store, join(folder, "zones"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

savedInvariant("a start serves saved zones, and reads only those that have changed or are new", async (store, file) => {
  const { create, replace, raise, remove } = createWriter(store);
  for (const name of ["same", "changed", "deleted", "moved"]) await create(`${name}.example`, 10, "192.0.2.1");
  await run(store, file);
  await replace("192.0.2.2");
  await raise(2, 11);
  await remove(3);
  await store.write(async (tx) => {
    const { id } = await tx
      .insertInto("project")
      .values({ name: "other", created: 0, is_blocked: 0, quotas: "{}", version: 1 } as never)
      .returning("id")
      .executeTakeFirstOrThrow();
    await tx.updateTable("domain").set({ project_id: id }).where("id", "=", 4).execute();
  });
  await create("new.example", 10, "192.0.2.3");
  for (const _ of ["from the first file", "from the second"])
    await run(store, file, async (lookUp) => {
      assert.equal(await lookUp("www.same.example"), "192.0.2.1");
      assert.equal(await lookUp("www.changed.example"), "192.0.2.2");
      assert.equal(await lookUp("www.deleted.example"), "REFUSED");
      assert.equal(await lookUp("www.moved.example"), "192.0.2.2");
      assert.equal(await lookUp("www.new.example"), "192.0.2.3");
    });
});

savedInvariant(
  "zones of another version, of other name servers or of a damaged file are read again",
  async (store, file) => {
    const { create, replace } = createWriter(store);
    await create("zone.example", 10, "192.0.2.1");
    const expect =
      (address: string): Parameters<typeof run>[2] =>
      async (lookUp) =>
        assert.equal(await lookUp("www.zone.example"), address);
    await run(store, file);
    await replace("192.0.2.2");
    await run(store, file, expect("192.0.2.1"));
    await run(store, file, expect("192.0.2.2"), { version: 2 });
    await replace("192.0.2.3");
    await run(store, file, expect("192.0.2.3"), { version: 2, nameServers: ["ns2.brume.internal"] });
    await replace("192.0.2.4");
    writeFileSync(file, "no zones");
    await run(store, file, expect("192.0.2.4"));
    await replace("192.0.2.5");
    await run(store, file, expect("192.0.2.5"), { version: null });
  },
);

savedInvariant("a restored database gets none of the zones that were saved later", async (store, file) => {
  const { create, replace, raise, forgetEvents } = createWriter(store);
  const id = await create("zone.example", 10, "192.0.2.1");
  await raise(id, 12);
  await run(store, file);
  await replace("192.0.2.2");
  // Like a copy from before the last event, which then reaches the same serial.
  await forgetEvents();
  await raise(id, 12, now + 1);
  await run(store, file, async (lookUp) => assert.equal(await lookUp("www.zone.example"), "192.0.2.2"));
});

savedInvariant("a file with a zone that is newer than the database is deleted", async (store, file) => {
  const { create, replace, raise } = createWriter(store);
  const id = await create("zone.example", 10, "192.0.2.1");
  await run(store, file);
  await raise(id, 9);
  await replace("192.0.2.2");
  await run(store, file, async (lookUp) => {
    assert.equal(await lookUp("www.zone.example"), "192.0.2.2");
    assert.equal(existsSync(file), false);
  });
});

/** A record of each type, as the database contains it. */
const records: readonly (readonly [type: string, owner: string, value: string])[] = [
  ["AAAA", "www", "2001:db8::1"],
  ["CNAME", "alias", "www.zone.example"],
  ["MX", "@", "10 mail.example.net"],
  ["NS", "below", "ns.example.net"],
  ["SRV", "@", "_sip._tcp 1 2 5060 www.zone.example"],
  ["TXT", "*", "a b\x1fc"],
];

savedInvariant("saved zones have the bytes of this version of their contents", async (store, file) => {
  const { create } = createWriter(store);
  const domain_id = await create("zone.example", 10, "192.0.2.1");
  await store.write(async (tx) => {
    for (const [type, owner, value] of records) {
      const node = owner === "@" ? "" : `${owner.split(".").reverse().join(".")}.`;
      const content = { type, owner, node, value, ttl: 300, serial: 10, created: 0, labels: "{}", version: 1 };
      await tx
        .insertInto("record")
        .values({ ...content, domain_id })
        .execute();
    }
  });
  await run(store, file, async (lookUp) => assert.equal(await lookUp("www.zone.example"), "192.0.2.1"));
  const digest = createHash("sha256").update(readFileSync(file)).digest("hex");
  const advice = "increase `contentsVersion`: otherwise the next start serves zones of an earlier release";
  assert.equal(digest, "a81bd49111dddb59a8e263e4ae3a9536c8785faa61ffb7d526195250585be5b6", advice);
});
