/**
 * Decides which requests a server accepts now. Actions are queued, so the decision uses the state that the server will have when all
 * queued actions have succeeded (docs/spec.md#server-states).
 */
import {
  type ActionType,
  type ActionVerdict,
  actionLimits,
  actionOutcomes,
  actionTypes,
  actionVerdicts,
  cancelable,
  type EffectiveState,
  type ServerRequest,
} from "@brume/api/action.ts";
import { ApiError } from "../../base/error.ts";

/** Columns of the row that the decision uses. */
export interface ServerState {
  readonly id: number;
  readonly state: "New" | "Active" | "Blocked" | "Deleting" | "Failed";
  readonly is_on: number;
}

/** The running task and the queued ones, in order; `name` is the name of the flow. */
export type Queue = readonly { readonly id: number; readonly name: string }[];

/** Returns the name of the flow of an action. It is stored in task rows, so it keeps its value. */
export const flowName = (type: ActionType): string => `server.${type}`;

const types = new Map(actionTypes.map((type) => [flowName(type), type]));

/** Returns the type of the action of a flow; null: the flow is not an action, such as a slot for a snapshot. */
export const actionTypeOf = (flow: string): ActionType | null => types.get(flow) ?? null;

/** Returns the state of the server after all tasks of the queue have succeeded. */
export function stateAfter(server: ServerState, queue: Queue): EffectiveState {
  const { state, is_on } = server;
  const now: EffectiveState = state === "New" ? "on" : state === "Active" ? (is_on === 1 ? "on" : "off") : state;
  return queue.reduce((state, { name }) => {
    const type = actionTypeOf(name);
    return (type === null ? undefined : actionOutcomes[type]) ?? state;
  }, now);
}

const words: Readonly<Record<EffectiveState, string>> = {
  on: "Active and on",
  off: "Active and off",
  Blocked: "Blocked",
  Deleting: "Deleting",
  Failed: "Failed",
};

/** Returns how the request is handled in the state of the server. Throws `action_not_allowed`. */
export function requireState(server: ServerState, queue: Queue, request: ServerRequest): Exclude<ActionVerdict, "no"> {
  const later = stateAfter(server, queue);
  const verdict = actionVerdicts[request][later];
  if (verdict !== "no") return verdict;
  const when = queue.length === 0 ? "is" : "will then be";
  throw new ApiError("action_not_allowed", `Server ${server.id} ${when} ${words[later]}: ${request} is not possible.`);
}

/** Throws `server_busy` with `OnBusy: Fail` if an action is running, and `queue_full` if too many are queued. */
export function requireQueueSlot(
  server: Pick<ServerState, "id">,
  queue: Queue,
  onBusy: "Queue" | "Fail" = "Queue",
): void {
  const [running, ...waiting] = queue;
  if (running === undefined) return;
  if (onBusy === "Fail") {
    const what = actionTypeOf(running.name) ?? "Snapshot";
    throw new ApiError("server_busy", `Action ${running.id} (${what}) of server ${server.id} is running.`);
  }
  if (waiting.length >= actionLimits.waiting)
    throw new ApiError(
      "queue_full",
      `Server ${server.id} has ${waiting.length} queued actions already. Wait until one has ended.`,
    );
}

/** Checks `PowerOff`. It runs before the queue, so only the running task counts. Throws `action_not_allowed`, `server_busy`. */
export function requirePowerOff(server: ServerState, queue: Queue, onBusy?: "Queue" | "Fail"): void {
  const running = queue.slice(0, 1);
  requireState(server, running, "PowerOff");
  requireQueueSlot(server, running, onBusy);
}

/** Checks a request that is queued: its state and its slot in the queue. Throws as `requireState` and `requireQueueSlot` do. */
export function requireRequest(
  server: ServerState,
  queue: Queue,
  request: ServerRequest,
  onBusy?: "Queue" | "Fail",
): Exclude<ActionVerdict, "no"> {
  const verdict = requireState(server, queue, request);
  if (verdict !== "now" && verdict !== "done") requireQueueSlot(server, queue, onBusy);
  return verdict;
}

/** Throws `action_not_allowed` if the action has ended, runs and cannot be undone, or is a deletion, which nothing takes back. */
export function requireCancelable({
  id,
  name,
  state,
  undoing,
}: {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  readonly undoing: boolean;
}): void {
  const type = actionTypeOf(name);
  if (undoing) throw new ApiError("action_not_allowed", `Action ${id} (${type}) is being undone already.`);
  if (type !== null && cancelable[state]?.includes(type)) return;
  throw new ApiError("action_not_allowed", `Action ${id} (${type}) is ${state}: it cannot be canceled.`);
}
