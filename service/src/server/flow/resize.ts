/**
 * `Resize`: other cores, memory or disk, with those steps that are needed. What can change live does; the rest is changed while the
 * server is off for a moment. The row shows a new number when its step is done, and holds what all accepted resizes may come to.
 */

import { actionLimits } from "@brume/api/action.ts";
import type { ApplyResults } from "../../drivers/machine/interface.ts";
import type { Flow } from "../../engine/flow.ts";
import { queue, type Task } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import { heldWith, type ResizeFlowInput, type ResizePlan, type Sizes, sizesOf } from "../model/resize.ts";
import { flowName } from "../model/state.ts";
import { findAnyServer, type ServerRow, updateServer } from "../table.ts";
import { bootStep, ensurePower } from "./boot.ts";
import { type Cause, type Facts, type FlowContext, type ServerStep } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { attempt, stepErrorOf } from "./error.ts";
import { requestShutdown } from "./guest.ts";
import { machineSpecFor } from "./nics.ts";
import { changeServer, requireServer } from "./serverrow.ts";

type Key = keyof Sizes;

/** The row's columns of these sizes. */
const columnsOf = ({ fast, ...sizes }: Partial<Sizes>) => ({
  ...sizes,
  ...(fast !== undefined && { is_high_performance: Number(fast) }),
});

const pick = (sizes: Partial<Sizes>, keys: readonly Key[]): Partial<Sizes> =>
  Object.fromEntries(keys.filter((key) => sizes[key] !== undefined).map((key) => [key, sizes[key]]));

interface Part {
  readonly name: "Cpu" | "Memory" | "Disk";
  readonly keys: readonly Key[];
  readonly changes: readonly (keyof ApplyResults)[];
  tell(input: ResizeFlowInput): string;
  /** What is left to do in the guest. */
  readonly rest?: string;
}

/** Tiny Linux does so at once, images with cloud-init at their next start. */
const fileSystem = "; the guest enlarges its file system at once or at its next start, if it has a program for that";

const parts: readonly Part[] = [
  {
    name: "Cpu",
    keys: ["cpu", "fast"],
    changes: ["cpus", "share"],
    tell: ({ cpu, fast }) =>
      [cpu === undefined ? [] : `${cpu} CPU`, fast === undefined ? [] : `high performance ${fast ? "on" : "off"}`]
        .flat()
        .join(", "),
  },
  { name: "Memory", keys: ["ram"], changes: ["memory"], tell: ({ ram }) => `${ram} MB` },
  { name: "Disk", keys: ["hdd"], changes: ["disk"], tell: ({ hdd }) => `${hdd} GB`, rest: fileSystem },
];

function changeStep(context: FlowContext, { name, keys, changes, tell, rest = "" }: Part): ServerStep<ResizeFlowInput> {
  const apply = async (server: ServerRow) => context.machines.apply(await machineSpecFor(context, server));
  return {
    name,
    async do({ subject, input, facts }) {
      const server = await requireServer(context, subject);
      const desired = { ...server, ...columnsOf(pick(input, keys)) };
      const done = await attempt("apply_failed", `Server ${subject} could not get ${tell(input)}`, () =>
        apply(desired),
      );
      // A server that is on has been found fit for it when it was asked for, and yet its guest may refuse.
      if (changes.some((change) => done[change] === "nextStart"))
        throw stepErrorOf("apply_failed", `Server ${subject} takes ${tell(input)} only with a restart.`, {
          final: true,
        });
      return { detail: tell(input) + rest, facts: { was: facts.was ?? sizesOf(server) } };
    },
    save: async (tx, { subject, input, facts }) =>
      void (await changeServer(context, tx, subject, columnsOf(pick(input, keys)), facts.by ?? null)),
    // What has grown live and cannot shrink so is as the row says from the next start on.
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

export function resizeFlow(context: FlowContext): Flow<ResizeFlowInput, Facts> {
  const { resizeShutdown } = actionLimits;
  return serverFlow<ResizeFlowInput>(context, {
    name: flowName("Resize"),
    steps: [
      {
        name: "Stop",
        async do({ subject, signal }) {
          if (await requestShutdown(context, subject, resizeShutdown, signal)) return { detail: "power off" };
          await context.machines.ensureStopped(subject, "cut");
          return { detail: `no answer to the power button within ${resizeShutdown} s: power cut` };
        },
        undo: ({ subject, signal }) => ensurePower(context, subject, signal),
      },
      ...parts.filter(({ name }) => name !== "Disk").map((part) => changeStep(context, part)),
      bootStep(context, { name: "Start", from: "new" }),
      // A disk cannot be made smaller again, so it grows when nothing can fail any more.
      ...parts.filter(({ name }) => name === "Disk").map((part) => changeStep(context, part)),
    ],
    async ended(tx, { subject, task }) {
      const server = await findAnyServer(tx, subject);
      // One that has failed with its group meanwhile holds nothing any more.
      if (server === undefined || server.held_cpu === 0) return;
      const waiting = (await queue(tx, { kind: "server", id: subject })).filter(({ id }) => id !== task);
      await hold(tx, server, heldWith(sizesOf(server), waiting, {}));
    },
  });
}

const hold = (tx: Tx, { id }: ServerRow, { cpu, ram, hdd }: ReturnType<typeof heldWith>) =>
  updateServer(tx, id, { held_cpu: cpu, held_ram: ram, held_hdd: hdd });

/** `plan` as planned against the queue in this transaction. Without steps it is born `Completed`. */
export async function queueResize(
  context: FlowContext,
  tx: Tx,
  flow: Flow<ResizeFlowInput, Facts>,
  server: ServerRow,
  { input, steps }: ResizePlan,
  by: Cause | null,
): Promise<Task> {
  const before = await queue(tx, { kind: "server", id: server.id });
  await hold(tx, server, heldWith(sizesOf(server), before, input));
  return startOn(context, tx, flow, server, input, by, { steps });
}
