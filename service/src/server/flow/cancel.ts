/** Cancels work on a server. Queued tasks end at once and release what they reserved; the engine undoes a running one. */

import type { Run } from "../../engine/flow.ts";
import { cancel, type Only, type Task, type TaskError } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import type { FlowContext } from "./context.ts";

/** Returns the run that is passed to `ended` of a flow whose task was canceled before it started. */
const runOf = (task: Task): Run => ({
  task: task.id,
  subject: task.subject.id,
  project: task.project,
  input: task.input,
  facts: task.facts as object,
  attempt: 1,
  signal: new AbortController().signal,
});

/** Cancels the work on a server, all or as `only` selects. */
export async function cancelWork(
  { clock, flowOf }: FlowContext,
  tx: Tx,
  server: number,
  why: TaskError,
  only: Only = {},
): Promise<void> {
  for (const task of await cancel(tx, { kind: "server", id: server }, why, clock.now(), only)) {
    const flow = flowOf(task.name);
    await flow?.ended?.(tx, runOf(task), "Canceled");
    await flow?.announce?.(tx, task, "ended");
  }
}
