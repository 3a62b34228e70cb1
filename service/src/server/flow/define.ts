/** Defines and starts flows of servers: they share the subject, the facts and the events of actions. */
import { type ActionType, actionSteps, type WaitFor } from "@brume/api/action.ts";
import { type Flow, flow } from "../../engine/flow.ts";
import { type Start, start, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { actionTypeOf } from "../model/state.ts";
import type { ServerRow } from "../table.ts";
import type { Cause, Facts, FlowContext } from "./context.ts";
import { emitActionEvent } from "./events.ts";

type Spec<Input> = Parameters<typeof flow<Input, Facts>>[0];

/** Defines a flow with servers as subject. One flow at a time runs on a server. Flows that are actions append the events of actions. */
export function serverFlow<Input>(context: FlowContext, spec: Omit<Spec<Input>, "subject">): Flow<Input, Facts> {
  const isAction = actionTypeOf(spec.name) !== null;
  return flow<Input, Facts>({
    ...(isAction && { announce: (tx, task, what) => emitActionEvent(context, tx, task, what) }),
    ...spec,
    subject: "server",
  });
}

/** Starts the flow on the server, or queues it behind earlier tasks. */
export const startOn = <Input>(
  { clock }: FlowContext,
  tx: Tx,
  flow: Flow<Input, Facts>,
  { id, project_id }: Pick<ServerRow, "id" | "project_id">,
  input: Input,
  by: Cause | null,
  { facts, ...options }: Pick<Start<Input, Facts>, "facts" | "steps" | "done" | "urgent" | "isFirst"> = {},
): Promise<Task> =>
  start(tx, flow, {
    subject: id,
    project: project_id,
    input,
    now: clock.now(),
    facts: { by, ...facts },
    ...options,
  });

/** Returns the names of the steps of an action, with the step that `WaitFor` adds. */
export const stepsOf = (type: ActionType, waitFor: WaitFor): string[] =>
  waitFor === "Power" ? [...actionSteps[type]] : [...actionSteps[type], waitFor];
