/** `/readyz` returns 503 and names the failed check if the database or the name server does not respond. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reader } from "../../service/src/store/db.ts";
import { databases } from "../support/databases.ts";
import { createTestService, type TestService } from "../support/testservice.ts";

async function readReadiness(brume: TestService): Promise<{ status: number; failing: string[] }> {
  const answer = await fetch(`${brume.url}/readyz`);
  const { Checks } = (await answer.json()) as { Checks: { Name: string; Ok: boolean }[] };
  return { status: answer.status, failing: Checks.filter(({ Ok }) => !Ok).map(({ Name }) => Name) };
}

for (const kind of databases) {
  test(`a database that does not respond is reported on ${kind}`, async () => {
    const brume = await createTestService(kind);
    try {
      assert.deepEqual(await readReadiness(brume), { status: 200, failing: [] });
      const { getExecutor } = brume.store.read;
      const broken = () => {
        throw new Error("gone");
      };
      (brume.store.read as { getExecutor: Reader["getExecutor"] }).getExecutor = broken;
      assert.deepEqual(await readReadiness(brume), { status: 503, failing: ["database"] });
      (brume.store.read as { getExecutor: Reader["getExecutor"] }).getExecutor = getExecutor;
      assert.deepEqual(await readReadiness(brume), { status: 200, failing: [] });
    } finally {
      await brume.close();
    }
  });

  test(`a name server that is closed is reported on ${kind}`, async () => {
    const brume = await createTestService(kind);
    try {
      await brume.nameserver.close();
      assert.deepEqual(await readReadiness(brume), { status: 503, failing: ["nameserver"] });
    } finally {
      await brume.close();
    }
  });
}
