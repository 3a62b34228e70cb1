/**
 * docs/spec.md#acknowledged-changes-survive, #idempotency-keys-survive, #acknowledged-records-are-served, #serials-grow-with-changes-only
 * under kill -9: many clients write, the service is killed at random moments, and after the restart every confirmed change exists once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { databases } from "../support/databases.ts";
import { createProcess } from "../support/process.ts";
import { runsOf, withSeed } from "../support/random.ts";
import { createFollower } from "./follower.ts";
import { checkLedger, type LedgerResult } from "./ledger.ts";
import { createLoad, sharedZone } from "./load.ts";
import { checkStored } from "./stored.ts";

const writers = 24;
const rounds = { sqlite: runsOf(6, 2), postgres: runsOf(5, 2) };

for (const kind of databases) {
  test(`${kind}: a first start that is killed at any moment is completed by the next`, () =>
    withSeed(async (random) => {
      const brume = await createProcess(kind, { stopped: true });
      try {
        for (let round = 0; round < 4; round++) await brume.startAndKill(150 + random.below(600));
        await brume.start();
        const { ID } = await brume.client.createDomain({ body: { Name: sharedZone } }, { idempotencyKey: "first" });
        assert.equal(ID, 1);
        await brume.end("SIGKILL");
        await brume.start();
        const again = await brume.client.raw.createDomain({ body: { Name: sharedZone } }, { idempotencyKey: "first" });
        assert.equal(again.headers.get("idempotency-replayed"), "true");
        const tokens = await brume.client.listTokens();
        assert.deepEqual(
          tokens.map((token) => token.ID),
          [1],
        );
        await checkStored(brume);
      } finally {
        await brume.close();
      }
    }));

  test(`${kind}: kill -9 under load neither loses, repeats nor splits a change`, (context) =>
    withSeed(async (random) => {
      const brume = await createProcess(kind);
      try {
        const { ID } = await brume.client.createDomain({ body: { Name: sharedZone } });
        const [event] = (await brume.client.listEvents()).slice(-1);
        const [audit] = await brume.client.listAudit({ query: { limit: 1 } });
        const closed: LedgerResult = { event: event?.ID ?? 0, audit: audit?.ID ?? 0 };
        const follower = createFollower(closed.event);
        const ids: number[] = [];
        const load = createLoad(random, writers, ID);
        const sums = { acknowledged: 0, doubtful: 0, happened: 0 };

        // A round may end before any response; then more rounds follow.
        for (let round = 1; round <= rounds[kind] || sums.acknowledged <= rounds[kind] * writers; round++) {
          await follower.follow(brume);
          let isOver = false;
          const running = load.burn(brume, () => isOver);
          await sleep(20 + random.below(900));
          isOver = true;
          await brume.end("SIGKILL");
          await running;
          if (random.chance(50)) await brume.startAndKill(50 + random.below(500));
          await brume.start();
          const found = await checkLedger(brume, load, closed, random);
          ids.push(...found.events.map(({ ID }) => ID));
          sums.acknowledged += found.acknowledged;
          sums.doubtful += found.doubtful;
          sums.happened += found.happened;
        }

        await checkStored(brume);
        await follower.follow(brume);
        const late = await brume.client.listEvents({ query: { after: closed.event, limit: 1000 } });
        ids.push(...late.map(({ ID }) => ID));
        await follower.until(ids.at(-1) ?? 0);
        assert.deepEqual(follower.ids, ids, "the stream, resumed after every kill, and the list of events");
        const { acknowledged, doubtful, happened } = sums;
        context.diagnostic(`${acknowledged} acknowledged, ${doubtful} in doubt, of which ${happened} had happened`);
      } finally {
        await brume.close();
      }
    }));
}
