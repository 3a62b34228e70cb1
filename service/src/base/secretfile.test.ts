import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ensureSecretFile } from "./secretfile.ts";

test("a secret is created once, also after a start that was killed while it created the file", (context) => {
  const folder = mkdtempSync(join(tmpdir(), "brume-secret-"));
  context.after(() => rmSync(folder, { recursive: true }));
  // A process of a container has the PID of the killed one.
  writeFileSync(join(folder, `token.${process.pid}`), "12");
  const made = ensureSecretFile(folder, "token");
  assert.match(made.value, /^[0-9a-f]{64}$/);
  assert.equal(made.isNew, true);
  assert.deepEqual(readdirSync(folder), ["token"]);
  assert.deepEqual(ensureSecretFile(folder, "token"), { value: made.value, isNew: false });
});
