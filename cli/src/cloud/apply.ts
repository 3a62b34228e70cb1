/** Carries out a plan. What does not depend on each other runs at the same time. After a failure, running work ends and nothing new is started. */
import type { Client } from "@brume/api/client.ts";
import type { Change, Work } from "./change.ts";
import type { Plan } from "./plan.ts";

/** Changes that run at the same time. */
const mostRunning = 4;

/** Reports of a run. */
export interface Report {
  /** Shows what runs now. */
  progress(text: string): void;
  /** A change has ended after `ms` milliseconds. */
  done(change: Change, ms: number): void;
}

/** A change that failed. */
export interface Failure {
  readonly change: Change;
  readonly error: unknown;
}

/** Options of a run; `timeout` in milliseconds for each wait. */
interface Options {
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly timeout: number;
  readonly now: () => number;
  readonly report: Report;
}

/** Carries out the changes, stage by stage, and returns those that failed. Changes after a failure are not started. */
export async function applyPlan(
  { changes }: Plan,
  { client, signal, timeout, now, report }: Options,
): Promise<Failure[]> {
  const created = new Map<string, number>();
  const failures: Failure[] = [];
  let ended = 0;

  async function runOne(change: Change): Promise<void> {
    const start = now();
    const show = (text: string) => report.progress(`${ended + 1}/${changes.length} ${change.name}: ${text}`);
    const work: Work = { client, signal, timeout, created, progress: show };
    show("");
    try {
      signal.throwIfAborted();
      await change.run(work);
      ended += 1;
      report.done(change, now() - start);
    } catch (error) {
      failures.push({ change, error });
    }
  }

  for (const stage of new Set(changes.map((change) => change.stage))) {
    const waiting = changes.filter((change) => change.stage === stage);
    const worker = async () => {
      for (let next = waiting.shift(); next !== undefined && failures.length === 0; next = waiting.shift())
        await runOne(next);
    };
    await Promise.all(Array.from({ length: mostRunning }, worker));
    if (failures.length > 0) break;
  }
  return failures;
}
