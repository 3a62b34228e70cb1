/**
 * What may be asked of a server now. Orders wait for each other, so what counts is the state that the server will have when the
 * turn of the new one comes: whatever runs and waits before it is taken as done (docs/spec.md#server-states).
 */
import {
  type ActionType,
  type ActionVerdict,
  actionLimits,
  actionOutcomes,
  actionTypes,
  actionVerdicts,
  cancelable,
  type ServerRequest,
  type ServerStanding,
} from "@brume/api/action.ts";
import { ApiError } from "../../base/error.ts";

/** What of a server's row counts here. */
export interface ServerState {
  readonly id: number;
  readonly state: "New" | "Active" | "Blocked" | "Deleting" | "Failed";
  readonly is_on: number;
}

/** What runs and what waits, in order, by the names of their flows. */
export type Queue = readonly { readonly id: number; readonly name: string }[];

/** Names of flows are stored in rows and so never change. */
export const flowName = (type: ActionType): string => `server.${type}`;

const types = new Map(actionTypes.map((type) => [flowName(type), type]));

/** Null: work that is no action, such as the moment in which a server is copied. */
export const actionTypeOf = (flow: string): ActionType | null => types.get(flow) ?? null;

/** How the server stands when all of the queue is done. */
export function stateAfter(server: ServerState, queue: Queue): ServerStanding {
  const { state, is_on } = server;
  const now: ServerStanding = state === "New" ? "on" : state === "Active" ? (is_on === 1 ? "on" : "off") : state;
  return queue.reduce((standing, { name }) => {
    const type = actionTypeOf(name);
    return (type === null ? undefined : actionOutcomes[type]) ?? standing;
  }, now);
}

const words: Readonly<Record<ServerStanding, string>> = {
  on: "Active and on",
  off: "Active and off",
  Blocked: "Blocked",
  Deleting: "Deleting",
  Failed: "Failed",
};

/** Throws `action_not_allowed` where the state says no; what comes back never is. */
export function requireState(server: ServerState, queue: Queue, ask: ServerRequest): Exclude<ActionVerdict, "no"> {
  const standing = stateAfter(server, queue);
  const verdict = actionVerdicts[ask][standing];
  if (verdict !== "no") return verdict;
  const when = queue.length === 0 ? "is" : "will then be";
  throw new ApiError("action_not_allowed", `Server ${server.id} ${when} ${words[standing]}: ${ask} is not possible.`);
}

/** Throws `server_busy` with `OnBusy: Fail`, then `queue_full`. */
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
    throw new ApiError("queue_full", `${waiting.length} actions are waiting for server ${server.id} already.`);
}

/** `PowerOff` overtakes what waits, so only what runs counts, and no queue is too full for it. */
export function requirePowerOff(server: ServerState, queue: Queue, onBusy?: "Queue" | "Fail"): void {
  const running = queue.slice(0, 1);
  requireState(server, running, "PowerOff");
  requireQueueSlot(server, running, onBusy);
}

/** Both, for what waits its turn. */
export function requireRequest(
  server: ServerState,
  queue: Queue,
  ask: ServerRequest,
  onBusy?: "Queue" | "Fail",
): Exclude<ActionVerdict, "no"> {
  const verdict = requireState(server, queue, ask);
  if (verdict !== "now" && verdict !== "done") requireQueueSlot(server, queue, onBusy);
  return verdict;
}

/** Throws `action_not_allowed` for what has ended, and for what runs and cannot go back. */
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
  if (state === "Postponed" || (state === "InProgress" && type !== null && cancelable.includes(type))) return;
  throw new ApiError("action_not_allowed", `Action ${id} (${type}) is ${state}: it cannot be canceled.`);
}
