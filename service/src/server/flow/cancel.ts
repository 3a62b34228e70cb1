/** Ending work before its time: what waits is canceled at once and gives back what it took, what runs is undone by itself. */

import type { Run } from "../../engine/flow.ts";
import { cancel, type Only, type Task, type TaskError } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import type { FlowContext } from "./context.ts";

/** A task as its flow sees it when it never got its turn. */
const runOf = (task: Task): Run => ({
  task: task.id,
  subject: task.subject.id,
  project: task.project,
  input: task.input,
  facts: task.facts as object,
  attempt: 1,
  signal: new AbortController().signal,
});

/** Cancels the work on a server, all of it or as `only` says. */
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
