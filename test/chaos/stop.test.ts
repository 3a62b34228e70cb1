/** A graceful stop under load: running requests finish, new ones are rejected, and the exit code is 0. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sqliteFirst } from "../support/databases.ts";
import { createProcess } from "../support/process.ts";
import { withSeed } from "../support/random.ts";
import { checkLedger, type LedgerResult } from "./ledger.ts";
import { createLoad, sharedZone } from "./load.ts";
import { checkStored } from "./stored.ts";

const writers = 24;

/** Ctrl-C reaches a child of npm twice at once. The service must not treat that as a request to stop at once. */
const ends: Record<string, readonly NodeJS.Signals[]> = {
  SIGTERM: ["SIGTERM"],
  "SIGINT twice at once": ["SIGINT", "SIGINT"],
};

for (const kind of sqliteFirst)
  test(`${kind}: a graceful stop under load loses nothing`, (context) =>
    withSeed(async (random) => {
      const brume = await createProcess(kind);
      try {
        const { ID } = await brume.client.createDomain({ body: { Name: sharedZone } });
        const [event] = (await brume.client.listEvents()).slice(-1);
        const [audit] = await brume.client.listAudit({ query: { limit: 1 } });
        const closed: LedgerResult = { event: event?.ID ?? 0, audit: audit?.ID ?? 0 };
        const load = createLoad(random, writers, ID);
        for (const [name, signals] of Object.entries(ends)) {
          let isOver = false;
          const running = load.burn(brume, () => isOver);
          await sleep(300 + random.below(500));
          isOver = true;
          assert.equal(await brume.end(...signals), 0, `the exit code after ${name}`);
          await running;
          assert.deepEqual(problemsIn(brume.log), [], `the log up to ${name}`);
          await brume.start();
          assert.deepEqual(problemsIn(brume.log), [], `the log of the start after ${name}`);
          const { acknowledged, doubtful, happened } = await checkLedger(brume, load, closed, random);
          assert.equal(happened, 0, `${name}: unconfirmed changes happened`);
          context.diagnostic(`${name}: ${acknowledged} acknowledged, ${doubtful} never answered`);
        }
        await checkStored(brume);
      } finally {
        await brume.close();
      }
    }));

/** Warnings and errors, except those that the PostgreSQL of the tests causes. */
function problemsIn(log: readonly { readonly level: number; readonly msg: string }[]): string[] {
  return log.filter(({ level, msg }) => level >= 40 && !msg.startsWith("PostgreSQL runs with")).map(({ msg }) => msg);
}
