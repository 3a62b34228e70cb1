/** Creates a data folder with many domains and records by writing to its database: the API would take minutes. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ensureFirst } from "../../service/src/account/first.ts";
import { systemClock } from "../../service/src/base/clock.ts";
import { ensureSecretFile } from "../../service/src/base/secretfile.ts";
import * as table from "../../service/src/dns/table.ts";
import { reserveIds } from "../../service/src/store/db.ts";
import { migrate } from "../../service/src/store/migrate.ts";
import { databaseName, openSqlite } from "../../service/src/store/sqlite.ts";

/** Creates `zone-0.example` to `zone-<domains - 1>.example`, each with `each` A records `h0`, `h1`, … Ids start at 1. */
export async function fill(folder: string, domains: number, each: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const store = await openSqlite(join(folder, databaseName), { log: () => {} });
  await migrate(store);
  await ensureFirst(store, systemClock, ensureSecretFile(folder, "token").value);
  const now = systemClock.now();
  const serial = Math.floor(now / 1000);
  for (let from = 0; from < domains; from += 100)
    await store.write(async (tx) => {
      await tx.updateTable("project").set({ quotas: '{"Domains":1000000,"RecordsPerDomain":1000000}' }).execute();
      for (let i = from; i < Math.min(domains, from + 100); i++) {
        const [id = 0] = await reserveIds(tx, "domain", 1);
        table.addDomain(tx, {
          id,
          project_id: 1,
          name: `zone-${i}.example`,
          ascii: `zone-${i}.example`,
          subtree: `example.zone-${i}.`,
          serial,
          record_count: each,
          is_delegate: 0,
          delegation: "Unknown",
          is_proven: 0,
          import_report: null,
          created: now,
          labels: "{}",
          version: 1,
        });
        for (let j = 0; j < each; j++)
          await table.insertRecord.insert(tx, {
            domain_id: id,
            type: "A",
            owner: `h${j}`,
            node: `h${j}.`,
            ttl: 300,
            value: `192.0.${j % 250}.${i % 250}`,
            serial,
            created: now,
            labels: "{}",
            version: 1,
          });
      }
    });
  await store.close();
}
