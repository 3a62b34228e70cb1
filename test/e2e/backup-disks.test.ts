/** `npm run backup -- FOLDER --with-disks` of an installation without servers: a second backup does not disturb the first. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { migrate } from "../../service/src/store/migrate.ts";
import { databaseName, lockFile, openSqlite } from "../../service/src/store/sqlite.ts";

const program = resolve(import.meta.dirname, "../../scripts/backup.ts");

test("a second backup with disks is rejected while the first one runs, and removes nothing of it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "brume-backup-"));
  const [data, backups] = [join(folder, "data"), join(folder, "backups")];
  mkdirSync(join(backups, "2026-11-22T230000Z.part"), { recursive: true });
  mkdirSync(data, { mode: 0o700 });
  try {
    const store = await openSqlite(join(data, databaseName), { log: () => {} });
    await migrate(store);
    await store.close();
    const environment = { PATH: process.env["PATH"], BRUME_DATA: data, BRUME_SIMULATE: "1" };
    const backUp = () => {
      const options = { env: environment, encoding: "utf8" } as const;
      const { status, stderr } = spawnSync(process.execPath, [program, backups, "--with-disks"], options);
      return { status, stderr };
    };
    const first = lockFile(join(data, "backup"), "data folder");
    const { status, stderr } = backUp();
    assert.equal(status, 1);
    assert.match(
      stderr,
      /the data folder .* is in use by another backup with disks \(.*pid \d+.*\): start this one when/,
    );
    assert.deepEqual(readdirSync(backups), ["2026-11-22T230000Z.part"]);
    first.close();
    assert.deepEqual([backUp().status, readdirSync(backups).filter((name) => name.endsWith(".part"))], [0, []]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
