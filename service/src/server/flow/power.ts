/** Flows of the power actions: on, off, reset, and shutdown or reboot by the guest. */

import { type ActionInput, actionLimits, type WaitFor } from "@brume/api/action.ts";
import type { Flow } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { flowName } from "../model/state.ts";
import type { ServerRow } from "../table.ts";
import { bootStep, cutPower, ensurePower, stopStep } from "./boot.ts";
import { cancelWork } from "./cancel.ts";
import type { Cause, Facts, FlowContext, ServerStep } from "./context.ts";
import { serverFlow, startOn, stepsOf } from "./define.ts";
import { errorFor, stepErrorOf } from "./error.ts";
import { guestSteps, requestShutdown } from "./guest.ts";
import { reconcileName } from "./reconcile.ts";
import { changeServer } from "./serverrow.ts";

/** Action types that these flows implement. */
export type PowerType = "PowerOn" | "PowerOff" | "PowerReboot" | "ShutDownGuestOS" | "RebootGuestOS";
export const powerTypes: readonly PowerType[] = [
  "PowerOn",
  "PowerOff",
  "PowerReboot",
  "ShutDownGuestOS",
  "RebootGuestOS",
];

/** Input of all power flows; only those that shut the guest down use it. */
export interface ShutdownInput {
  /** Seconds that the guest has to shut down. */
  readonly timeout: number;
  /** Whether the power is cut after the timeout. */
  readonly force: boolean;
}

/** Milliseconds that the step has in addition to the longest timeout of a guest. */
const spare = 60_000;

/** Returns the step in which the guest shuts down. `off`: the server stays off; `moment`: the desired state stays on. */
function shutdownStep(context: FlowContext, duration: "off" | "moment"): ServerStep<ShutdownInput> {
  return {
    name: "Shutdown",
    time: actionLimits.longestShutdown * 1000 + spare,
    async do({ subject, input: { timeout, force }, signal }) {
      if (await requestShutdown(context, subject, timeout, signal)) return { detail: "power off" };
      const reason = `no reaction to the power button within ${timeout} s`;
      if (!force)
        throw stepErrorOf(
          "guest_did_not_respond",
          `Server ${subject}: ${reason}. Send PowerOff, or ShutDownGuestOS with Force.`,
          { final: true },
        );
      await cutPower(context, subject);
      return { detail: `${reason}: power cut` };
    },
    ...(duration === "off" && {
      save: async (tx, { subject, facts }) =>
        void (await changeServer(context, tx, subject, { is_on: 0 }, facts.by ?? null)),
    }),
    undo: ({ subject, signal }) => ensurePower(context, subject, signal),
  };
}

/** Returns the flow of each power action. */
export function powerFlows(context: FlowContext): Record<PowerType, Flow<ShutdownInput, Facts>> {
  const of = (type: PowerType, ...steps: ServerStep<ShutdownInput>[]) =>
    serverFlow<ShutdownInput>(context, { name: flowName(type), steps });
  const guest = guestSteps<ShutdownInput>(context);
  return {
    PowerOn: of("PowerOn", bootStep(context, { from: "off" }), ...guest),
    PowerOff: of("PowerOff", stopStep(context, "off")),
    PowerReboot: of("PowerReboot", bootStep(context, { name: "Reset", from: "new" }), ...guest),
    ShutDownGuestOS: of("ShutDownGuestOS", shutdownStep(context, "off")),
    RebootGuestOS: of("RebootGuestOS", shutdownStep(context, "moment"), bootStep(context, { from: "new" }), ...guest),
  };
}

/** Queues a power action. `PowerOff` runs before the queue and cancels tasks that would only start the server. */
export async function queuePower(
  context: FlowContext,
  tx: Tx,
  flows: ReturnType<typeof powerFlows>,
  server: ServerRow,
  input: Pick<ActionInput, "Timeout" | "Force"> & { readonly Type: PowerType; readonly WaitFor?: WaitFor },
  by: Cause | null,
): Promise<Task> {
  const { Type: type, Timeout: timeout = actionLimits.shutdown, Force: force = false, WaitFor = "Power" } = input;
  const canWait = type === "PowerOn" || type === "PowerReboot" || type === "RebootGuestOS";
  const steps = stepsOf(type, canWait ? WaitFor : "Power");
  if (type === "PowerOff") await cancelStarts(context, tx, server.id);
  return startOn(context, tx, flows[type], server, { timeout, force }, by, { steps, urgent: type === "PowerOff" });
}

/** Cancels tasks that would start the server or wait for its guest. Other tasks stay queued behind `PowerOff`. */
async function cancelStarts(context: FlowContext, tx: Tx, server: number): Promise<void> {
  const why = errorFor("superseded", `PowerOff was requested for server ${server}.`);
  const canceled = new Set([...powerTypes.filter((type) => type !== "PowerOff").map(flowName), reconcileName]);
  for (const { id, name } of await queue(tx, { kind: "server", id: server }))
    if (canceled.has(name)) await cancelWork(context, tx, server, why, { task: id });
}
