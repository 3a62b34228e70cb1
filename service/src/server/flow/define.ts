/** The form that all flows of servers share, and how they are begun. */
import { type ActionType, actionSteps, type WaitFor } from "@brume/api/action.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { type Start, start, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { actionTypeOf } from "../model/state.ts";
import type { ServerRow } from "../table.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";
import { emitActionEvent } from "./events.ts";

type Spec<Input> = Parameters<typeof flow<Input, Facts>>[0];

/** A flow that works on servers, one at a time on each. Those that are actions tell of themselves. */
export function serverFlow<Input>(context: FlowContext, spec: Omit<Spec<Input>, "subject">): Flow<Input, Facts> {
  const isAction = actionTypeOf(spec.name) !== null;
  return flow<Input, Facts>({
    ...(isAction && { announce: (tx, task, what) => emitActionEvent(context, tx, task, what) }),
    ...spec,
    subject: "server",
  });
}

/** Begins it, or puts it behind what was accepted before. */
export const startOn = <Input>(
  { clock }: FlowContext,
  tx: Tx,
  wanted: Flow<Input, Facts>,
  { id, project_id }: Pick<ServerRow, "id" | "project_id">,
  input: Input,
  by: Cause | null,
  { facts, ...options }: Pick<Start<Input, Facts>, "facts" | "steps" | "done" | "urgent"> = {},
): Promise<Task> =>
  start(tx, wanted, {
    subject: id,
    project: project_id,
    input,
    now: clock.now(),
    facts: { by, ...facts },
    ...options,
  });

/** The steps of an action whose caller waits for the guest or does not. */
export const stepsOf = (type: ActionType, waitFor: WaitFor): string[] =>
  waitFor === "Power" ? [...actionSteps[type]] : [...actionSteps[type], waitFor];
