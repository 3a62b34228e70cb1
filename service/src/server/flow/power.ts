/** Power: on, off, reset, and what asks the guest first. */

import { type ActionInput, actionLimits, type WaitFor } from "@brume/api/action.ts";
import type { Flow } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { flowName } from "../model/state.ts";
import type { ServerRow } from "../table.ts";
import { bootStep, ensurePower, stopStep } from "./boot.ts";
import { cancelWork } from "./cancel.ts";
import { type Cause, type Facts, type FlowContext, type ServerStep } from "./context.ts";
import { serverFlow, startOn, stepsOf } from "./define.ts";
import { errorFor, stepErrorOf } from "./error.ts";
import { guestSteps, requestShutdown } from "./guest.ts";
import { reconcileName } from "./reconcile.ts";
import { changeServer } from "./serverrow.ts";

export type PowerType = "PowerOn" | "PowerOff" | "PowerReboot" | "ShutDownGuestOS" | "RebootGuestOS";
export const powerTypes: readonly PowerType[] = [
  "PowerOn",
  "PowerOff",
  "PowerReboot",
  "ShutDownGuestOS",
  "RebootGuestOS",
];

export interface ShutdownInput {
  /** Seconds for the guest. */
  readonly timeout: number;
  /** Then the power goes. */
  readonly force: boolean;
}

/** Milliseconds beside the longest time that a guest is given. */
const spare = 60_000;
const longestTimeout = 600_000;

/** The guest switches itself off. `wish`: it stays off; else it is off for a moment. */
function shutdownStep(context: FlowContext, spec: "off" | "moment"): ServerStep<ShutdownInput> {
  return {
    name: "Shutdown",
    time: longestTimeout + spare,
    async do({ subject, input: { timeout, force }, signal }) {
      if (await requestShutdown(context, subject, timeout, signal)) return { detail: "power off" };
      const silence = `no answer to the power button within ${timeout} s`;
      if (!force)
        throw stepErrorOf(
          "guest_did_not_respond",
          `Server ${subject} gave ${silence}. Send PowerOff, or ShutDownGuestOS with Force.`,
          { final: true },
        );
      await context.machines.ensureStopped(subject, "cut");
      return { detail: `${silence}: power cut` };
    },
    ...(spec === "off" && {
      save: async (tx, { subject, facts }) =>
        void (await changeServer(context, tx, subject, { is_on: 0 }, facts.by ?? null)),
    }),
    undo: ({ subject, signal }) => ensurePower(context, subject, signal),
  };
}

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

export async function queuePower(
  context: FlowContext,
  tx: Tx,
  flows: ReturnType<typeof powerFlows>,
  server: ServerRow,
  order: Pick<ActionInput, "Timeout" | "Force"> & { readonly Type: PowerType; readonly WaitFor?: WaitFor },
  by: Cause | null,
): Promise<Task> {
  const { Type: type, Timeout: timeout = actionLimits.shutdown, Force: force = false, WaitFor = "Power" } = order;
  const canWait = type === "PowerOn" || type === "PowerReboot" || type === "RebootGuestOS";
  const steps = stepsOf(type, canWait ? WaitFor : "Power");
  if (type === "PowerOff") await overtake(context, tx, server.id);
  return startOn(context, tx, flows[type], server, { timeout, force }, by, { steps, urgent: type === "PowerOff" });
}

/** What would only switch it on, or wait for its guest, is given up; all else waits behind the end of its power. */
async function overtake(context: FlowContext, tx: Tx, server: number): Promise<void> {
  const why = errorFor("superseded", `Server ${server} was ordered to switch off.`);
  const overtaken = new Set([...powerTypes.filter((type) => type !== "PowerOff").map(flowName), reconcileName]);
  for (const { id, name } of await queue(tx, { kind: "server", id: server }))
    if (overtaken.has(name)) await cancelWork(context, tx, server, why, { task: id });
}
