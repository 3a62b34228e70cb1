/**
 * Flow `Resize`: changes the cores, memory or disk of a server, with the steps that `planResize` selects. Changes that cannot be applied
 * live are made while the server is off. The row shows a size when its step is done; quotas are reserved for all accepted resizes.
 */

import { actionLimits } from "@brume/api/action.ts";
import type { ApplyResults } from "../../drivers/machine/interface.ts";
import type { Flow } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { heldWith, type ResizeFlowInput, type ResizePlan, type Sizes, sizesOf } from "../model/resize.ts";
import { flowName } from "../model/state.ts";
import { findAnyServer, type ServerRow, updateServer } from "../table.ts";
import { bootStep, cutPower, ensurePower } from "./boot.ts";
import type { Cause, Facts, FlowContext, ServerStep } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { attempt, stepErrorOf } from "./error.ts";
import { requestShutdown } from "./guest.ts";
import { machineSpecFor } from "./nics.ts";
import { changeServer, requireServer } from "./serverrow.ts";

type Key = keyof Sizes;

/** Returns the sizes as columns of the row. */
const columnsOf = ({ fast, ...sizes }: Partial<Sizes>) => ({
  ...sizes,
  ...(fast !== undefined && { is_high_performance: Number(fast) }),
});

const pick = (sizes: Partial<Sizes>, keys: readonly Key[]): Partial<Sizes> =>
  Object.fromEntries(keys.filter((key) => sizes[key] !== undefined).map((key) => [key, sizes[key]]));

/** A step that changes one kind of size. */
interface SizeStep {
  readonly name: "Cpu" | "Memory" | "Disk";
  readonly keys: readonly Key[];
  /** Results of the driver that belong to the sizes. */
  readonly changes: readonly (keyof ApplyResults)[];
  /** Returns the new size for details, such as `4 CPU`. */
  describe(input: ResizeFlowInput): string;
  /** Appended to the detail: work that remains in the guest. */
  readonly hint?: string;
}

/** Tiny Linux resizes at once, images with cloud-init at their next start. */
const fileSystem = "; the guest enlarges its file system at once or at its next start, if it has a program for that";

const sizeSteps: readonly SizeStep[] = [
  {
    name: "Cpu",
    keys: ["cpu", "fast"],
    changes: ["cpus", "share"],
    describe: ({ cpu, fast }) =>
      [cpu === undefined ? [] : `${cpu} CPU`, fast === undefined ? [] : `high performance ${fast ? "on" : "off"}`]
        .flat()
        .join(", "),
  },
  { name: "Memory", keys: ["ram"], changes: ["memory"], describe: ({ ram }) => `${ram} MB` },
  { name: "Disk", keys: ["hdd"], changes: ["disk"], describe: ({ hdd }) => `${hdd} GB`, hint: fileSystem },
];

function changeStep(
  context: FlowContext,
  { name, keys, changes, describe, hint = "" }: SizeStep,
): ServerStep<ResizeFlowInput> {
  const apply = async (server: ServerRow) => context.machines.apply(await machineSpecFor(context, server));
  return {
    name,
    async do({ subject, input, facts }) {
      const server = await requireServer(context, subject);
      const desired = { ...server, ...columnsOf(pick(input, keys)) };
      const done = await attempt("apply_failed", `Server ${subject} could not get ${describe(input)}`, () =>
        apply(desired),
      );
      // The request was accepted because the VM can grow live, but the guest may still refuse.
      if (changes.some((change) => done[change] === "nextStart"))
        throw stepErrorOf("apply_failed", `Server ${subject} can get ${describe(input)} only with a restart.`, {
          final: true,
        });
      return { detail: describe(input) + hint, facts: { was: facts.was ?? sizesOf(server) } };
    },
    save: async (tx, { subject, input, facts }) =>
      void (await changeServer(context, tx, subject, columnsOf(pick(input, keys)), facts.by ?? null)),
    // A size that cannot shrink live returns to the value of the row at the next start.
    undo: async ({ subject, facts }) => {
      const server = await requireServer(context, subject);
      await apply({ ...server, ...(facts.was !== undefined && columnsOf(pick(facts.was, keys))) });
    },
    async unsave(tx, { subject, facts }) {
      if (facts.was !== undefined)
        await changeServer(context, tx, subject, columnsOf(pick(facts.was, keys)), facts.by ?? null);
    },
  };
}

/** Returns the flow. Its end releases what no queued resize needs any more. */
export function resizeFlow(context: FlowContext): Flow<ResizeFlowInput, Facts> {
  const { resizeShutdown } = actionLimits;
  return serverFlow<ResizeFlowInput>(context, {
    name: flowName("Resize"),
    steps: [
      {
        name: "Stop",
        async do({ subject, signal }) {
          if (await requestShutdown(context, subject, resizeShutdown, signal)) return { detail: "power off" };
          await cutPower(context, subject);
          return { detail: `no reaction to the power button within ${resizeShutdown} s: power cut` };
        },
        undo: ({ subject, signal }) => ensurePower(context, subject, signal),
      },
      ...sizeSteps.filter(({ name }) => name !== "Disk").map((part) => changeStep(context, part)),
      bootStep(context, { name: "Start", from: "new" }),
      // A disk cannot shrink again, so it grows last.
      ...sizeSteps.filter(({ name }) => name === "Disk").map((part) => changeStep(context, part)),
    ],
    async ended(tx, { subject, task }) {
      const server = await findAnyServer(tx, subject);
      // A server that failed with its group meanwhile has released its reservation.
      if (server === undefined || server.held_cpu === 0) return;
      const waiting = (await queue(tx, { kind: "server", id: subject })).filter(({ id }) => id !== task);
      await storeReservation(tx, server, heldWith(sizesOf(server), waiting, {}));
    },
  });
}

/** Stores the sizes that count against quotas and capacity. */
const storeReservation = (tx: Tx, { id }: ServerRow, { cpu, ram, hdd }: ReturnType<typeof heldWith>) =>
  updateServer(tx, id, { held_cpu: cpu, held_ram: ram, held_hdd: hdd });

/** Reserves the sizes and queues the resize. The plan was made in this transaction; without steps the action is `Completed` at once. */
export async function queueResize(
  context: FlowContext,
  tx: Tx,
  flow: Flow<ResizeFlowInput, Facts>,
  server: ServerRow,
  { input, steps }: ResizePlan,
  by: Cause | null,
): Promise<Task> {
  const before = await queue(tx, { kind: "server", id: server.id });
  await storeReservation(tx, server, heldWith(sizesOf(server), before, input));
  return startOn(context, tx, flow, server, input, by, { steps });
}
