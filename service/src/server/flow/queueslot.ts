/**
 * A slot in the queue of a server, for a task of another subject: a copy belongs to the new server, an image to itself. Both need the
 * source server only during the snapshot. A small task reserves the place in the queue of the source; it wakes the waiting task when the
 * place is reached, and ends when the snapshot is done.
 */

import type { Flow, Run, Wait } from "../../engine/flow.ts";
import { find, queue, type Task, wake } from "../../engine/task.ts";
import type { Tx } from "../../store/db.ts";
import type { ServerRow } from "../table.ts";
import type { Cause, DiskOrigin, Facts, FlowContext, ServerStep } from "./context.ts";
import { serverFlow, startOn } from "./define.ts";
import { effectiveServer } from "./effective.ts";
import { stepErrorOf } from "./error.ts";
import { requireServer } from "./serverrow.ts";

/** Input of the slot; `task` is the id of the task that waits for it. */
interface QueueSlotInput {
  readonly task: number;
}
/** The flow that occupies a slot. */
export type QueueSlotFlow = Flow<QueueSlotInput, Facts>;

/** Stored in task rows, so it keeps its value; so does the name of its step. */
const queueSlotName = "server.turn";

/** Milliseconds to wait for a full queue of the source. */
const longest = 4 * 3_600_000;
/** Milliseconds between checks. Both tasks wake each other, so the checks only cover a lost wake-up. */
const pause = 30_000;

const snapshot = "Snapshot";

/** True if the snapshot step of the task is not finished. */
const needsSlot = (task: Task): boolean =>
  task.end === null &&
  task.steps.some(({ name, state }) => name === snapshot && !["Completed", "Undone"].includes(state));

/** Returns the flow that occupies a slot: it ends when the snapshot of the waiting task is done or that task has ended. */
export function queueSlotFlow(context: FlowContext): QueueSlotFlow {
  const { store, clock } = context;
  return serverFlow<QueueSlotInput>(context, {
    name: queueSlotName,
    steps: [
      {
        name: "Turn",
        time: longest,
        async do({ input }): Promise<Wait | void> {
          const task = await find(store.read, input.task);
          if (task === undefined || !needsSlot(task)) return;
          await store.write((tx) => wake(tx, task.id, clock.now()));
          return { wait: pause };
        },
      },
    ],
    ended: (tx, { input }) => wake(tx, input.task, clock.now()),
  });
}

const slotOf = (tasks: readonly Task[], task: number): Task | undefined =>
  tasks.find(({ name, input }) => name === queueSlotName && (input as QueueSlotInput).task === task);

interface SnapshotOptions<Input> {
  take(subject: number, input: Input): Promise<void>;
  /** Stores the image of the disk in the row of the copy or image. */
  store(tx: Tx, run: Run<Input, Facts>, origin: DiskOrigin): Promise<void>;
  /** Removes the snapshot. */
  undo: ServerStep<Input>["undo"] & object;
}

/**
 * Returns the step that waits for the slot at the source server and then takes the snapshot. Only then is it known which image the disk
 * has: a rebuild that was queued before the request may have failed.
 */
export function snapshotStep<Input>(
  context: FlowContext,
  sourceOf: (input: Input) => number,
  { take, store, undo }: SnapshotOptions<Input>,
): ServerStep<Input> {
  return {
    name: snapshot,
    time: longest,
    async do({ task, subject, input }) {
      const source = sourceOf(input);
      const slot = slotOf(await queue(context.store.read, { kind: "server", id: source }), task);
      if (slot === undefined)
        throw stepErrorOf(
          "snapshot_failed",
          `Server ${source} is being deleted or is blocked: no snapshot was taken.`,
          { final: true },
        );
      if (slot.state !== "InProgress") return { wait: pause, detail: `waits for the queue of server ${source}` };
      const { server } = await effectiveServer(context.store.read, await requireServer(context, source));
      const { image_id, image_name, family, guest } = server;
      await take(subject, input);
      return { detail: `snapshot of server ${source}`, facts: { origin: { image_id, image_name, family, guest } } };
    },
    async save(tx, run) {
      await releaseQueueSlot(context, tx, sourceOf(run.input), run.task);
      if (run.facts.origin !== undefined) await store(tx, run, run.facts.origin);
    },
    undo,
  };
}

/** Ends the slot of a task, so that the queue of the source continues. */
export async function releaseQueueSlot({ clock }: FlowContext, tx: Tx, source: number, task: number): Promise<void> {
  const slot = slotOf(await queue(tx, { kind: "server", id: source }), task);
  if (slot !== undefined) await wake(tx, slot.id, clock.now());
}

/** Queues a slot at the source server for the task. */
export const reserveQueueSlot = (
  context: FlowContext,
  tx: Tx,
  flow: QueueSlotFlow,
  source: ServerRow,
  { id }: Task,
  by: Cause | null,
): Promise<Task> => startOn(context, tx, flow, source, { task: id }, by);
