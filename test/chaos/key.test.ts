/** A start with a missing, wrong or readable-by-others key fails and changes nothing; with the right key it works. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sqliteFirst } from "../support/databases.ts";
import { createProcess } from "../support/process.ts";

for (const kind of sqliteFirst)
  test(`${kind}: the key of a database is required and checked`, async () => {
    const brume = await createProcess(kind);
    try {
      const refused = async (reason: RegExp): Promise<void> => {
        await assert.rejects(brume.start(), reason);
        await brume.end();
      };
      const key = join(brume.folder, "key");
      const kept = `${key}.kept`;
      const made = await brume.client.createDomain({ body: { Name: "key.test" } }, { idempotencyKey: "one" });
      await brume.end("SIGTERM");

      renameSync(key, kept);
      await refused(/key is missing.*put the copy of this file back, or set BRUME_KEY/s);
      assert.ok(!existsSync(key), "no new key is created");

      writeFileSync(key, "0".repeat(64), { mode: 0o600 });
      await refused(/key is not the key that sealed.*put back the key/s);

      rmSync(key);
      renameSync(kept, key);
      chmodSync(key, 0o640);
      await refused(/key has mode 640.*chmod 600/s);
      chmodSync(key, 0o600);
      await brume.start();
      const again = await brume.client.createDomain({ body: { Name: "key.test" } }, { idempotencyKey: "one" });
      assert.equal(again.ID, made.ID, "earlier sealed values can be opened");

      // In a database without a probe, another sealed value is used to check the key.
      await brume.end("SIGTERM");
      await brume.query("delete from probe");
      const right = readFileSync(key, "utf8");
      writeFileSync(key, "0".repeat(64));
      await refused(/key is not the key that sealed/);
      writeFileSync(key, right);
      await brume.start();
    } finally {
      await brume.close();
    }
  });
