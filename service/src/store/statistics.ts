/**
 * Refreshes the statistics with which PostgreSQL plans queries, when a table has grown by half. Autovacuum does so too, but only once a
 * minute or later: until then, a query that was planned for an empty table reads all of a table that may have 100,000 rows.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../base/log.ts";
import type { Row } from "./session.ts";

/** Milliseconds between two checks. */
const period = 2_000;

const grown = `select relname as name from pg_stat_user_tables
  where schemaname = current_schema() and n_mod_since_analyze > greatest(500, n_live_tup / 2)`;

/** What `keepStatistics` needs of the database. */
export interface StatisticsOptions {
  /** Runs a query. */
  readonly list: (sql: string) => Promise<readonly Row[]>;
  /** Runs statements on a connection that starts read-only, and closes it if one fails. */
  readonly script: (sql: string) => Promise<void>;
  readonly log: Log;
}

/** Starts the checks. `close` resolves when the running one has ended. */
export function keepStatistics({ list, script, log }: StatisticsOptions): { close(): Promise<void> } {
  const stop = new AbortController();
  let isKnown = false;

  async function check(): Promise<void> {
    for (const { name } of await list(grown)) {
      if (stop.signal.aborted) return;
      await script(`begin read write; set local statement_timeout = 0; analyze "${String(name)}"; commit`);
    }
  }

  const running = (async () => {
    for (;;) {
      await sleep(period, undefined, { signal: stop.signal, ref: false });
      // An unavailable database is reported elsewhere.
      await check().catch((error: unknown) => {
        if (!isKnown) log("warn", "Could not refresh the statistics of PostgreSQL; it plans slow queries.", { error });
        isKnown = true;
      });
    }
  })().catch(() => {});

  return {
    async close() {
      stop.abort();
      await running;
    },
  };
}
